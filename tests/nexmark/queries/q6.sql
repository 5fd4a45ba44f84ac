-- Average selling price by seller, of the last ten auctions. The view keeps what each auction was sold for and when;
-- the window function is of the SELECT that reads it, since a continuous query has none.
CREATE MATERIALIZED VIEW q6 AS
  WITH offers AS (
    SELECT A.id, A.seller, B.price, min(B.date_time) AS date_time
    FROM auction WITH ('watermark.delay.millis' = 4000) AS A
    JOIN bid WITH ('watermark.delay.millis' = 4000) AS B WITHIN 1 MINUTE ON A.id = B.auction
    WHERE B.date_time BETWEEN A.date_time AND A.expires
    GROUP BY A.id, A.seller, B.price
  )
  SELECT o.id, o.seller, o.price AS final, o.date_time
  FROM offers AS o
  JOIN (SELECT id, max(price) AS price FROM offers GROUP BY id) AS best ON o.id = best.id AND o.price = best.price;
SELECT id, seller,
       avg(final) OVER (PARTITION BY seller ORDER BY date_time, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
FROM q6;
