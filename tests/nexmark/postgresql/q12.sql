SELECT bidder, count(*), date_bin('10 seconds', sent, 'epoch') AS starttime,
       date_bin('10 seconds', sent, 'epoch') + INTERVAL '10 seconds' AS endtime
FROM bid
GROUP BY bidder, starttime, endtime
