-- Hot items: the auctions with the most bids of the last ten seconds, every two seconds.
CREATE MATERIALIZED VIEW q5 AS
  WITH counted AS (
    SELECT auction, window_start, window_end, count(*) AS num
    FROM HOP(bid, SIZE 10 SECONDS, ADVANCE BY 2 SECONDS) WITH ('watermark.delay.millis' = 4000)
    GROUP BY auction, window_start, window_end
  )
  SELECT c.auction, c.num, c.window_start, c.window_end
  FROM counted AS c
  JOIN (
    SELECT window_start, window_end, max(num) AS most FROM counted GROUP BY window_start, window_end
  ) AS m ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num = m.most;
SELECT * FROM q5;
