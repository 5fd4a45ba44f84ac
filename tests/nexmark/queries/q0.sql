-- Pass through: every bid as it is.
CREATE MATERIALIZED VIEW q0 AS
  SELECT auction, bidder, price, date_time, extra FROM bid;
SELECT * FROM q0;
