SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
       price, auction, bidder, bid_date_time, bid_extra
FROM (
  SELECT A.*, B.auction, B.bidder, B.price, B.date_time AS bid_date_time, B.extra AS bid_extra,
         row_number() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time) AS place
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
) AS ranked
WHERE place <= 1
