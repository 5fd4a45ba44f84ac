SELECT id, seller,
       avg(price) OVER (PARTITION BY seller ORDER BY dateTime, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT A.id, A.seller, B.price, B.dateTime,
         row_number() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime) AS place
  FROM auction A JOIN bid B ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
) AS sold
WHERE place = 1
