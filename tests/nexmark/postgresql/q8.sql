SELECT P.id, P.name, P.starttime
FROM (SELECT id, name, date_bin('10 seconds', date_time, 'epoch') AS starttime FROM person GROUP BY 1, 2, 3) P
JOIN (SELECT seller, date_bin('10 seconds', date_time, 'epoch') AS starttime FROM auction GROUP BY 1, 2) A
  ON P.id = A.seller AND P.starttime = A.starttime
