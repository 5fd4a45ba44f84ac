-- Statements that were once answered otherwise than PostgreSQL answers them: @Zone SQL ;; parameter | parameter.
SELECT id, (SELECT f.f8::text) FROM facts f ORDER BY id
SELECT f.id, l.* FROM facts f, LATERAL (SELECT f.f8::text AS a, f.y::text AS b, round(f.f8) AS c, f.f4::text AS d) l ORDER BY id
SELECT f.id, l.* FROM facts f, LATERAL (SELECT t.id AS x, f.f8::text || t.f8 AS a, date_trunc('month', f.d) AS b, to_char(f.n2, 'FM990.0') AS c, round(f.f8 + t.f8) AS d FROM things t WHERE t.id < 3) l ORDER BY 1, 2
SELECT f.id, (SELECT sum(f.i4 + t.i4) FROM things t), (SELECT avg(f.i4) FROM things t), (SELECT max(f.i4 / 4) FROM things t) FROM facts f WHERE id <> 3 ORDER BY id
SELECT f.id, (SELECT string_agg(f.f8::text, ',') FROM things t WHERE t.id < 3) FROM facts f ORDER BY id
SELECT f.id, l.* FROM facts f, LATERAL (SELECT concat(f.f8, f.b) a, f.ai::text b, f.b || 'x' c) l ORDER BY id
SELECT f.id, (SELECT ceil(f.f4)), (SELECT f.i4 || f.ai), (SELECT f.f8::int FROM things WHERE id = 1 AND abs(f.f8) < 100) FROM facts f ORDER BY id
SELECT f.id, (SELECT array_agg(f.n2 ORDER BY t.id) FROM things t WHERE t.id < 3) , (SELECT f.ts - t.ts FROM things t WHERE t.id = 1), (SELECT f.d - t.d FROM things t WHERE t.id = 1) FROM facts f WHERE id < 3 ORDER BY id
SELECT f.id, (SELECT f.n2 / t.n2 FROM things t WHERE t.id = 1) FROM facts f ORDER BY id
SELECT f.id, (SELECT f.e::mood = t.e FROM things t WHERE t.id = 1) FROM facts f ORDER BY id
SELECT f.id, (SELECT f.e::mood = 'ok'), (SELECT enum_last(f.e::mood)) FROM facts f ORDER BY id
SELECT id FROM facts f WHERE EXISTS (SELECT bit_length(f.y)) ORDER BY id
SELECT f.id, (SELECT (SELECT g.f8::text || f.f8 FROM things g WHERE g.id = t.id AND f.f8 <> 0) FROM things t WHERE t.id = 1) FROM facts f ORDER BY id
WITH w AS (SELECT id, f8 FROM facts), v AS (SELECT w.id, (SELECT w.f8::text) AS x FROM w) SELECT v.id, v.x, (SELECT v.x || w.f8 FROM w WHERE w.id = v.id) FROM v ORDER BY 1
SELECT s, (SELECT max(f.s || t.f8) FROM things t WHERE t.id = 1) FROM facts f GROUP BY s ORDER BY 1
SELECT id, nth_value(b, 2) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING EXCLUDE GROUP) FROM facts ORDER BY id
SELECT f.id, x.c FROM facts f LEFT JOIN things t ON t.id = f.id JOIN LATERAL (SELECT f.f8::text || t.f8::text AS c) x ON true ORDER BY 1
SELECT f.id, (SELECT sum(f.i8) FROM things), (SELECT sum(f.f4) FROM things), (SELECT sum(t.i4) / 2 FROM things t WHERE t.i4 > f.i4) FROM facts f WHERE id in (1,6) ORDER BY id
SELECT sha256('\x01ff'), sha256('\x'), get_byte('\x0102', 1), sha256(y) FROM facts ORDER BY id
SELECT string_agg('Tea', ',' ORDER BY 'Tea') AS c0 FROM facts
SELECT array_agg(id ORDER BY 'x'::text, id DESC), array_agg(id ORDER BY NULL, id DESC), array_agg(id ORDER BY 1.5, id DESC), array_agg(id ORDER BY true, id DESC), array_agg(id ORDER BY date '2024-01-01', id DESC) FROM things
SELECT array_agg(1 ORDER BY 1), array_agg(id ORDER BY 'x'), count(*) OVER (ORDER BY 'x') , rank() OVER (ORDER BY 1) FROM facts GROUP BY id
SELECT id, sum(i4) OVER (ORDER BY ts RANGE BETWEEN '30 days' PRECEDING AND '1 day' FOLLOWING) FROM things ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY d RANGE BETWEEN '1 month' PRECEDING AND CURRENT ROW) FROM things ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY i4 RANGE BETWEEN '1' PRECEDING AND CURRENT ROW) FROM things ORDER BY id
SELECT id, count(*) OVER (ORDER BY c RANGE BETWEEN '1 hour' PRECEDING AND CURRENT ROW) FROM facts ORDER BY id
SELECT id, count(*) OVER (ORDER BY tz RANGE BETWEEN '1 month' PRECEDING AND CURRENT ROW) FROM facts ORDER BY id
WITH RECURSIVE a AS (SELECT 1 AS x UNION SELECT 2 ORDER BY 1), r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM a, r ORDER BY 1, 2
WITH RECURSIVE a AS (SELECT 1 AS x UNION SELECT 2 ORDER BY 1 LIMIT 1) SELECT * FROM a ORDER BY 1
SELECT count(*) FROM things GROUP BY 1.5
SELECT count(*) FROM things GROUP BY 'x'
SELECT sha256('\x01ff'), id FROM things ORDER BY id
SELECT get_byte('\x0102', 1), encode('\x61', 'hex'), convert_from('\x61', 'UTF8')
SELECT date '0044-03-15 BC', '0044-03-15 BC'::timestamp, timestamp '0044-03-15 12:30:00.5 BC', d FROM facts ORDER BY id
SELECT timestamptz '0044-03-15 00:00:00+00 BC'
SELECT d FROM facts WHERE d = '0044-01-01 BC'
SELECT d::text, ts::text, tz::text, d || '', concat(ts) FROM facts ORDER BY id
SELECT to_char(ts, 'YYYY'), to_char(d, 'Mon'), to_char(tz, 'HH24') FROM facts WHERE id in (4,5,1) ORDER BY id
SELECT ts::time, tz::time FROM facts ORDER BY id
SELECT array_positions(ARRAY(SELECT x FROM unnest(t1.ai) AS z(x) ORDER BY x), t1.id) FROM facts t1 ORDER BY id
SELECT (array_positions(t1.ai, (SELECT 1)))[t1.id] FROM facts t1 ORDER BY id
SELECT array_remove(ai, (SELECT 1)), array_replace(ai, (SELECT 1), 2), trim_array(ai, (SELECT 0)), array_to_string(ai, (SELECT ',')) FROM facts ORDER BY id
SELECT array_remove(ai, (SELECT min(t.id) FROM things t WHERE t.id = f.id)) FROM facts f ORDER BY id
SELECT to_char(date_trunc('month', ts), 'Mon YYYY') AS m, sum(n2) FROM things GROUP BY date_trunc('month', ts) ORDER BY date_trunc('month', ts)
SELECT to_char(ts, 'YYYY-MM') AS m, count(*) FROM things GROUP BY to_char(ts, 'YYYY-MM') ORDER BY to_char(ts, 'YYYY-MM')
SELECT * FROM facts AS t1 NATURAL JOIN things AS t2
SELECT * FROM facts AS t1 JOIN things AS t2 USING (id, i4)
SELECT * FROM facts AS t1 FULL JOIN things AS t2 USING (i4)
SELECT * FROM facts AS t1 RIGHT JOIN things USING (s) LEFT JOIN notes USING (id)
SELECT * FROM facts t1 JOIN things t2 USING (id), notes n JOIN things t3 USING (i4)
SELECT t2.*, t1.* FROM facts AS t1 NATURAL JOIN things AS t2
SELECT count(*), count(q.*) FROM (SELECT * FROM notes NATURAL JOIN things) q
SELECT *, n.tz FROM notes n JOIN (SELECT i4, max(s) AS m FROM facts GROUP BY i4) q USING (i4) ORDER BY 1, 2, 3
SELECT * FROM things t JOIN LATERAL (SELECT t.i4, t.id + 1 AS x) l USING (i4) ORDER BY 1, 2
SELECT * FROM notes JOIN things USING (i4) UNION ALL SELECT * FROM notes JOIN things USING (i4)
SELECT * FROM things a JOIN things b ON a.id = b.id JOIN notes c USING (tz)
SELECT 'a' > ALL (ARRAY[s, s]), 'a''b\c' > ALL (ARRAY[s, s]), '{b}' = ANY (ARRAY[s, 'x']) FROM facts ORDER BY id
SELECT justify_hours(NULL::interval), justify_days(NULL::interval), justify_interval(NULL::interval)
SELECT (CASE WHEN (t2.n2 > ALL (ARRAY[t2.n2, t2.n2])) THEN t2.j::jsonb ELSE t2.j::jsonb END - 'a') FROM notes n, facts t2 WHERE t2.id = 1
WITH w AS (SELECT i4, s AS txt FROM facts) SELECT * FROM things JOIN w USING (i4) ORDER BY i4, id, txt
SELECT bit_length('\x01ff'::bytea) AS c0, 1.5 AS c1 UNION ALL SELECT 1, 2.25 UNION ALL SELECT 1, div(7, 2)
SELECT f.id, (SELECT 1.5 UNION SELECT div(f.n2, 3) ORDER BY 1 LIMIT 1) FROM facts f ORDER BY id
SELECT f.id, l.x FROM facts f, LATERAL (SELECT 0.25 AS x UNION ALL SELECT div(f.n2, 3)) l ORDER BY 1, 2
SELECT f.id, l.x FROM facts f, LATERAL (SELECT f.d AS x UNION ALL SELECT '2024-01-01') l ORDER BY 1, 2
SELECT enum_first(enum_first('ok'::mood)), enum_range(enum_first('ok'::mood)), enum_last(e::mood) FROM facts
SELECT enum_first(coalesce(e::mood, 'ok')) FROM facts
SELECT to_jsonb(d), to_jsonb(ts), to_jsonb(tz), json_build_array(d) FROM facts ORDER BY id
SELECT array_remove(ARRAY[1, 2], ntile(1) OVER (ORDER BY id)), array_positions(ta, s) FROM facts ORDER BY id
SELECT array_remove(ARRAY[1, 9], max(id)), array_replace(ARRAY[1, 9], max(id), 5) FROM things
SELECT substring('abc'::bytea FROM 1 FOR 1) FROM (SELECT '{}'::int[] || t2.id AS c2 FROM facts AS t2) q
SELECT e::mood > ALL (ARRAY['sad', 'ok']::mood[]), e::mood = SOME ('{sad,ok}'), d = SOME ('{2024-02-29}') FROM facts ORDER BY id
SELECT div(id, 2) > ALL (ARRAY[0.5, 1.5]), sum(i8) = SOME (ARRAY[0.5, 10]) FROM facts GROUP BY id ORDER BY id
SELECT i4 > ALL ('{1,2}'), i4 = SOME (ARRAY[10, 42]), s NOT LIKE ALL (ARRAY['x%', 'T%']) FROM facts ORDER BY id
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3 ORDER BY 1) SELECT * FROM r
SELECT (j::jsonb -> 'a') || '{"z": 1}', '[1]' || (j::jsonb -> 'a'), (j::jsonb -> 'a') || (j::jsonb -> 'a') FROM facts ORDER BY id
SELECT q.x, q.x - 'a', q.x = '{}' FROM facts f, LATERAL (SELECT f.j::jsonb AS x) q WHERE id = 1
SELECT * FROM facts f JOIN LATERAL (SELECT f.j::jsonb AS x) q ON true WHERE id = 1
SELECT s ^@ 'T', starts_with(s, 'T') FROM facts ORDER BY id
SELECT greatest(make_interval(hours => 36), interval '1 day'), greatest(interval '36 hours', interval '1 day', NULL), least(interval '30 days', interval '1 month'), least(NULL::interval, interval '25 hours', interval '1 day')
SELECT greatest(ts - timestamp '2024-01-01', interval '1 month'), least(ts - timestamp '2024-01-01', interval '30 days', NULL) FROM things ORDER BY id
SELECT -CASE WHEN id > 0 THEN greatest(make_interval(hours => 36), interval '1 day') ELSE interval '1 day' END FROM things
SELECT id AS c0, ARRAY(SELECT upper(x) FROM unnest((ARRAY['x', 'y'] || 'Tea'::text)) AS z(x) ORDER BY x) AS c2 FROM facts AS t1 JOIN things AS t2 USING (id) GROUP BY id, id ORDER BY 1
SELECT enum_first('ok'::mood) FROM (SELECT nullif(substring(t2.y FROM 1 FOR 1), 'abc'::bytea) AS c1 FROM facts AS t2) AS t1
SELECT greatest(1, 2.5), least('b', 'a'), greatest(NULL::float8, 'NaN'), least(date '2024-01-01', NULL)
SELECT date_trunc('century', ts), date_trunc('decade', ts), date_trunc('millennium', ts) FROM facts ORDER BY id
SELECT date_trunc('decade', tz, 'Europe/Berlin'), date_trunc('century', tz, 'America/New_York') FROM notes ORDER BY id
SELECT t1.d, percentile_disc(0.5) WITHIN GROUP (ORDER BY (t1.j::jsonb ->> 'a')) AS c1 FROM facts AS t1 GROUP BY 1 ORDER BY 1
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY initcap(j::jsonb ->> 'a')), mode() WITHIN GROUP (ORDER BY j::jsonb ->> 'a') FROM facts
SELECT a.id, b.id FROM facts a JOIN things b ON round(b.f8) = a.i2 + 1 ORDER BY 1, 2
SELECT a.id, b.id FROM facts a JOIN things b ON EXISTS (SELECT 1 FROM notes n WHERE n.f4::text < b.f8::text AND n.id = a.id) ORDER BY 1, 2
SELECT x, extract(year from x), extract(decade from x), extract(century from x), extract(millennium from x), extract(isoyear from x), date_part('year', x) FROM generate_series(timestamp '2003-02-05 00:00:00 BC', '0301-01-01', '7 years 5 months 3 days') AS z(x)
SELECT x, extract(year from x), extract(decade from x), extract(century from x), extract(millennium from x), extract(isoyear from x), extract(year from x::date) FROM generate_series(timestamptz '2003-02-05 00:00:00 BC', '0301-01-01', '7 years 5 months 3 days') AS z(x)
SELECT date_trunc('decade', x), date_trunc('century', x), date_trunc('millennium', x), date_trunc('decade', x::date) FROM generate_series(timestamptz '2003-02-05 00:00:00 BC', '0301-01-01', '7 years 5 months 3 days') AS z(x)
SELECT x, to_char(x, 'YYYY YYY YY Y IYYY IYY IY I CC BC a.d. FMYYYY FMYY FMIYYY FMCC MM-DD YYYYth Y,YYY Y,YYYth') FROM generate_series(timestamp '2003-02-05 00:00:00 BC', '0301-01-01', '7 years 5 months 3 days') AS z(x)
SELECT x, to_char(x, 'YYYY YYY YY Y IYYY IYY IY I CC BC a.d. FMYYYY FMYY FMIYYY FMCC MM-DD YYYYth Y,YYY Y,YYYth') FROM generate_series(timestamptz '2003-02-05 00:00:00 BC', '0301-01-01', '7 years 5 months 3 days') AS z(x)
SELECT to_char(interval '-3 hours -2 years -7 min', 'YYYY HH24 MI SS MM DD US MS'), to_char(interval '-3 days -4.25 sec', 'DD FMDD SS US FMSS'), extract(decade from interval '-17 years'), extract(year from interval '-17 years')
SELECT * FROM generate_series(1, 5, '2') AS z(x)
SELECT generate_series(timestamp '2024-01-01', '2024-03-01', '1 mon 3 days')
SELECT ts = '0044-03-15 BC', ts < '0044-03-15 00:00:00 BC', tz > '0044-03-15 00:00:00+00 BC' FROM facts ORDER BY id
SELECT c FROM (VALUES ('0044-01-01 BC'), (date '2024-01-01'), (NULL)) v(c)
SELECT c FROM (VALUES (ARRAY[1]), ('{1,2}'), (NULL)) v(c)
SELECT array_agg(tz)::text, array_agg(d)::text, array_agg(ts)::text FROM (SELECT * FROM facts ORDER BY id LIMIT 20) q
SELECT degrees(f8), degrees(f4), degrees(i4), radians(f8), radians(f4) FROM facts WHERE id <> 3 ORDER BY id
SELECT degrees(1e307::float8)
SELECT * FROM (VALUES (1, '1'::jsonb), (2, NULL)) t(a, b) CROSS JOIN (SELECT '1'::jsonb AS x) u, unnest(ARRAY[1, 2]) g
SELECT * FROM (SELECT * FROM (SELECT '1'::jsonb AS x UNION ALL SELECT NULL) u) v UNION ALL SELECT '3'
WITH w AS (SELECT '1'::jsonb AS x) SELECT * FROM w CROSS JOIN facts WHERE id = 1
SELECT * FROM (SELECT id, j::jsonb FROM facts) u JOIN things USING (id)
SELECT * FROM things t NATURAL JOIN LATERAL (SELECT id, j::jsonb FROM facts) u
SELECT (array_agg(j::jsonb ORDER BY id))[1], array_agg(j::jsonb), q.x FROM notes, (SELECT * FROM (SELECT '1'::jsonb AS x) u) q GROUP BY x
WITH RECURSIVE r(a, b) AS (SELECT 1, NULL::jsonb UNION ALL SELECT a + 1, b FROM r WHERE a < 3) SELECT r.*, b FROM r
SELECT nullif(f4, n2), nullif(f4, f8), nullif(n2, f4), nullif(n2, f8), nullif(f4, i4), nullif(f4, i8), nullif(f4, 0.5), nullif(f4, '0.5'), nullif(i4, f4) FROM facts ORDER BY id
SELECT nullif(1.1::real, 1.1), nullif(0.1::real, 0.1::numeric), nullif(16777216::real, 16777217)
SELECT id, (id, s) IN (SELECT t.id, t.s FROM things t WHERE t.b = f.b), (id, s) NOT IN (SELECT t.id, f.s FROM things t) FROM facts f ORDER BY id
SELECT id, (n2, d) IN (SELECT t.n2, t.d FROM things t WHERE t.b = f.b), (f.e::mood, f.f8) = ANY (SELECT 'sad', f8 FROM things t WHERE t.b = f.b) FROM facts f ORDER BY id
SELECT b, (max(id), b) IN (SELECT t.id, t.b FROM things t WHERE t.b = f.b) FROM facts f GROUP BY b ORDER BY b
SELECT id FROM facts f WHERE (id, s) IN (SELECT t.id FROM things t WHERE t.b = f.b)
SELECT (NULL, 1) IN (SELECT 2, 2), (NULL, 1) IN (SELECT 2, 1), (1, 2) NOT IN (SELECT 1, NULL::int), (1, 2) IN (SELECT 1, 2 WHERE false)
SELECT CASE WHEN b THEN s::char(3) END FROM facts
SELECT CASE WHEN b THEN s::char(3) ELSE 'x' END, coalesce(s::char(3), 'x'), CASE WHEN b THEN s::char(3) ELSE s END FROM facts
SELECT CASE WHEN b THEN s::char(3) ELSE s::char(5) END AS q, (CASE id WHEN 1 THEN coalesce(NULL, s::char(7)) ELSE (s::char(2)) END) FROM facts
SELECT CASE WHEN b THEN s::char(3) END || 'x', length(CASE WHEN b THEN s::char(3) END), CASE WHEN b THEN s::varchar(3) END, coalesce(s::varchar(2), 'xx') FROM facts
SELECT count(*) FROM facts f JOIN (SELECT btrim(y, '\x01') AS x FROM facts) q ON f.y = q.x
SELECT string_agg(y, '\x61') OVER (ORDER BY id) FROM facts ORDER BY id
SELECT ltrim($1::bytea, 'a'), substring($1::bytea FROM 2), length($1::bytea), position($2::bytea in $1::bytea) ;; abc | b
SELECT overlay(y placing $2 from $1), btrim(y, $2), string_agg(y, $2) OVER () FROM facts ;; 1 | \x61
SELECT c - $1 FROM facts ORDER BY id ;; 01:00:00
@America/New_York SELECT tz::text, tz || '', concat(tz), to_json(tz), tz, to_char(tz, 'YYYY-MM-DD HH24:MI:SS OF TZH TZM') FROM (VALUES (timestamptz '1850-01-01 00:00:00+00'), ('1800-06-01 12:00+00'), ('0044-03-15 00:00:00+00 BC')) v(tz)
@America/New_York SELECT extract(year from tz), to_char(tz, 'YYYY IYYY Y'), date_trunc('century', tz), array_agg(tz)::text, jsonb_build_object('a', tz) FROM (VALUES (timestamptz '1850-01-01 00:00:00+00'), ('0001-01-01 01:00+00'), ('0044-03-15 00:00:00+00 BC')) v(tz) GROUP BY tz
SELECT sum((d - date '2024-01-01') * 2), avg(d - date '2024-01-01'), sum(DISTINCT d - '2024-01-01') FILTER (WHERE id > 1), sum(d - date '2024-01-01') OVER () FROM things GROUP BY d
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY 1.5), percentile_cont(0.5) WITHIN GROUP (ORDER BY 2), mode() WITHIN GROUP (ORDER BY 'x'::text), mode() WITHIN GROUP (ORDER BY true) FROM facts
SELECT round(grouping(f8) / 3.0, 2) FROM facts GROUP BY GROUPING SETS ((f8), ())
SELECT least('ok'::mood, $1), nullif($1, 'ok'::mood), coalesce($1, 'ok'::mood) FROM notes ;; ok
SELECT ((t2.u::uuid, t4.c0) IN ((t2.u::uuid, t2.e::mood), (t2.u::uuid, t2.e::mood))) FROM facts AS t2 LEFT JOIN (SELECT enum_first(t5.e::mood) AS c0, t5.f8 AS c2 FROM facts AS t5) AS t4 ON t2.f8 = t4.c2
SELECT date_trunc('century', iv), date_trunc('decade', iv), date_trunc('millennium', iv), date_trunc('century', -iv) FROM (SELECT interval '-217 years 5 mons 3 days' AS iv UNION ALL SELECT interval '1234 years 5 mons' UNION ALL SELECT NULL) v
SELECT array_to_string(ARRAY[NULL, NULL]::int[], ','), array_to_string(ARRAY[]::int[], ','), array_to_string(NULL::int[], ','), array_to_string(ARRAY[1, NULL], NULL), array_to_string(ARRAY[NULL], ',', 'x')
SELECT array_to_string(ARRAY[d, d], ','), array_to_string(ARRAY[ts], ',', '-'), array_to_string(ARRAY[tz], ',', NULL), array_to_string(ARRAY[c], ','), array_to_string(ARRAY[y], ','), array_to_string(ARRAY[b], ','), array_to_string(ARRAY[f4], ','), array_to_string(ARRAY[make_interval(days => id)], ',') FROM facts
SELECT ARRAY[y]::text, ARRAY[make_interval(days => id, hours => -id)]::text, ARRAY[c]::text, ARRAY[u]::text, ARRAY[e::mood]::text, ARRAY[n2]::text, ARRAY[f4, 1e7::real]::text FROM facts
SELECT id, ai BETWEEN SYMMETRIC ARRAY[1, 2] AND ai, ai NOT BETWEEN SYMMETRIC ARRAY[3] AND ARRAY[1], ai BETWEEN SYMMETRIC '{3}' AND '{1}', ta BETWEEN SYMMETRIC ta AND ARRAY['a'] FROM facts ORDER BY id
SELECT enum_range(nullif('ok'::mood, CASE WHEN bool_and(t1.b) THEN 'ok'::mood END))::text[] FROM facts AS t1
SELECT enum_first(max(e::mood)), enum_range(max(e::mood)), enum_range(NULL::mood) FROM facts
WITH w AS (SELECT octet_length($1) AS x) SELECT date_trunc('week', interval '1 day') FROM w ;; a
SELECT x, y FROM (SELECT s::char(4) AS x, id AS y FROM facts) q ORDER BY y
SELECT q.x AS a, count(*) FROM (SELECT s::char(4) AS x, id AS y FROM facts) q GROUP BY 1 ORDER BY 1
WITH w(k) AS (SELECT s::char(5) FROM facts) SELECT k, length(k), k || '|' FROM w
SELECT q.x, q.y FROM (SELECT s::varchar AS x, s::varchar(3) AS y FROM facts) q
SELECT (t6.c - t6.c) AS c1 FROM (SELECT ltrim('abc'::bytea, $1::bytea) AS c0, t5.i8 AS c1 FROM facts AS t5) AS t4 JOIN facts AS t6 ON t4.c1 = t6.i8 AND t6.b ;; \x
SELECT id = ANY (ARRAY[max(id), 3]) , id > ALL (ARRAY[count(*), 0, NULL]), max(id) = ANY (ARRAY[id, NULL]) FROM facts GROUP BY id ORDER BY id
SELECT (timestamp '2024-02-29 12:00:00' = ANY (ARRAY[timestamp '2024-02-29 12:00:00', (percentile_disc(0.5) WITHIN GROUP (ORDER BY date '2024-02-29') + time '12:00')])) AS c0 FROM facts
SELECT (coalesce(time '12:00', time '12:00') > ALL (ARRAY[time '12:00', date_trunc('day', t1.ts)::time])) AS c2 FROM facts AS t1 GROUP BY date_trunc('day', t1.ts), t1.d ORDER BY d
SELECT nullif($1, sum(DISTINCT i8)), nullif($2, array_agg(DISTINCT id ORDER BY id)) FROM facts WHERE id = 1 ;; 1 | {1}
SELECT id FROM facts ORDER BY interval '0' NULLS FIRST, id
SELECT interval '0' x, interval '1' year, interval '3' hour AS z, interval '2' month y
SELECT nullif(make_time(0, 0, 1.5), date_trunc('hour', NULL::time::interval)::time), NULL::time - time '12:00'
SELECT ROW(n6) IS DISTINCT FROM ROW(sign(n2)), ROW(n6, id) IS NOT DISTINCT FROM ROW(sign(n2), id), (n2, s) IS DISTINCT FROM (n2, NULL) FROM facts ORDER BY id
SELECT a.id, (SELECT b.j::jsonb FROM facts AS b WHERE b.b ORDER BY b.id DESC LIMIT 1) = a.j::jsonb FROM facts AS a ORDER BY a.id
SELECT a.id FROM facts AS a WHERE a.j::jsonb = (SELECT b.j::jsonb FROM facts AS b WHERE b.id = 1) ORDER BY a.id
SELECT coalesce(i2, 0) * i2, CASE WHEN b THEN i2 ELSE 0 END * i2, greatest(i2, -1) * i2, array[i2, 2], coalesce(NULL, i2, (7)), lag(i2, 1, 5) OVER (ORDER BY id) FROM facts ORDER BY id
SELECT a * a, b FROM (VALUES (300::smallint, 'x'), (2, 'y')) AS v(a, b) ORDER BY 1
SELECT (SELECT jsonb_agg(x) FROM unnest(ARRAY[1, 2]) AS z(x)) ->> 0, (SELECT j::jsonb FROM facts WHERE id = 1) -> 'c' ->> 'd', ((SELECT '{"a": 1}'::jsonb)) ->> 'a'
SELECT coalesce(i2, -(1)) * i2, coalesce(i2, -(-1)) * i2, coalesce(i2, '5', 0) * i2, (VALUES ('{"a": 1}'::jsonb)) ->> 'a' FROM facts ORDER BY id
SELECT * FROM ((VALUES (1)) AS x(q) JOIN things ON true) WHERE q = $1 ORDER BY id ;; 1
SELECT e::mood FROM facts UNION SELECT 'ok' ORDER BY 1
SELECT 'ok' UNION ALL SELECT e::mood FROM facts ORDER BY 1
SELECT x < 'ok' FROM (SELECT e::mood AS x FROM facts UNION SELECT 'ok') q ORDER BY x
SELECT e::mood FROM facts EXCEPT SELECT $1 ORDER BY 1 ;; ok
SELECT (d, d) OVERLAPS (d, '2024-03-01'), (tz, '1 day'::interval) OVERLAPS (tz, tz), (c, c) OVERLAPS (c, interval '1 hour'), (ts, ts) OVERLAPS (d, tz), (ts, '2025-01-01') OVERLAPS (ts, NULL) FROM facts ORDER BY id
SELECT (date '2024-01-01', '2024-02-01') OVERLAPS ('2024-01-15', '2024-03-01'), (date '2024-01-01', interval '1 day') OVERLAPS ('2024-01-15', interval '1 day')
SELECT (i4, i4) OVERLAPS (i4, i4) FROM facts
SELECT (d, $1) OVERLAPS (d, d) FROM facts ORDER BY id ;; 2024-05-01
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY '1.5'), percentile_disc(0.5) WITHIN GROUP (ORDER BY 2147483647) FROM facts
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY 'x') FROM facts
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY $1), percentile_cont($2) WITHIN GROUP (ORDER BY i4) FROM facts ;; 1 | 0.5
SELECT CASE WHEN b THEN 1 ELSE (SELECT 2) END, (SELECT 1 + 1)::int8, (SELECT max(id) FROM facts)::text, (SELECT * FROM (SELECT 1 AS a) q), (VALUES (1)) FROM facts
SELECT coalesce(s::varchar, s), coalesce(s, s::varchar), coalesce(s::varchar(2), s::varchar(3)), coalesce(s::varchar(2), s::varchar(2)), coalesce(s::varchar(2), 'x') FROM facts
SELECT coalesce(s::char(4), s), coalesce(s, s::char(4)), coalesce(s::char(4), s::varchar), coalesce(s::varchar, s::char(4)) FROM facts
SELECT nullif(s::varchar(3), s), nullif(s::char(4), 'x'), greatest(s::varchar, s), greatest(s, s::varchar(3)), greatest(s::char(4), s::char(4)), CASE WHEN b THEN s::varchar ELSE s END, CASE WHEN b THEN s ELSE s::varchar END FROM facts
SELECT coalesce(q.a, q.b), CASE WHEN q.b > 'a' THEN q.a ELSE q.b END, (SELECT q.a) FROM (SELECT s::varchar(3) AS a, s AS b FROM facts) q
SELECT coalesce(q.a, 'x'), (SELECT s::char(4) FROM facts WHERE id = 1), (s::char(3)), coalesce(s::name, s) FROM (SELECT s::char(3) AS a, s FROM facts) q
SELECT coalesce(s::char(3), NULL) FROM facts GROUP BY coalesce(s::char(3), NULL) ORDER BY 1
SELECT coalesce(s::char(3), 'zz') FROM facts GROUP BY 1 ORDER BY 1
SELECT s::char(4) FROM facts UNION SELECT s::char(4) FROM things ORDER BY 1
SELECT s::char(4) FROM facts UNION ALL SELECT NULL ORDER BY 1
SELECT 'x' UNION ALL SELECT s::varchar(3) FROM facts ORDER BY 1
SELECT s::name FROM facts UNION ALL SELECT s::text FROM facts ORDER BY 1
SELECT t1.c0 AS c0 FROM (VALUES (1), (2)) AS t1(c0) CROSS JOIN LATERAL (SELECT DISTINCT 1.5::int AS c0, (count(DISTINCT 1) / nullif(0::int8, 0)) AS c1, time '12:00' AS c2 FROM things AS t3 WHERE (t3.id IN (t3.id, t1.c0))) AS t2
SELECT $1 << 2, $2 >> 1, 5 # $3 FROM facts ;; 1 | 8 | 3
SELECT concat(s::char(3), 'x'), concat_ws('-', s::char(3), q.a), format('%s|', s::char(4)), s::char(3) || 'x' FROM (SELECT s, s::char(5) AS a FROM facts) q
SELECT time '12:00' = interval '12 hours', time '12:00' < interval '13 hours', interval '12 hours' = time '12:00', time '12:00' BETWEEN interval '1 hour' AND interval '20 hours', time '12:00' IN (interval '12 hours')
SELECT CASE c WHEN interval '12 hours' THEN 1 ELSE 2 END, CASE time '12:00' WHEN interval '12 hours' THEN 1 ELSE 2 END, nullif(c, interval '12 hours') FROM facts ORDER BY id
SELECT CASE c WHEN $1 + interval '1 hour' THEN 1 ELSE 2 END FROM facts ORDER BY id ;; 11:00
SELECT CASE WHEN id > ALL (ARRAY[id, i4]) AND id > ALL (ARRAY[id, i4]) THEN 1 ELSE 2 END, count(*) FROM facts GROUP BY (id > ALL (ARRAY[id, i4])) ORDER BY 1, 2
SELECT id FROM facts WHERE $1 IN ($2, tz) ;; 2024-03-31 00:30:00+00 | 2024-03-31 00:30:00+00
SELECT id FROM facts WHERE ($1, id) IN (($2, 1), (tz, 2)) ;; 2024-03-31 00:30:00+00 | 2024-03-31 00:30:00+00
SELECT id FROM facts WHERE ($1, id) IN ((tz, 1), ($2, 2)) ;; 2024-03-31 00:30:00+00 | 2024-03-31 00:30:00+00
SELECT id FROM facts WHERE $1 IN (tz, $2) ;; 2024-03-31 00:30:00+00 | 2024-03-31 00:30:00+00
SELECT id FROM facts WHERE $1 IN (1, 2, i8) ;; 100
SELECT nullif(c, interval '12 hours'), c BETWEEN interval '1 hour' AND interval '13 hours', c IN (interval '12 hours') FROM facts ORDER BY id
SELECT array_agg(DISTINCT s::char(3) ORDER BY s::char(3)), array_agg(s::varchar ORDER BY id), array_agg(s::char(2) ORDER BY id) FILTER (WHERE b) FROM facts
SELECT ARRAY[s::varchar, s], ARRAY[s, s::varchar], ARRAY[s::char(3), s::char(3)], ARRAY[s::char(3), 'x'], ARRAY[s::varchar(2), s::varchar(2)] FROM facts ORDER BY id
SELECT array_agg(s::char(3)) OVER (ORDER BY id) FROM facts ORDER BY id
SELECT ARRAY['a', 'b'], ARRAY[NULL, 'a'::varchar], ARRAY[s, s] FROM facts
SELECT (ts, q.iv) OVERLAPS (ts, q.iv * 2), (ts, tz - tz) OVERLAPS (d, q.iv) FROM facts, (SELECT interval '1 day' AS iv) q ORDER BY id
SELECT (id, $1) = (1, e::mood) FROM facts ORDER BY id ;; sad
SELECT ($1, id) IN ((e::mood, 1), ('ok', 2)) FROM facts ORDER BY id ;; sad
SELECT $1 = e::mood, e::mood IN ($1, 'ok') FROM facts ORDER BY id ;; sad
SELECT (id, $1) = (1, u::uuid) FROM facts ORDER BY id ;; a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
SELECT count(*) FROM (SELECT greatest(t2.u::uuid, t2.u::uuid) AS c0 FROM facts t2) t1 JOIN facts t3 ON true WHERE (t1.c0, $1) = (t3.u::uuid, t3.e::mood) ;; sad
SELECT ($1 + interval '1 day')::date FROM facts ;; 2024-02-29
SELECT ($1 + interval '1 day')::timestamp FROM facts ;; 2024-02-29
SELECT ($1 + interval '1 day')::time FROM facts ;; 01:00
SELECT ($1 + interval '1 hour') IS DISTINCT FROM time '12:00', c IS NOT DISTINCT FROM $2 + interval '1 hour' FROM facts ORDER BY id ;; 12:00 | 11:00
SELECT ARRAY(SELECT 'a'::char(3)), ARRAY(SELECT 'a'::char(3) UNION ALL SELECT 'b'::char(3))
SELECT concat(x, '|') FROM (SELECT 'abc'::char(3) x UNION ALL SELECT 'abcdef'::char(6)) t ORDER BY 1
SELECT replace(format('%s|', x), ' ', ''), replace(coalesce(x, 'u') || '|', ' ', '') FROM (VALUES ('a'::char(3)), ('bcdef'::text)) t(x) ORDER BY 1
SELECT array_agg(x ORDER BY x) FROM (VALUES ('abc'::char(3)), ('bcdef'::text)) t(x)
SELECT replace(concat(x, '|'), ' ', '') FROM (VALUES ('a'::char(3)), ('bcdef')) t(x) ORDER BY 1
SELECT x, concat(x, '|') FROM (VALUES ('a'::char(3)), ('b'::char(3))) t(x) ORDER BY 1
SELECT replace(concat(x, '|'), ' ', '') FROM (SELECT 'a'::char(3) x) a FULL JOIN (SELECT 'bcdef'::text x) b USING (x) ORDER BY 1
SELECT concat(x, '|') FROM (SELECT 'a'::char(3) x) a NATURAL FULL JOIN (SELECT 'b'::char(3) x) b ORDER BY 1
SELECT (SELECT relname::text FROM pg_class WHERE oid = 1259) FROM (SELECT 'a'::char(3) relname) t
SELECT (SELECT concat(relname, '|') FROM pg_class WHERE oid = 1259) FROM (SELECT 'a'::char(3) relname) t
SELECT (SELECT x FROM unnest(ARRAY['abcdef']) AS x), (SELECT concat(x, '|')) FROM (SELECT 'a'::char(3) x) t
SELECT (now(), interval '1 day') OVERLAPS (now(), now()) FROM pg_class LIMIT 1
SELECT (current_time, current_time) OVERLAPS (current_time, current_time), (current_time, current_time) OVERLAPS (current_time, NULL)
SELECT t = i, t <> i, i = t, t IS DISTINCT FROM i FROM (VALUES (time '10:00', interval '10 hour')) a(t,i)
SELECT time '10:00' IN (interval '10 hours', interval '1 hour'), interval '10 hours' NOT IN (time '10:00', interval '1 hour')
SELECT count(*) FROM (VALUES (time '10:00')) a(t) JOIN (VALUES (interval '10 hour')) b(i) ON t = i
SELECT id FROM facts WHERE time '10:00' = interval '10 hours' AND ts::time <> interval '1 day' ORDER BY id
SELECT t = $1::interval FROM (VALUES (time '10:00')) a(t) ;; 10 hours
SELECT quote_literal(0.5::numeric(2,2)), quote_nullable(0.5::numeric(2,2)), quote_literal(5), quote_literal('a'), quote_nullable(NULL), quote_literal(NULL)
SELECT quote_literal(f8), quote_literal(b), quote_nullable(n2), quote_literal(ai), quote_literal(ts), quote_literal(tz) FROM facts ORDER BY id
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY NULL)
SELECT ARRAY['sad'::mood] @> $1 ;; {sad}
SELECT $1 <@ ARRAY['sad'::mood] ;; {sad}
SELECT (ARRAY['sad'::mood] || $1)::text ;; {ok}
SELECT ($1 || ARRAY['sad'::mood])::text ;; {ok}
SELECT ARRAY['sad'::mood] || $1 ;; {ok}
SELECT $1 || ARRAY['sad'::mood] ;; {ok}
SELECT array_cat(ARRAY['sad'::mood], $1) ;; {ok}
SELECT array_append(ARRAY['sad'::mood], $1) ;; ok
SELECT array_prepend($1, ARRAY['sad'::mood]) ;; ok
SELECT array_append(ARRAY['sad'::mood], 'ok')
SELECT array_append(ARRAY[e::mood], $1), ARRAY[e::mood] @> $2 FROM facts WHERE e IS NOT NULL ORDER BY id ;; ok | {ok}
SELECT max(x), min(x) FROM (VALUES ('a'::char(3)), ('bc'::char(3))) t(x)
SELECT max(x) FILTER (WHERE x <> 'bc'), concat(max(x), '|') FROM (VALUES ('a'::char(3)), ('bc'::char(3))) t(x)
SELECT x, lag(x) OVER (ORDER BY x), first_value(x) OVER (ORDER BY x), max(x) OVER () FROM (VALUES ('a'::char(3)), ('bc'::char(3))) t(x) ORDER BY x
SELECT mode() WITHIN GROUP (ORDER BY x), percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES ('a'::char(3)), ('bc'::char(3))) t(x)
SELECT max(x) AS m FROM (VALUES ('a'::char(3), 1), ('bc'::char(3), 2)) t(x, k) GROUP BY k ORDER BY m
SELECT m FROM (SELECT max(x) AS m FROM (VALUES ('a'::char(3)), ('bc'::char(3))) t(x)) q
SELECT max(x)::text || '|', length(max(x)) FROM (VALUES ('a'::char(3)), ('bc'::char(3))) t(x)
SELECT row(1, 0.50::numeric(2,2))::text, row('a b', NULL, '', true, 1.0::float8, '2024-01-01'::timestamptz)::text
SELECT row(id, n2, f8, b, s, ts, y, ai, ta)::text FROM facts ORDER BY id
SELECT ARRAY[row(1,'a'), row(2, 'b c')]::text, row(row(1, 2), ARRAY[1,2])::text
SELECT row('a"b', 'a\b', '(', ',')::text, row()::text
SELECT (t)::text FROM (SELECT 1 AS a, 0.5::numeric(2,2) AS b) t
SELECT concat(row(1, 2)), row(1, 2)::text || '!', format('%s', row(1,'x y'))
SELECT to_json(row(1, 0.50::numeric(10,2))), to_jsonb(row(0.50, 1.0::float8)), json_agg(row(1, 0.50)), json_build_object('a', row(0.50::numeric(2,2)))
SELECT x, x = 'ok', x < 'ok' FROM (SELECT e::mood FROM facts UNION SELECT 'sad') t(x) ORDER BY x
SELECT 'sad' UNION SELECT e::mood FROM facts ORDER BY 1
SELECT 'a' AS k, count(*) FROM facts GROUP BY ROLLUP (k)
SELECT id % 2 AS m, b AS n, count(*) FROM facts GROUP BY GROUPING SETS ((m, n), (m), ()) ORDER BY 1, 2, 3
SELECT id % 2 AS m, id % 3 AS n, count(*), grouping(id % 2, id % 3) FROM facts GROUP BY CUBE (m, n) ORDER BY 1, 2, 3, 4
SELECT id AS m, count(*) FROM facts GROUP BY ROLLUP (m + 1)
SELECT 'a' SIMILAR TO '[[:alpha:]]', 'ab1' SIMILAR TO '[[:alpha:]0-9]+', ']' SIMILAR TO '[[:digit:]]', '-' SIMILAR TO '[^[:alpha:]]', 'a' SIMILAR TO '[^[:alpha:]]'
SELECT ai && '{}', ai @> '{}', ai <@ '{1,2,3,9}', '{3}' && ai, ai = '{1,2,3}', ai <> '{3}', ai < '{2}', ai IN ('{1,2,3}', '{3}') FROM facts ORDER BY id
SELECT ta && '{x,y}', ta @> '{"a b"}', ta <@ '{x,y,NULL}' FROM facts ORDER BY id
SELECT ai @> '{x}' FROM facts
SELECT ai @> '{1,2' FROM facts
SELECT ai && '3' FROM facts
SELECT array_agg(n2) @> '{1.50}', array_agg(d) && '{2024-02-29}', array_agg(f8) @> '{0.1}' FROM facts
SELECT array_agg(e::mood) @> '{sad}', array_agg(e::mood) && '{sad}' FROM facts
SELECT id FROM facts WHERE ai @> '{3}' AND NOT ai && '{9}' ORDER BY id
SELECT ai @> $1, ai && $2 FROM facts ORDER BY id ;; {3} | {9}
SELECT to_char(ts, 'TMMonth|TMDay|FMDay|Month|tmmonth') FROM facts WHERE isfinite(ts) ORDER BY id
SELECT '{1,2,3}'::int[] @> '{2}'
SELECT s SIMILAR TO '50!%' ESCAPE '!' FROM facts ORDER BY id
SELECT s SIMILAR TO '%\_1' FROM facts ORDER BY id
SELECT s NOT SIMILAR TO '[a-z]+' FROM facts ORDER BY id
SELECT s SIMILAR TO '(T|t)e_' FROM facts ORDER BY id
SELECT 'a' SIMILAR TO 'a' ESCAPE '', 'a_' SIMILAR TO 'a#_' ESCAPE '#'
SELECT 'a' NOT SIMILAR TO 'a!%' ESCAPE '!', 'a%' SIMILAR TO 'a!%' ESCAPE '!', 'a\' SIMILAR TO 'a\' ESCAPE ''
SELECT 'a' SIMILAR TO 'a' ESCAPE 'ab'
SELECT id FROM facts WHERE s SIMILAR TO '50!%' ESCAPE '!' OR s NOT SIMILAR TO '%!_%' ESCAPE '!' ORDER BY id
SELECT max(x) FROM (VALUES ('a'::varchar(3)), ('bc')) t(x)
SELECT min(s::char(3)), s::char(3) FROM facts GROUP BY s::char(3) ORDER BY 2
SELECT DISTINCT s::char(3) FROM facts ORDER BY 1
SELECT s::char(3), count(*) FROM facts GROUP BY 1 ORDER BY 1
SELECT array_agg(DISTINCT s::char(3)) FROM facts WHERE id < 3
SELECT string_agg(s::char(3), '|' ORDER BY id) FROM facts
SELECT (SELECT max(s::char(3)) FROM facts), (SELECT s::char(4) FROM facts WHERE id = 1) || '|'
SELECT nullif(max(s::char(3)), 'x') FROM facts
SELECT max(x) FROM (SELECT s::char(3) AS x FROM facts UNION ALL SELECT s::char(3) FROM things) q
SELECT CASE WHEN true THEN max(s::char(3)) END, CASE WHEN count(*) > 0 THEN max(s::char(3)) ELSE 'q' END FROM facts
SELECT max(x) = 'été', length(max(x)), max(x) LIKE 'é%', upper(max(x)), max(x) || '|' FROM (SELECT s::char(7) AS x FROM facts) q
SELECT max(x) OVER (PARTITION BY b ORDER BY id) FROM (SELECT id, b, s::char(3) AS x FROM facts) q ORDER BY id
SELECT x FROM (SELECT max(s::char(3)) AS x, b FROM facts GROUP BY b) q ORDER BY x
WITH q AS (SELECT b, max(s::char(3)) AS x FROM facts GROUP BY b) SELECT a.x, b.x FROM q a JOIN q b USING (b) ORDER BY 1
SELECT max(s::char(3)) AS x FROM facts UNION SELECT min(s::char(3)) FROM facts ORDER BY 1
SELECT max(s::char(3)) AS x FROM facts EXCEPT SELECT 'z'::char(3)
SELECT row(s::char(3), 1)::text, ARRAY[s::char(3)]::text, to_json(s::char(3)), concat(row(s::char(3))) FROM facts WHERE id = 1
SELECT row(NULL)::text, row(NULL, NULL)::text, row('')::text, row(' ')::text, row('NULL')::text, row(row(), row(NULL))::text
SELECT max(row(id, s)::text), count(DISTINCT row(id, b)) FROM facts
SELECT row(1, 2) = row(1, 2), row(1, 'a') < row(1, 'b'), row(1, NULL) IS NULL, row(NULL, NULL) IS NULL, row(1, 2) IN (row(1, 2), row(3, 4))
SELECT array_agg(row(id, s))::text FROM (SELECT id, s FROM facts WHERE id < 3 ORDER BY id) q
SELECT json_agg(row(id, s)), json_agg(f) FROM (SELECT id, s FROM notes ORDER BY id) f
SELECT to_json(ARRAY[row(1, 2.50), row(2, 3.00)]), jsonb_build_array(row(1.50, 'x')), json_build_object('k', row(0.10, true, NULL))
SELECT row(interval '1 day', '\x01'::bytea, '{"a": 1}'::json, ARRAY['a b', NULL], uuid '11111111-2222-3333-4444-555555555555', 'sad'::mood)::text
SELECT format('%s', row(1, NULL)), concat_ws('-', row(1, 2), ARRAY[1, 2]), 'x' || row(1, 2)
SELECT id % 2 AS m, id % 3 AS n, sum(i4), grouping(id % 2) FROM facts GROUP BY ROLLUP (m, n) HAVING grouping(id % 2) = 0 ORDER BY m, n, 3
SELECT id % 2 AS m, count(*) FROM facts GROUP BY CUBE (m) ORDER BY grouping(id % 2), m
SELECT upper(s) AS u, count(*) FROM facts GROUP BY ROLLUP (u) ORDER BY u NULLS LAST, 2
SELECT date_trunc('year', d) AS y, count(*) FROM facts WHERE isfinite(d) GROUP BY ROLLUP (y) ORDER BY y
SELECT id AS i4, count(*) FROM facts GROUP BY ROLLUP (i4) ORDER BY 1, 2
SELECT 'x' AS k, b, count(*) FROM facts GROUP BY ROLLUP (k, b) ORDER BY 1, 2, 3
SELECT 'x' AS k, 'x' AS l, count(*) FROM facts GROUP BY GROUPING SETS ((k), (l)) ORDER BY 1, 2
SELECT 1 AS k, 1 + 1 AS l, count(*) FROM facts GROUP BY ROLLUP (k, l) ORDER BY 1, 2, 3
SELECT NULL::int AS k, count(*), grouping(NULL::int) FROM facts GROUP BY ROLLUP (k) ORDER BY 3
SELECT 'x' AS k, count(*) FROM facts WHERE false GROUP BY ROLLUP (k)
SELECT 'x' AS k, sum(id) OVER () FROM facts GROUP BY ROLLUP (k, id) ORDER BY 1, 2
SELECT to_char(x, '9990.999'), to_char(x, 'FM9990.999'), to_char(x, '99.9'), to_char(x, 'FM99.9'), to_char(x, 'S9999.9'), to_char(x, '9999MI'), to_char(x, 'MI9999') FROM (VALUES ('NaN'::float8), ('Infinity'), ('-Infinity'), ('1.25'), ('-0.004'), ('12345.5')) t(x)
SELECT to_char(x, '9999PR'), to_char(x, '9,999.9'), to_char(x, '0000'), to_char(x, '000,000.00'), to_char(x, 'FM9,999,999.99'), to_char(x, 'S99'), to_char(x, '99PR') FROM (VALUES ('NaN'::float8), ('Infinity'), ('-Infinity'), ('1.25'), ('-0.004'), (NULL)) t(x)
SELECT id, to_char(f8, '9990.99'), to_char(f4, '999') FROM facts WHERE id <> 3 ORDER BY id
SELECT to_char(1234.5::float8, '9,999.99'), to_char(0.5::float4, '0.0'), to_char(1e15::float8, '9999999999999999'), to_char(123456.789::float8, 'FM999,999,999.00')
SELECT to_char(1e300::float8, '9990'), to_char(1e30::float8, 'FM99')
SELECT to_char(-0.004::numeric, '99.9'), to_char(-0.004::float8, 'S99'), to_char('-0'::float8, '9'), to_char(-0.4::float4, 'FM9'), to_char(-0.6::float8, '9PR'), to_char(NULL::float8, '9.9'), to_char(-5::int, '99MI'), to_char(0, 'FM99.9')
SELECT '12:30:45.678'::time(1), '2024-01-01 12:30:45.678'::timestamp(0), '2024-01-01 12:30:45.678+00'::timestamptz(1), interval '1.2345 sec'::interval(2), time(0) '23:59:59.6'
SELECT ts::timestamp(0), ts::timestamp(3), tz::timestamptz(1), c::time(2), ts::time(0) FROM facts WHERE isfinite(ts) ORDER BY id
SELECT c::time(0), c::time(7) FROM facts ORDER BY id
SELECT '2024-01-01 12:30:45.6789'::timestamp(3) without time zone, cast('12:00:00.55' AS time(1) without time zone), (interval '1 day 2.55 sec')::interval(1)
SELECT octet_length('a'::char(3)), bit_length('a'::char(3)), length('a'::char(3)), char_length('a'::char(3)), octet_length(s::char(4)) FROM facts ORDER BY id
SELECT x::timestamp(0), x::timestamp(1), x::timestamp(3), x::timestamptz(2), x::timestamp(6), x::timestamp(9) FROM (VALUES ('2024-01-01 12:30:45.678901'::timestamp), ('1999-12-31 23:59:59.5'), ('infinity'), (NULL), ('0044-03-15 12:00:00.25 BC'), ('2000-01-01')) t(x)
SELECT x::interval(0), x::interval(2) FROM (VALUES ('1 year 2 mons -3 days 04:05:06.789'::interval), ('-00:00:01.555'), (NULL), ('0')) t(x)
SELECT x::time(0), x::time(1), x::time(3) FROM (VALUES ('23:59:59.5'::time), ('24:00:00'), ('00:00:00.05'), (NULL)) t(x)
SELECT max(ts::timestamp(0)), count(DISTINCT c::time(0)) FROM facts WHERE isfinite(ts)
SELECT date_trunc('second', ts::timestamp(0)) = ts::timestamp(0) FROM facts ORDER BY id
SELECT ts::timestamp(0) FROM facts WHERE ts::timestamp(0) > '2000-01-01' ORDER BY ts::timestamp(0), 1
SELECT ts::timestamp(0) AS t, count(*) FROM facts GROUP BY ts::timestamp(0) ORDER BY 1
SELECT $1::timestamp(0), $2::time(1) ;; 2024-01-01 00:00:00.7 | 10:00:00.25
SELECT localtimestamp(0) = date_trunc('second', localtimestamp(0)), current_timestamp(0) = date_trunc('second', current_timestamp(0)), current_time(0) IS NOT NULL
SELECT max(DISTINCT x), min(DISTINCT x), max(DISTINCT x) FILTER (WHERE x <> 'b') FROM (SELECT 'b'::char(3) AS x UNION ALL SELECT 'a'::char(3)) s
SELECT max(x ORDER BY x), max(DISTINCT x::char(4)) FROM (SELECT 'b'::char(3) AS x UNION ALL SELECT 'a'::char(3)) s
SELECT octet_length(coalesce('a'::char(4), 'b')), octet_length(coalesce(NULL::char(4), 'b')), octet_length(CASE WHEN true THEN 'a'::char(2) ELSE 'b'::char(3) END)
SELECT concat(CASE WHEN x = 'a' THEN x ELSE coalesce('c', x) END, '|') FROM (SELECT 'b'::char(3) AS x UNION ALL SELECT 'a'::char(3)) s ORDER BY 1
SELECT '{12:00:00.55,NULL}'::time(1)[], ARRAY['12:00:00.55'::time]::time(0)[], '{{12:00:00.55},{12:00:00.44}}'::time(1)[], '{12:00:00.55}'::time(6)[], NULL::time(1)[], '{}'::time(1)[]
SELECT '{"2020-01-01 12:00:00.5"}'::timestamp(0)[], ARRAY['1.55 sec'::interval]::interval(1)[], '{"2020-01-01 12:00:00.55+00"}'::timestamptz(1)[]
SELECT array_agg(t ORDER BY a)::text FROM (SELECT 1 AS a, 'x y' AS b UNION ALL SELECT 2, NULL) t
SELECT t::text FROM (SELECT 1 AS a, 2.5::float8 AS b, true AS c, NULL::float8 AS d, 'a b' AS e, 0.50 AS f, ARRAY[1,NULL] AS g, ARRAY[1.5::float8] AS h, '' AS i, interval '1 day' AS j, date '2020-01-01' AS k, false AS l, ARRAY[row(1,2.5::float8),row(NULL,2)] AS m, row(row(true),'x') AS n, '\x01'::bytea AS o, NULL::date AS p) t
SELECT concat(t, '|'), format('%s', t), concat(row(1, 2.5::float8, row(false, 1e20::float8)), '|') FROM (SELECT 1.5::float8 AS a, NULL::float8 AS b, 2::float4 AS c) t
SELECT row(t.*)::text, row(t.*) IS NULL, row(t.*) = row(1, 2.5) FROM (SELECT 1 AS a, 2.5::float8 AS b) t
