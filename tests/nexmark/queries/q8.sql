-- Monitor new users: who opened an auction in the ten seconds in which they came.
CREATE MATERIALIZED VIEW q8 AS
  SELECT P.id, P.name, P.window_start
  FROM (
    SELECT id, name, window_start, window_end
    FROM TUMBLE(person, SIZE 10 SECONDS) WITH ('watermark.delay.millis' = 4000)
    GROUP BY id, name, window_start, window_end
  ) AS P
  JOIN (
    SELECT seller, window_start, window_end
    FROM TUMBLE(auction, SIZE 10 SECONDS) WITH ('watermark.delay.millis' = 4000)
    GROUP BY seller, window_start, window_end
  ) AS A ON P.id = A.seller AND P.window_start = A.window_start AND P.window_end = A.window_end;
SELECT * FROM q8;
