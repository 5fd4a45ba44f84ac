SELECT B.auction, B.price, B.bidder, B.date_time, B.extra
FROM bid B
JOIN (
  SELECT max(price) AS maxprice, date_bin('10 seconds', date_time, 'epoch') AS starttime FROM bid GROUP BY starttime
) B1 ON B.price = B1.maxprice AND date_bin('10 seconds', B.date_time, 'epoch') = B1.starttime
