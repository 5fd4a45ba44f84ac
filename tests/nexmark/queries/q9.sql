-- Winning bids: of each auction the highest bid, and of equal ones the first. Of the bids with one price the first is
-- told by their event time, of the prices the highest by a join with their maximum.
CREATE MATERIALIZED VIEW q9 AS
  WITH bids AS (
    SELECT A.*, B.auction, B.bidder, B.price, B.date_time AS bid_date_time, B.extra AS bid_extra
    FROM auction WITH ('watermark.delay.millis' = 4000) AS A
    JOIN bid WITH ('watermark.delay.millis' = 4000) AS B WITHIN 1 MINUTE ON A.id = B.auction
    WHERE B.date_time BETWEEN A.date_time AND A.expires
  )
  SELECT best.*, won.auction, won.bidder, won.bid_date_time, won.bid_extra
  FROM (
    SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
           max(price) AS price
    FROM bids
    GROUP BY id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra
  ) AS best
  JOIN (
    SELECT auction, price, first_value(bidder) AS bidder, min(bid_date_time) AS bid_date_time,
           first_value(bid_extra) AS bid_extra
    FROM bids GROUP BY auction, price
  ) AS won ON best.id = won.auction AND best.price = won.price;
SELECT * FROM q9;
