SELECT bidder, count(*), min(dateTime), max(dateTime) + INTERVAL '10 seconds'
FROM (
  SELECT bidder, dateTime, count(*) FILTER (WHERE begins) OVER (PARTITION BY bidder ORDER BY dateTime) AS session
  FROM (
    SELECT bidder, dateTime,
           dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) > INTERVAL '10 seconds' AS begins
    FROM bid
  ) AS gaps
) AS sessions
GROUP BY bidder, session
