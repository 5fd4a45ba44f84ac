-- Average price of a category: of what its auctions have closed with, or stand at. An auction is open for a minute at
-- most, so that WITHIN loses nothing.
CREATE MATERIALIZED VIEW q4 AS
  SELECT Q.category, avg(Q.final) AS average
  FROM (
    SELECT A.id, A.category, max(B.price) AS final
    FROM auction WITH ('watermark.delay.millis' = 4000) AS A
    JOIN bid WITH ('watermark.delay.millis' = 4000) AS B WITHIN 1 MINUTE ON A.id = B.auction
    WHERE B.date_time BETWEEN A.date_time AND A.expires
    GROUP BY A.id, A.category
  ) AS Q
  GROUP BY Q.category;
SELECT * FROM q4;
