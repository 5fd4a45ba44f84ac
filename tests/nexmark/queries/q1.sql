-- Currency conversion: prices in another currency.
CREATE MATERIALIZED VIEW q1 AS
  SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid;
SELECT * FROM q1;
