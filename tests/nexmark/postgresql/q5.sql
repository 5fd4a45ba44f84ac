WITH hop AS (
  SELECT bid.*, w AS window_start, w + INTERVAL '10 seconds' AS window_end
  FROM bid, generate_series(
    date_bin('2 seconds', date_time, 'epoch') - INTERVAL '8 seconds', date_bin('2 seconds', date_time, 'epoch'), '2 seconds'
  ) AS w
), counted AS (
  SELECT auction, count(*) AS num, window_start, window_end FROM hop GROUP BY auction, window_start, window_end
)
SELECT auction, num, window_start, window_end
FROM (SELECT *, rank() OVER (PARTITION BY window_start ORDER BY num DESC) AS place FROM counted) AS ranked
WHERE place = 1
