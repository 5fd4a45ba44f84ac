-- Highest bid of each ten seconds. A stream is not joined with rows that change: so the bids of a window are groups,
-- each once.
CREATE MATERIALIZED VIEW q7 AS
  SELECT B.auction, B.price, B.bidder, B.date_time, B.extra
  FROM (
    SELECT DISTINCT window_start, window_end, auction, price, bidder, date_time, extra
    FROM TUMBLE(bid, SIZE 10 SECONDS) WITH ('watermark.delay.millis' = 4000)
  ) AS B
  JOIN (
    SELECT window_start, window_end, max(price) AS maxprice
    FROM TUMBLE(bid, SIZE 10 SECONDS) WITH ('watermark.delay.millis' = 4000)
    GROUP BY window_start, window_end
  ) AS B1 ON B.window_start = B1.window_start AND B.window_end = B1.window_end AND B.price = B1.maxprice;
SELECT * FROM q7;
