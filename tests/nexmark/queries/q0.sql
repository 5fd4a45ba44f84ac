-- Pass through: every bid as it is.
CREATE MATERIALIZED VIEW q0 AS
  SELECT auction, bidder, price, dateTime, extra FROM bid;
SELECT * FROM q0;
