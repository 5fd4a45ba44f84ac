-- Processing time windows: the bids of each bidder in ten seconds of the time at which they were sent. That is the time
-- which the broker keeps of each record, so that what is counted does not depend on when it is read.
CREATE MATERIALIZED VIEW q12 AS
  SELECT bidder, count(*) AS bid_count, window_start AS starttime, window_end AS endtime
  FROM TUMBLE(bid_as_sent, SIZE 10 SECONDS)
  GROUP BY bidder, window_start, window_end;
SELECT * FROM q12;
