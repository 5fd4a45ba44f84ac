SELECT row_to_json(c.*) FROM customers c ORDER BY id
SELECT row_to_json(c) FROM customers c ORDER BY id
SELECT to_jsonb(c.*) FROM customers c ORDER BY id
SELECT id FROM customers c WHERE c.* IS NOT NULL ORDER BY id
SELECT id FROM customers c WHERE c IS NULL ORDER BY id
SELECT id, c.* IS NULL FROM customers c ORDER BY id
SELECT count(c.*) FROM customers c
SELECT * FROM json_to_record('{"a":1,"b":"x"}') AS x(a int, b text)
SELECT * FROM jsonb_to_record('{"a":1,"b":[1,2]}') AS x(a int, b int[], c text)
SELECT * FROM json_to_recordset('[{"a":1,"b":"x"},{"a":2}]') AS x(a int, b text)
SELECT c.id, x.age FROM customers c, jsonb_to_record(c.profile::jsonb) AS x(age numeric) WHERE id < 3 ORDER BY 1
SELECT e.id, x.* FROM products e, jsonb_to_recordset(e.attributes::jsonb -> 'parts') AS x(id int, q numeric) WHERE e.id=2 ORDER BY 2
SELECT json_strip_nulls('{"a":null,"b":[1,null,{"c":null}]}'), jsonb_strip_nulls('{"a":null,"b":[1,null,{"c":null}]}')
SELECT id, jsonb_strip_nulls(profile::jsonb) FROM customers ORDER BY id
SELECT regexp_substr('foobarbaz', 'b..'), regexp_substr('foobarbaz','b(..)',1,2,'',1), regexp_substr('abc','x')
SELECT regexp_instr('foobarbaz','b..'), regexp_instr('foobarbaz','b..',1,2)
SELECT regexp_matches('foobarbequebaz', 'ba.', 'g')
SELECT regexp_matches('foobarbequebaz', '(b[^b]+)(b[^b]+)', 'g')
SELECT m FROM customers, regexp_matches(name, '[aeiou]', 'g') AS m ORDER BY id
SELECT id, (regexp_matches(name, 'A(d)a'))[1] FROM customers ORDER BY id
SELECT id, regexp_match(name, '(x)|(A)') FROM customers ORDER BY id
SELECT width_bucket(5, ARRAY[1,3,7]), width_bucket(0.5, ARRAY[1,3,7]::numeric[]), width_bucket('b'::text, ARRAY['a','c'])
SELECT id, width_bucket(total, ARRAY[0,10,100]::numeric[]) FROM orders ORDER BY id
SELECT scale(8.4100), scale(5), trim_scale(8.4100), trim_scale(100.00), scale(total) FROM orders ORDER BY id
SELECT normalize('é'), normalize('é', NFD), 'x' IS NORMALIZED, normalize(name, NFKC) FROM customers ORDER BY id
SELECT parse_ident('"SomeSchema".sometable'), parse_ident('a.b.c', false)
SELECT factorial(5), factorial(20), factorial(25), factorial(0)
SELECT 5!
SELECT jsonb_pretty('{"a":[1,{"b":2}],"c":{}}'::jsonb)
SELECT id, jsonb_pretty(profile::jsonb) FROM customers ORDER BY id
SELECT to_number('12,454.8-', '99G999D9S')
SELECT to_number('1234.5', '9999.9'), to_number('$1,234', 'L9,999')
SELECT rank(100) WITHIN GROUP (ORDER BY total) FROM orders
SELECT dense_rank(100) WITHIN GROUP (ORDER BY total), percent_rank(100) WITHIN GROUP (ORDER BY total), cume_dist(100) WITHIN GROUP (ORDER BY total) FROM orders
SELECT rank(3, 'x') WITHIN GROUP (ORDER BY id, name DESC) FROM customers
SELECT pg_catalog.int4 '7'
SELECT pg_catalog.int4 '7', pg_catalog."date" '2024-01-01', CAST('5' AS pg_catalog.int8)
SELECT id FROM orders ORDER BY total USING >, id
SELECT id FROM orders ORDER BY total USING < NULLS FIRST, id
SELECT id FROM orders ORDER BY total USING OPERATOR(pg_catalog.>) , id
SELECT json_object_agg(id, total) FILTER (WHERE total > 0) FROM orders
SELECT jsonb_object_agg(id, total) FILTER (WHERE total > 0) FROM orders
SELECT json_object_agg(id, status ORDER BY id) FROM orders
SELECT json_agg(o) FROM (SELECT id, total FROM orders ORDER BY id LIMIT 3) o
SELECT json_agg(row_to_json(o)) FROM (SELECT id, total FROM orders ORDER BY id LIMIT 3) o
SELECT json_agg(tags ORDER BY id) FROM customers
SELECT * FROM jsonb_array_elements('[1,"a",null]') WITH ORDINALITY
SELECT * FROM jsonb_array_elements('[1,"a",null]') WITH ORDINALITY AS t(v, n)
SELECT c.id, v, n FROM customers c, jsonb_array_elements_text(c.profile::jsonb -> 'langs') WITH ORDINALITY AS t(v, n) WHERE c.id < 4 ORDER BY 1, 3
SELECT * FROM jsonb_object_keys('{"a":1,"b":2}')
SELECT k FROM customers c, jsonb_object_keys(c.profile::jsonb) k WHERE c.id < 5 ORDER BY 1
SELECT k.* FROM json_object_keys('{"a":1,"b":2}') WITH ORDINALITY AS k(name, n)
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b','c'])
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b','c']) WITH ORDINALITY AS t(a,b,n)
SELECT * FROM generate_series(1,3) WITH ORDINALITY
SELECT x, n FROM regexp_split_to_table('a b c', ' ') WITH ORDINALITY AS t(x, n)
SELECT * FROM string_to_table('a,b', ',') WITH ORDINALITY t(x, n)
SELECT * FROM jsonb_each('{"a":1}') WITH ORDINALITY AS t(k, v, n)
SELECT * FROM generate_subscripts(ARRAY[1,2,3], 1)
SELECT to_number('12,454.8-', '99G999D9S'), to_number('12345', '999'), to_number('1234.5', '9999.99'), to_number('<12>', '99PR'), to_number('-0.5', '9.9')
SELECT to_number('$1,234', 'L9,999'), to_number(' 12 ', '99')
SELECT to_number('abc', '99')
SELECT trim_scale(8.4100), trim_scale(100.00), trim_scale(total) FROM orders
SELECT trim_scale(total) FROM orders ORDER BY trim_scale(total)
SELECT trim_scale(total)::text, trim_scale(total) + 1 FROM orders ORDER BY id
SELECT * FROM jsonb_each('{"a":1}')
SELECT o.id, j.* FROM orders o, jsonb_each('{"a":1}') j WHERE id < 103 ORDER BY 1
SELECT * FROM (SELECT profile::jsonb AS p, id FROM customers) s ORDER BY id
SELECT g FROM generate_series(1, 5, 2) AS g
SELECT g, g / 2 FROM generate_series(5, 1, -2) AS g
SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS t(a, b)
SELECT c.id, g.x FROM customers c, generate_series(1, c.id) AS g(x) WHERE c.id < 3 ORDER BY 1, 2
SELECT count(*), sum(g) FROM generate_series(1, 100) g
SELECT d::date FROM generate_series('2024-01-01'::date, '2024-01-03', '1 day') d
SELECT regexp_match('abc', 'B', 'i'), regexp_match('abc', '(a)(x)?'), regexp_match('foo', '(o)(o)?', 'i')
SELECT regexp_match('abc', 'b', 'g')
SELECT regexp_count('abcABC', 'b', 1, 'i'), regexp_count('abcabc', 'b', 3), regexp_count('abc', NULL)
SELECT regexp_instr('foobarbaz','b..'), regexp_instr('foobarbaz','b..',1,2), regexp_instr('foobarbaz','b..',1,2,1), regexp_instr('abc', 'x'), regexp_instr('foobarbaz', 'b..', 5)
SELECT regexp_split_to_array('aXbxc', 'x', 'i'), regexp_split_to_array('a b', ' ')
SELECT * FROM regexp_split_to_table('aXbxc', 'x', 'i') AS t(y)
SELECT regexp_split_to_table(name, ' ') FROM customers WHERE id = 1
SELECT id, regexp_matches(name, '(.)a', 'g') FROM customers ORDER BY id
SELECT count(*) FROM customers, regexp_matches(name, 'a', 'g') m
SELECT m[1], n FROM regexp_matches('a1b2', '([a-z])([0-9])', 'g') WITH ORDINALITY AS t(m, n)
SELECT string_to_table('a,b,,c', ',', '')
SELECT x FROM string_to_table('abc', NULL) AS x
SELECT regexp_substr('foobarbaz', 'b..', 1, 2), regexp_substr('ABC', 'b', 1, 1, 'i'), regexp_substr('foobar', '(o)(b)', 1, 1, '', 2), regexp_substr(name, '[aeiou]') FROM customers ORDER BY id
SELECT regexp_substr('foo', 'o', 0)
SELECT regexp_like('ABC', 'b', 'i'), regexp_like('abc', 'x')
SELECT factorial(-1)
SELECT factorial(40)
SELECT factorial(id) FROM customers ORDER BY id
SELECT width_bucket(total, 0, 100, 4) FROM orders ORDER BY id
SELECT width_bucket(5, ARRAY[1, NULL])
SELECT width_bucket(NULL::int, ARRAY[1]), width_bucket(5, '{1,3}'::int[]), width_bucket(2, '{1,3}')
SELECT json_object_agg(name, id) FROM customers
SELECT jsonb_object_agg(id, name ORDER BY id), jsonb_object_agg(id, tags) FROM customers
SELECT status, json_object_agg(id, total::float8 ORDER BY id) FROM orders GROUP BY status ORDER BY 1
SELECT json_object_agg(id, placed ORDER BY id) FROM orders WHERE id < 103
SELECT json_object_agg(1, 2) WHERE false
SELECT id, jsonb_object_agg(id, name) OVER (ORDER BY id) FROM customers ORDER BY id
SELECT json_object_agg(placed, 1) FROM orders WHERE id = 101
SELECT status, rank(50) WITHIN GROUP (ORDER BY total DESC) AS r FROM orders GROUP BY status ORDER BY 1
SELECT rank(NULL::numeric) WITHIN GROUP (ORDER BY total), dense_rank(NULL::numeric) WITHIN GROUP (ORDER BY total DESC) FROM orders
SELECT percent_rank(5) WITHIN GROUP (ORDER BY total) FILTER (WHERE id > 103), cume_dist(1e9) WITHIN GROUP (ORDER BY total) FROM orders
SELECT rank(1, 2) WITHIN GROUP (ORDER BY id) FROM orders
SELECT percent_rank(1) WITHIN GROUP (ORDER BY id) FROM orders WHERE false
SELECT json_agg(c.*) FROM (SELECT id, name FROM customers WHERE id < 3 ORDER BY id) c
SELECT jsonb_agg(c) FROM (SELECT id, name FROM customers WHERE id < 3) c
SELECT array_to_json(array_agg(row_to_json(c.*))) FROM (SELECT id FROM customers ORDER BY id) c
SELECT c.id, row_to_json(o.*) FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.id < 103 ORDER BY 1, o.id
SELECT c.id FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o.* IS NULL ORDER BY 1
SELECT c.id FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o IS NOT NULL ORDER BY 1, o.id
SELECT parse_ident('a.b c'), parse_ident('a.b c', true)
SELECT parse_ident('a.b c', false), parse_ident('A."B c"')
SELECT jsonb_pretty('[]'), jsonb_pretty('{"a": {}, "b": "[]", "c": ["x", {"y": null}]}'), jsonb_pretty('"x"'), jsonb_pretty(NULL)
SELECT normalize('é'), normalize('é', NFC), normalize(NULL)
SELECT * FROM json_to_record('{"a":1.5,"b":{"x":1},"c":["p",null],"d":"2024-01-02","e":null,"F":true}') AS r(a numeric(5,2), b json, c text[], d date, e int, "F" bool, zz text)
SELECT a, b FROM json_to_record('[1]') AS r(a int, b int)
SELECT * FROM json_to_recordset('[{"a":1},{"a":"x"}]') AS r(a int)
SELECT * FROM json_to_recordset('{"a":1}') AS r(a int)
SELECT json_to_record('{"a":1}')
SELECT * FROM json_to_record('{"a":1}')
SELECT r.a + 1, count(*) FROM jsonb_to_recordset('[{"a":1},{"a":1}]') AS r(a int) GROUP BY 1
SELECT id FROM orders ORDER BY total USING >, id USING <
SELECT id FROM orders ORDER BY total USING =
SELECT pg_catalog.int4 '7', pg_catalog.float8 '1.5', pg_catalog.interval '1 day'
SELECT json_array_elements('{"a":1}')
SELECT jsonb_object_keys('[1]')
SELECT jsonb_array_elements_text('5')
SELECT row_to_json(o) FROM orders o ORDER BY id
SELECT to_json(total), to_jsonb(total), to_json(100.00), to_json(1.5::float8) FROM orders ORDER BY id
SELECT json_build_object('a', 1, 'b', total, 'c', NULL, 'd', ARRAY[1.50, 2]) FROM orders ORDER BY id
SELECT jsonb_build_object('a', 1, 'b', total, 'n', jsonb_build_object('x', 1.50, 'y', jsonb_build_array(2.0, 'q'))) FROM orders ORDER BY id
SELECT json_build_array(1, 'a', total, NULL, true, now() IS NULL) FROM orders ORDER BY id
SELECT json_build_object(), json_build_array(), jsonb_build_object()
SELECT json_build_object(status, id), json_build_object(id, status) FROM orders ORDER BY id
SELECT json_build_object(NULL, 1)
SELECT jsonb_agg(total ORDER BY id), json_agg(total ORDER BY id), json_agg(placed ORDER BY id) FROM orders
SELECT json_agg(json_build_object('id', id, 't', total) ORDER BY id) FROM orders
SELECT status, json_agg(total ORDER BY id) FROM orders GROUP BY status ORDER BY 1
SELECT json_object_agg(id, total ORDER BY id), jsonb_object_agg(id, total) FROM orders
SELECT array_to_json(ARRAY[1.50, 2.25]), to_json(ARRAY[[1,2],[3,4]]), to_json('a"b'::text), to_json(NULL::int)
SELECT to_jsonb(e) FROM events e ORDER BY id
SELECT row_to_json(p) FROM products p ORDER BY id
SELECT to_json(interval '1 day 2 hours'), to_json(date '2024-01-01'), to_json(time '12:00'), to_json('\xdead'::bytea), to_json(ARRAY[timestamp '2024-01-01 10:00'])
SELECT row_to_json(row(1, 2.50, 'x', NULL)), to_json(row(1, row(2.0, 3)))
SELECT jsonb_build_object('a', attributes::jsonb -> 'color', 'n', attributes::jsonb -> 'n') FROM products ORDER BY id
SELECT json_build_object('o', o.*) FROM (SELECT 1 AS a, 2.50 AS b) o
SELECT c.name, (SELECT json_agg(o.total ORDER BY o.id) FROM orders o WHERE o.customer = c.id) FROM customers c ORDER BY id
SELECT (SELECT row_to_json(x) FROM (SELECT c.id, c.score) x) FROM customers c ORDER BY id
SELECT json_agg(x) FROM (VALUES (1, 'a'), (2, NULL)) x
SELECT json_agg(DISTINCT status) FROM orders
SELECT jsonb_build_object('a', 1.50) ->> 'a', jsonb_build_object('a', 1.50)::text, json_build_object('a', 1.50)::text
SELECT jsonb_build_array(1, 2.50)::text, to_jsonb(1.50)::text, to_jsonb(1.50) = '1.5'
SELECT 1 / 3.0, 1.0 / 30000000000, 2.0 / 3, 100.00 / 7, 0.0 / 5, 1e10 / 3.0, 5.00 / 2.5
SELECT total / 3, 1.0 / id, total / total FROM orders WHERE id < 104 ORDER BY id
SELECT avg(id), avg(total), avg(customer), sum(total) / count(*) FROM orders
SELECT id, avg(quantity) FROM (SELECT order_id AS id, quantity FROM lines) l GROUP BY id ORDER BY 2, 1
SELECT '1.123456789012345'::numeric, '1e-15'::numeric, '0.1'::numeric + 1
SELECT 1e20::float8::numeric, 0.1::float8::numeric, 1e-15::float8::numeric, 123456789.123456789::float8::numeric, (1/3.0)::float8::numeric
SELECT score::numeric, ratio::numeric FROM customers JOIN events USING (id) ORDER BY id
SELECT id FROM orders WHERE total = 0.0100000000001
SELECT id FROM orders WHERE total = 0.01
SELECT amount * 1.123456789012345 FROM events ORDER BY id
SELECT total::text::numeric, (total::text)::numeric + 0 FROM orders ORDER BY id
SELECT round(total / 3, 4), round(5, 2), round(2.5, 3), round(total, 4), trunc(total, 3) FROM orders ORDER BY id
SELECT CASE WHEN id > 102 THEN 1.5 ELSE 2 END, coalesce(total, 0), greatest(total, 1.234) FROM orders ORDER BY id
SELECT 1.5 UNION ALL SELECT 2 UNION ALL SELECT 3.25
SELECT sqrt(2.0), exp(1.0), ln(2.0), power(2.0, 0.5), 2.0 ^ 3
SELECT 5 % 3.5, 5.5 % 2, mod(7.25, 2)
SELECT ARRAY[1.5, 2.25, 3], unnest(ARRAY[1.5, 2])
SELECT sum(x) FROM (VALUES (1.5), (2.25)) v(x)
SELECT x FROM (VALUES (1.5), (2.25), (3)) v(x)
SELECT 99999999999999999999999999999999999999::numeric * 10
SELECT 12345678901234567890.12 * 98765432109876543210.98
SELECT 1.1 * 1.1, 1.10 + 2.205, 3 - 0.50, -1.50, abs(-1.50), 1.5 * 2
SELECT round(5, 2)
SELECT round(total, 4) FROM orders ORDER BY id
SELECT 1e20::float8::numeric, 0.1::float8::numeric, 123456789.123456789::float8::numeric, (1/3.0)::float8::numeric, 1.1::float4::numeric
SELECT 1.0 / 30000000000 * 2, (1.0 / 3) * 3, 2 / 3.0 + 1 > 1.6666
SELECT total / quantity AS q FROM orders o JOIN lines l ON l.order_id = o.id ORDER BY q, 1
SELECT total / quantity AS q FROM orders o JOIN lines l ON l.order_id = o.id ORDER BY q DESC LIMIT 3
SELECT DISTINCT total / 2 FROM orders ORDER BY 1
SELECT customer, avg(total) FROM orders GROUP BY customer ORDER BY avg(total), 1
SELECT customer, avg(total) AS a FROM orders GROUP BY customer HAVING avg(total) > 1 ORDER BY a
SELECT total / 3 FROM orders GROUP BY total / 3 ORDER BY 1
SELECT total / 3 AS x, count(*) FROM orders GROUP BY x ORDER BY 1
SELECT total / 0 FROM orders
SELECT x / y FROM (VALUES (1.0, 0), (NULL, 0)) v(x, y)
SELECT avg(total) OVER (ORDER BY id) FROM orders ORDER BY id
SELECT (SELECT avg(total) FROM orders), avg(x) FROM (VALUES (1), (2)) v(x)
SELECT a FROM (SELECT avg(total) AS a FROM orders) s
WITH a AS (SELECT avg(total) AS a FROM orders) SELECT * FROM a
SELECT avg(total) FROM orders WHERE false
SELECT avg(id::bigint), avg(quantity::smallint), avg(price), avg(discount) FROM lines
SELECT profile::jsonb ->> 'age' AS a, (profile::jsonb ->> 'age')::numeric FROM customers ORDER BY id
SELECT 'abc'::text::numeric
SELECT name::numeric FROM customers ORDER BY id
SELECT ' 12.50 '::text::numeric, '1e3'::text::numeric, '.5'::text::numeric
SELECT score::numeric FROM customers ORDER BY 1
SELECT score::numeric + 1, round(score::numeric, 1) FROM customers ORDER BY id
SELECT id, total / 3 FROM orders WHERE id = 101
SELECT avg(total) FROM orders UNION ALL SELECT 1
SELECT sum(total) * 1.0 / count(*) AS m FROM orders GROUP BY status ORDER BY m
SELECT round(avg(total), 2), round(total / 7, 3) FROM orders GROUP BY total ORDER BY 2
SELECT amount / 7, amount / 1000000, 1 / nullif(amount, 0) FROM events ORDER BY id
SELECT t FROM (SELECT total AS t, id FROM orders) s ORDER BY id
SELECT t + 1, t FROM (SELECT total * 2 AS t, id FROM orders) s ORDER BY id
WITH a AS (SELECT total::numeric(12, 3) AS a, sum(total) AS b FROM orders GROUP BY 1) SELECT a, b FROM a ORDER BY 1
SELECT (SELECT max(total) FROM orders), (SELECT total FROM orders WHERE id = 101)
SELECT s.* FROM (SELECT total, id FROM orders) s ORDER BY id
SELECT '1' + '2'
SELECT '1' * '2'
SELECT '1' - '2'
SELECT '1' / '2'
SELECT '5' % '2'
SELECT -'1'
SELECT '1' || '2'
SELECT '1' < '2', '1' = '2'
SELECT NULL + NULL
SELECT '1' + NULL
SELECT id AS x, count(*) FROM orders GROUP BY id HAVING x > 1
SELECT status AS s, count(*) AS n FROM orders GROUP BY status HAVING n > 1
SELECT status, count(*) AS n FROM orders GROUP BY status HAVING count(*) > 1 ORDER BY status
SELECT total AS t FROM orders WHERE t > 1
SELECT total AS id, count(*) FROM orders GROUP BY total HAVING max(id) > 103 ORDER BY 1
SELECT id AS b, b + 1 FROM orders
SELECT CASE WHEN id > 102 THEN 1.5 ELSE 2 END FROM orders ORDER BY id
SELECT coalesce(total, 0.5), coalesce(NULL, 1.25, 2) FROM orders ORDER BY id
SELECT 1.5 UNION ALL SELECT 2
SELECT total FROM orders WHERE id < 103 UNION ALL SELECT price FROM products ORDER BY 1
SELECT greatest(1.5, 2), least(total, 1) FROM orders ORDER BY id
SELECT sum(total), max(total), min(price) FROM orders, products
SELECT extract(epoch FROM date '2024-01-01'), extract(epoch FROM placed) FROM orders ORDER BY id
SELECT extract(second FROM placed), extract(milliseconds FROM placed) FROM orders ORDER BY id
SELECT pg_size_pretty(10240::bigint), pg_size_pretty(123456789::bigint), pg_size_pretty(1::bigint), pg_size_pretty(-5000000::bigint), pg_size_pretty(1234567890123::bigint)
SELECT 1 + 'a'
SELECT ARRAY[1.5, 2.25, 3]
SELECT trunc(total, 3), trunc(2.5, 2), trunc(-1.999, 1) FROM orders ORDER BY id
SELECT $1
SELECT 'x'
SELECT concat('a', 1), jsonb_build_object('a', 'b')
SELECT count('x') FROM orders
SELECT id FROM orders WHERE 'x' IS NULL
SELECT shipped - interval '1 month 2 hours', shipped + interval '1 month 23 hours', shipped - interval '-3 years 04:00', shipped - (placed - timestamp '2023-01-01') FROM orders ORDER BY id
SELECT placed - interval '-3 years 04:00', placed - interval '1 month -2 hours', joined - interval '1 mon' FROM orders JOIN customers USING (id) ORDER BY id
SELECT timestamptz '2024-03-31 01:30' - '1 month 2 hours', '2024-02-29'::timestamp - interval '-3 years 04:00'
SELECT ceil(discount), floor(discount), round(discount), trunc(discount) FROM lines ORDER BY order_id, line
SELECT round(id, 1), round(id, 0), nullif(total, 5), trunc(id, 1) FROM orders ORDER BY id
SELECT id FROM orders WHERE shipped > now() - interval '1 day 2 hours'
SELECT interval '1 month -1 hour' + shipped, shipped + make_interval(months => 1, hours => -2) FROM orders ORDER BY id
SELECT at - (at - '2024-01-01 00:00+00'), at + NULL::interval FROM events ORDER BY id
ANALYZE
ANALYZE customers
ANALYZE VERBOSE customers (id)
ANALYZE customers, orders (id, total)
ANALYZE (VERBOSE, SKIP_LOCKED) customers
ANALYZE pg_class
ANALYZE nothing
ANALYZE customers,
ANALYZE customers WHERE
-- keys of windows and of DISTINCT aggregates that can fail
SELECT status, rank() OVER (ORDER BY sum(total) / count(*) DESC) FROM orders GROUP BY status ORDER BY 2
SELECT id, rank() OVER (ORDER BY total / 3 DESC, id) FROM orders ORDER BY id
SELECT id, row_number() OVER (PARTITION BY split_part(email, '@', 2) ORDER BY id) FROM customers ORDER BY id
SELECT id, rank() OVER (ORDER BY profile::jsonb ->> 'age', id) FROM customers ORDER BY id
SELECT id, rank() OVER (ORDER BY ratio * 2, sqrt(abs(ratio)), repeat(kind, 2)) FROM events ORDER BY id
SELECT string_agg(DISTINCT split_part(email, '@', 2), ',') FROM customers
SELECT array_agg(DISTINCT split_part(note, 'i', 1) ORDER BY split_part(note, 'i', 1) DESC) FROM orders
SELECT make_date(2024, 1 + ascii(chr(65 + id)) % 12, 28) FROM customers ORDER BY id
-- sums have 38 digits before the point: what DuckDB would make of them and others has none behind it
SELECT sum(id) FROM orders UNION ALL SELECT 1.5
SELECT 'sum', sum(total) FROM orders UNION ALL SELECT 'average', avg(total) FROM orders ORDER BY 1
SELECT sum(total) FROM orders UNION SELECT 1.555 ORDER BY 1
SELECT count(*) FROM (SELECT sum(id) FROM orders EXCEPT SELECT 835.9) q
SELECT count(*) FROM (SELECT sum(id) FROM orders INTERSECT SELECT 835.9) q
SELECT 0.5 IN (SELECT sum(id) - 835 FROM orders), (SELECT sum(id) FROM orders) IN (SELECT 835.6)
SELECT (SELECT sum(id) FROM orders) = ANY (ARRAY[835.6, 3]), 835.6 >= ANY (SELECT sum(id) FROM orders)
SELECT least(sum(id), 0.75) + 1, greatest(0.5, sum(id) * 0), lag(sum(id), 1, 0.5) OVER () FROM orders
SELECT x FROM (SELECT CASE WHEN true THEN 0.75 ELSE sum(id) END AS x FROM orders) q
SELECT x + 1 FROM (SELECT coalesce(NULL, nullif(sum(id), 836), 0.125) AS x FROM orders) q
SELECT first_value(x) OVER (ORDER BY x) FROM (VALUES ((SELECT sum(id) FROM orders)), (0.125)) v(x)
SELECT array_position(ARRAY[(SELECT sum(id) FROM orders), 5], 835.7), ARRAY[(SELECT sum(id) FROM orders)] @> ARRAY[835.7]
SELECT array_append(ARRAY[(SELECT sum(id) FROM orders)], 0.7), ARRAY[(SELECT sum(id) FROM orders)] || 0.7
SELECT mod(sum(id), 0.75), sum(id) % 0.75 FROM orders
SELECT sum(quantity), sum(price) FROM lines UNION ALL SELECT 0.5, 0.00001 ORDER BY 1
WITH RECURSIVE r(n) AS (SELECT sum(id) FROM orders UNION ALL SELECT n + 0.5 FROM r WHERE n < 838) SELECT * FROM r
WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 0.5 FROM r WHERE n < 2) SELECT * FROM r
WITH RECURSIVE r(n) AS (SELECT 1.5 UNION ALL SELECT n * 2 FROM r WHERE n < 100) SELECT max(n) FROM r
-- comparisons with arrays that are NULL, or of rows
SELECT id FROM customers c WHERE name <> ALL (string_to_array(email, '@')) ORDER BY 1
SELECT id FROM customers c WHERE NOT ('x' = ANY (tags || tags)) ORDER BY 1
SELECT id, 'x' = ANY ((SELECT tags FROM customers d WHERE d.id = c.id)::text[]) FROM customers c ORDER BY 1
SELECT id FROM customers WHERE id = ANY (ARRAY(SELECT customer FROM orders)) ORDER BY 1
SELECT id FROM customers WHERE id <> ALL (ARRAY(SELECT customer FROM orders WHERE customer IS NOT NULL)) ORDER BY 1
-- replacements, and bins of times
SELECT regexp_replace(name, '[a-e]+', '<\&>', 'g'), regexp_replace(name, '([a-e])', '\\\1\0\z', 'g') FROM customers ORDER BY id
SELECT regexp_replace('abc', 'b', '\2'), regexp_replace('a(b)c', '[(]', '\1'), regexp_replace('abc', 'b', 'x\')
SELECT date_bin('15 minutes', placed, '2001-01-01'), date_bin('15 minutes', shipped, '2001-01-01 00:05') FROM orders ORDER BY id
SELECT round(total::numeric(10,1), 3) FROM orders ORDER BY id
-- arguments of rows that FILTER keeps out
SELECT sum(1000 / (id - 101)) FILTER (WHERE id <> 101), max(note::int) FILTER (WHERE note ~ '^[0-9]+$') FROM orders
SELECT count(DISTINCT 1 / (id - 101)) FILTER (WHERE id <> 101), array_agg(note::int ORDER BY note::int) FILTER (WHERE false) FROM orders
SELECT string_agg(note || '!', ',' ORDER BY 1 / (id - 101), id) FILTER (WHERE id <> 101) FROM orders
SELECT sum(1000 / (id - 101)) FILTER (WHERE id <> 101) OVER (ORDER BY id) FROM orders ORDER BY id
SELECT jsonb_object_agg(status, id) FILTER (WHERE status IS NOT NULL), jsonb_agg(1 / (id - 101)) FILTER (WHERE id <> 101) FROM orders
-- zones by abbreviation and by POSIX's signs; differences over a change of the clocks
SELECT shipped AT TIME ZONE 'PST', shipped AT TIME ZONE 'BST', shipped AT TIME ZONE 'IST', placed AT TIME ZONE 'CST', shipped AT TIME ZONE 'MSK' FROM orders ORDER BY id
SELECT shipped AT TIME ZONE 'UTC+3', shipped AT TIME ZONE '-03:30', timezone('12', shipped), placed AT TIME ZONE 'foo+3' FROM orders ORDER BY id
SELECT shipped AT TIME ZONE 'BET' FROM orders
SELECT date_trunc('day', shipped, 'PST'), make_timestamptz(2024, 7, 1, 12, 0, 0, 'PST'), shipped AT TIME ZONE 'wet' FROM orders ORDER BY id
SELECT '2024-07-01 12:00 PST'::timestamptz, '2024-07-01 12:00PDT'::timestamptz, timestamptz '2024-07-01 12:00:00.5 MSK', timestamptz '2024-07-01 BST'
-- sums of integers are bigint where they are operands, too
SELECT sum(quantity) & 3, sum(quantity) # 1, sum(quantity) << 1, sum(quantity) % 7 FROM lines
SELECT x & 1, x FROM (SELECT sum(quantity) OVER (ORDER BY order_id, line) AS x FROM lines) q ORDER BY x
SELECT sum(order_id) & 3 FROM lines
-- recursion whose columns are arrays, quotients and texts of those before
WITH RECURSIVE g(a, b, path) AS (SELECT 1, 2, ARRAY[1] UNION ALL SELECT b, a + b, path || b FROM g WHERE a < 30) SELECT a, b, path, path[1] FROM g ORDER BY a
WITH RECURSIVE t(id, path) AS (SELECT id, ARRAY[id] FROM customers WHERE id = 1 UNION ALL SELECT c.id, t.path || c.id FROM customers c JOIN t ON c.id = t.id + 1 WHERE NOT c.id = ANY(t.path)) SELECT id, path, array_length(path, 1) FROM t ORDER BY id
WITH RECURSIVE search(id, path, cycle) AS (SELECT id, ARRAY[id], false FROM customers WHERE id = 1 UNION ALL SELECT c.id, path || c.id, c.id = ANY(path) FROM customers c, search s WHERE NOT cycle AND c.id IN (s.id % 3 + 1, s.id + 1)) SELECT * FROM search ORDER BY path
WITH RECURSIVE t(n, x) AS (SELECT 1, 1.0 UNION ALL SELECT n + 1, x / 2 FROM t WHERE n < 6) SELECT n, x = 1 / power(2, n - 1)::numeric FROM t ORDER BY n
WITH RECURSIVE t(n, s) AS (SELECT 1, 'a'::text UNION ALL SELECT n + 1, s || n FROM t WHERE n < 4) SELECT * FROM t ORDER BY n
-- arrays that are extended, beside parameters of unknown types
SELECT ARRAY[id] || id FROM customers WHERE id = 1 + 1
WITH t AS (SELECT id, ARRAY[id] AS path FROM customers WHERE id = 1) SELECT t.path || t.id FROM t WHERE id = id + 1 - 1
SELECT tags || name, name || tags FROM customers WHERE id = 3 - 1
