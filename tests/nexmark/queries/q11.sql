-- User sessions: the bids of each bidder that are not more than ten seconds apart.
CREATE MATERIALIZED VIEW q11 AS
  SELECT bidder, count(*) AS bid_count, window_start AS starttime, window_end AS endtime
  FROM SESSION(bid PARTITION BY bidder, GAP 10 SECONDS) WITH ('watermark.delay.millis' = 4000)
  GROUP BY bidder, window_start, window_end;
SELECT * FROM q11;
