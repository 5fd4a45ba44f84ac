SELECT id, seller,
       avg(price) OVER (PARTITION BY seller ORDER BY date_time, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT A.id, A.seller, B.price, B.date_time,
         row_number() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time) AS place
  FROM auction A JOIN bid B ON A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
) AS sold
WHERE place = 1
