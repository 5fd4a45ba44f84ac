SELECT bidder, count(*), min(date_time), max(date_time) + INTERVAL '10 seconds'
FROM (
  SELECT bidder, date_time, count(*) FILTER (WHERE begins) OVER (PARTITION BY bidder ORDER BY date_time) AS session
  FROM (
    SELECT bidder, date_time,
           date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time) > INTERVAL '10 seconds' AS begins
    FROM bid
  ) AS gaps
) AS sessions
GROUP BY bidder, session
