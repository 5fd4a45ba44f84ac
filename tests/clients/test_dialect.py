"""Pull queries answer as a real PostgreSQL does over the same rows: names of columns, values as text, SQLSTATEs."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.clients.dialect_edges import ERRORS as EDGE_ERRORS
from tests.clients.dialect_edges import NAMES, REFUSED
from tests.clients.dialect_edges import VALUES as EDGES

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]


def answer(connection: Connection, text: str) -> Any:
    """Column names and rows as text, or the SQLSTATE."""
    try:
        cursor = connection.execute(text)
    except psycopg.Error as error:
        return error.sqlstate
    result = cursor.pgresult
    assert result is not None
    names = [bytes(result.fname(column) or b"").decode() for column in range(result.nfields)]
    numeric = [result.ftype(column) == 1700 for column in range(result.nfields)]
    rows = []
    for row in range(result.ntuples):
        cells = [result.get_value(row, column) for column in range(result.nfields)]
        shown = [None if cell is None else bytes(cell).decode() for cell in cells]
        rows.append([_number(cell) if is_number else cell for cell, is_number in zip(shown, numeric, strict=True)])
    return names, rows


def _number(cell: str | None) -> str | None:
    """Scales of numeric differ, as the documents say."""
    if cell is None or "." not in cell:
        return cell
    return cell.rstrip("0").rstrip(".").replace("-0", "0") if cell.strip("-0.") == "" else cell.rstrip("0").rstrip(".")


TIMES = (
    "to_char(moment, 'YYYY-MM-DD HH24:MI:SS.US')",
    "to_char(moment, 'YYYY/FMMM/FMDD FMHH12:MI AM')",
    "to_char(moment, 'Day DAY day Dy DY dy')",
    "to_char(moment, 'FMDay, FMDDth \"of\" FMMonth YYYY')",
    "to_char(moment, 'Month MONTH month|Mon MON mon')",
    "to_char(moment, 'Q W WW IW IYYY ID D DDD CC J')",
    "to_char(moment, 'YYY YY Y IYY IY I IDDD')",
    "to_char(moment, 'SSSS MS FF1 FF2 FF3 FF6')",
    "to_char(moment, 'HH:MI p.m. A.M. am BC RM rm')",
    'to_char(moment, \'"Year:" YYYY "100%"\')',
    "to_char(instant, 'YYYY-MM-DD HH24:MI:SS TZ OF TZH:TZM')",
    "to_char(day, 'YYYY-\"Q\"Q')",
    "to_char(day, 'YYYYMMDD')",
    "to_char(day, 'DDth DDTH')",
    "to_char(moment - day::timestamp, 'HH24:MI:SS')",
    "to_char(interval '26 hours 3 minutes', 'HH24:MI')",
    "date_trunc('month', moment)",
    "date_trunc('week', moment)",
    "date_trunc('quarter', instant)",
    "date_trunc('day', day)",
    "date_trunc('month', day)",
    "date_trunc('hour', instant)",
    "date_trunc('decade', moment)",
    "date_trunc('century', moment)",
    "date_trunc('millennium', moment)",
    "date_trunc('milliseconds', moment)",
    "date_trunc('day', instant, 'Europe/Berlin')",
    "date_trunc('month', moment)::date",
    "to_char(date_trunc('month', day), 'YYYY-MM-DD')",
    "extract(year FROM day)",
    "extract(epoch FROM instant)",
    "extract(epoch FROM moment - day)",
    "extract(second FROM moment)",
    "extract(milliseconds FROM moment)",
    "extract(microseconds FROM moment)",
    "extract(dow FROM day)",
    "extract(isodow FROM day)",
    "extract(doy FROM day)",
    "extract(week FROM day)",
    "extract(isoyear FROM day)",
    "extract(quarter FROM moment)",
    "extract(century FROM day)",
    "extract(decade FROM day)",
    "extract(millennium FROM day)",
    "extract(hour FROM moment)::int",
    "date_part('year', day)",
    "date_part('minute', moment)",
    "extract(day FROM interval '40 days 3 hours')",
    "age(timestamp '2024-03-01', timestamp '2023-01-30')",
    "day + 30",
    "day - date '2023-01-01'",
    "moment - timestamp '2024-01-01'",
    "moment + interval '1 month'",
    "instant AT TIME ZONE 'Europe/Berlin'",
    "moment AT TIME ZONE 'Europe/Berlin'",
    "day::timestamp",
    "moment::date",
    "moment::time",
    "to_date('2024-02-03', 'YYYY-MM-DD')",
    "to_date('03 Feb 2024', 'DD Mon YYYY')",
    "to_date('20240203', 'YYYYMMDD')",
    "to_date('2024/2/3 trailing', 'YYYY-MM-DD')",
    "to_timestamp('2024-02-03 4:05:06 PM', 'YYYY-MM-DD HH12:MI:SS AM')",
    "to_timestamp('2024-02-03 04:05:06.789', 'YYYY-MM-DD HH24:MI:SS.MS')",
    "to_timestamp(1706932800.5)",
    "make_date(2024, 2, 3)",
    "make_timestamp(2024, 2, 3, 4, 5, 6.5)",
    "date_bin('15 minutes', moment, timestamp '2001-01-01')",
    "justify_days(interval '65 days')",
    "interval '1 year 2 months 3 days 04:05:06'",
    "(interval '14 months')::text",
    "-interval '1 day 02:00:00'",
    "(interval '-1 day -02:03:04')::text",
    "interval '1 day' * 2.5",
    "interval '3' day",
    "moment + interval '1 day 1 hour 30 minutes'",
    "moment::text || ' ' || instant::text || ' ' || day::text",
)

NUMBERS = (
    "to_char(amount, '999999999.99')",
    "to_char(amount, 'FM999,999,999.00')",
    "to_char(amount, '9,999,999.99')",
    "to_char(amount, 'FM9999990.099')",
    "to_char(amount, '0000')",
    "to_char(amount, 'S9999999.9')",
    "to_char(amount, '9999999.9S')",
    "to_char(amount, '9999999MI')",
    "to_char(amount, '9999999.99PR')",
    "to_char(amount, '\"$\"FM9999999.00')",
    "to_char(amount, '$9999999.99')",
    "to_char(small, '999')",
    "to_char(small, 'FM000')",
    "to_char(small, '9.9')",
    "to_char(ratio, 'FM999999990.00')",
    "to_char(0.5, '9.99')",
    "to_char(0, 'FM999.99')",
    "to_char(-0.5, '990.99')",
    "1::float4::text || ' ' || 1e10::float4::text || ' ' || 1234567.5::float4::text",
    "-1234567890123456.5::float8::text",
    "to_char(12.345::float8, '99.99')",
    "to_char(45, 'FM90%')",
    "to_char(amount::numeric(20, 6), 'FM9999990.0')",
    "amount::numeric(20, 4)::numeric(20, 1)",
    "amount::numeric(20, 6)::text",
    "small / 2",
    "big / 10",
    "small % 4",
    "mod(small, 4)",
    "-7 / 2",
    "amount / 3 > 1.4",
    "round(amount)",
    "round(amount, 1)",
    "round(ratio)",
    "round(2.5::float8)",
    "trunc(amount)",
    "trunc(amount, 1)",
    "ceil(amount)",
    "floor(amount)",
    "abs(amount)",
    "sign(amount)",
    "power(2, 10)",
    "2 ^ 3",
    "sqrt(16)",
    "ln(1)",
    "log(100)",
    "exp(0)",
    "greatest(small, 1, NULL)",
    "least(small, 1)",
    "width_bucket(5.0, 0, 10, 5)",
    "amount::int",
    "ratio::numeric(40, 2) IS NULL",
    "2.5::int",
    "3.5::float8::int",
    "2.5::float8::int",
    "ratio::text",
    "(ratio / 3)::text",
    "1e15::float8::text || ' ' || 1.5e-7::float8::text || ' ' || 123456789012345678::float8::text",
    "big::text",
    "flag::text",
    "flag::int",
    "amount::text",
    "'r=' || ratio || ' f=' || flag",
    "concat('r=', ratio, ' f=', flag, NULL)",
    "concat_ws('-', name, small, NULL, 'z')",
    "to_hex(255)",
    "div(7, 2)",
    "div(-7, 2)",
    "div(9.5, 2)",
    "div(-9.5, 2)",
    "div(1.999999999999, 0.000000000001)",
    "5::numeric / 2",
    "' 12 '::int",
)

TEXTS = (
    "name ILIKE 'T%'",
    "name LIKE 'mug\\_b'",
    "name LIKE 'mug__'",
    "name LIKE '50\\%'",
    "name LIKE '50|%' ESCAPE '|'",
    "name NOT LIKE 'T%'",
    "name NOT ILIKE 't%'",
    "name ~ '^[a-z]'",
    "name ~* '^t'",
    "name !~ 'a'",
    "name !~* 'T'",
    "name SIMILAR TO '(T|m)%'",
    "upper(name)",
    "lower(name)",
    "initcap('hello big wORLD')",
    "length(name)",
    "octet_length(name)",
    "substring(name FROM 2 FOR 2)",
    "substr(name, 2)",
    "left(name, -1)",
    "right(name, 2)",
    "lpad(name, 6)",
    "rpad(name, 6, '.')",
    "lpad(name, 2)",
    "position('e' IN name)",
    "strpos(name, 'e')",
    "replace(name, 'e', 'E')",
    "translate(name, 'eT', 'Et')",
    "split_part('a,b,c', ',', 2)",
    "split_part('a,b,c', ',', -1)",
    "reverse(name)",
    "repeat('ab', 3)",
    "trim('  a  ')",
    "btrim('xxaxx', 'x')",
    "ltrim('xxa', 'x')",
    "regexp_replace('abcabc', 'b', 'X')",
    "regexp_replace('abcabc', 'B', 'X', 'gi')",
    "regexp_match('foo42bar', '([a-z]+)([0-9]+)')",
    "regexp_split_to_array('a1b2c', '[0-9]')",
    "regexp_count('abcabc', 'b')",
    "format('%s-%s', name, small)",
    "format('%I = %L %%', 'Odd col', 'it''s')",
    "ascii('A')",
    "chr(233)",
    "md5('a')",
    "encode('ab'::bytea, 'hex')",
    "encode('ab'::bytea, 'base64')",
    "decode('6162', 'hex')",
    "convert_from('\\x6162'::bytea, 'UTF8')",
    "convert_to('é', 'UTF8')",
    "'\\x00ff'::bytea",
    "'\\x00ff'::bytea::text",
    "length('\\x00ff'::bytea)",
    "octet_length('\\x00ff'::bytea)",
    "quote_literal('it''s')",
    "quote_ident('Ab')",
    "starts_with('abc', 'ab')",
    "overlay('abcdef' PLACING 'XX' FROM 2 FOR 3)",
    "name || NULL",
    "name COLLATE \"C\" < 'a'",
    "coalesce(name, 'none')",
    "nullif(name, 'Tea')",
    "CASE WHEN small > 1 THEN 'big' WHEN small IS NULL THEN NULL ELSE 'little' END",
    "name IS DISTINCT FROM 'Tea'",
    "flag IS NOT TRUE",
    "small BETWEEN -1 AND 5",
    "'abc'::varchar(2)",
    "'\\n'",
    "E'a\\tb'",
)

DOCUMENTS = (
    "doc::json -> 'a'",
    "doc::json ->> 'a'",
    "doc::json -> 'b' ->> 'c'",
    "doc::json #>> '{b,c}'",
    "doc::json #>> '{b,d,1}'",
    "doc::json #> '{b,d}' IS NULL",
    "doc::json ->> 'e'",
    "doc::json ->> 0",
    "doc::json ->> -1",
    "doc::json ->> 'key with.dot'",
    "doc::jsonb @> '{\"a\": 1}'",
    'doc::jsonb @> \'{"b": {"c": "x"}}\'',
    'doc::jsonb @> \'{"list": ["p", 3]}\'',
    "doc::jsonb @> '[1]'",
    "doc::jsonb @> '1'",
    "doc::jsonb @> '{\"e\": null}'",
    "doc::jsonb @> '{}'",
    "doc::jsonb ? 'a'",
    "doc::jsonb ? 'p'",
    "doc::jsonb ?| ARRAY['zz', 'list']",
    "doc::jsonb ?& ARRAY['a', 'b']",
    "json_typeof(doc::json)",
    "jsonb_typeof(doc::jsonb -> 'a')",
    "json_array_length('[1, 2, 3]'::json)",
    "jsonb_array_length('[1, 2]')",
    "json_extract_path_text(doc::json, 'b', 'c')",
)

ARRAYS = (
    "tags",
    "marks",
    "tags::text",
    "marks::text",
    "array_length(tags, 1)",
    "cardinality(tags)",
    "array_upper(marks, 1)",
    "array_ndims(tags)",
    "array_to_string(tags, ',')",
    "array_to_string(tags, ',', '*')",
    "array_append(marks, 7)",
    "array_prepend(7, marks)",
    "array_cat(marks, ARRAY[7])",
    "marks || ARRAY[7, 8]",
    "array_position(tags, 'y')",
    "array_remove(marks, 2)",
    "array_replace(marks, 2, 20)",
    "marks[1]",
    "marks[2:3]",
    "marks[10]",
    "'x' = ANY(tags)",
    "'{1,NULL}'::int[]",
    "ARRAY['a,b', 'c\"d', '']::text",
    "2 <> ALL(marks)",
    "small = ANY('{3,0}')",
    "small = ANY(ARRAY[3, NULL])",
    "marks @> ARRAY[2]",
    "marks <@ ARRAY[1, 2, 3, 5]",
    "marks && ARRAY[9, 1]",
    "string_to_array('a,b,,c', ',')",
    "ARRAY(SELECT g * 2 FROM generate_series(1, 3) AS g)",
    "ARRAY[1, 2] = ARRAY[1, 2]",
)

QUERIES = (
    "SELECT g FROM generate_series(1, 5, 2) AS g",
    "SELECT generate_series(1, 3)",
    "SELECT g FROM generate_series(5, 1, -2) AS g",
    "SELECT g FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-03', interval '1 day') AS g",
    "SELECT g FROM generate_series('2024-01-01'::timestamp, '2024-01-02', '12 hours') AS g",
    "SELECT g::date FROM generate_series(date '2024-01-30', date '2024-02-02', interval '1 day') AS g",
    "SELECT x, n FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS t (x, n)",
    "SELECT id, unnest(tags) FROM shop WHERE id < 3 ORDER BY id",
    "SELECT s.id, t.tag FROM shop s, unnest(s.tags) AS t (tag) ORDER BY 1, 2",
    "SELECT s.id, l.m FROM shop s CROSS JOIN LATERAL (SELECT max(x) AS m FROM unnest(s.marks) AS u (x)) l ORDER BY 1",
    "SELECT s.id, l.m FROM shop s LEFT JOIN LATERAL (SELECT s.small + 1 AS m WHERE s.small > 0) l ON true ORDER BY 1",
    "SELECT DISTINCT ON (flag) flag, id FROM shop ORDER BY flag, id DESC",
    "SELECT DISTINCT ON (date_trunc('year', day)) id, day FROM shop ORDER BY date_trunc('year', day), id",
    "SELECT id FROM shop ORDER BY amount",
    "SELECT id FROM shop ORDER BY amount DESC",
    "SELECT id FROM shop ORDER BY amount NULLS FIRST, id",
    "SELECT id FROM shop ORDER BY amount DESC NULLS LAST",
    "SELECT id, row_number() OVER (ORDER BY amount DESC), lag(id) OVER (ORDER BY id) FROM shop ORDER BY id",
    "SELECT id, sum(small) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM shop ORDER BY id",
    "SELECT flag, count(*), count(amount), sum(small), avg(small), min(name), max(day) FROM shop GROUP BY flag "
    "ORDER BY flag",
    "SELECT sum(amount), sum(big), avg(amount), sum(ratio), avg(ratio) FROM shop",
    "SELECT string_agg(name, ', ' ORDER BY id DESC) FROM shop",
    "SELECT string_agg(DISTINCT flag::text, ',' ORDER BY flag::text) FROM shop",
    "SELECT array_agg(id ORDER BY id DESC) FROM shop",
    "SELECT array_agg(name ORDER BY id) FILTER (WHERE small > 0) FROM shop",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM shop",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY small) FROM shop",
    "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY ratio DESC) FROM shop",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY small) FROM shop",
    "SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY small DESC) FROM shop",
    "SELECT percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY small) FROM shop",
    "SELECT mode() WITHIN GROUP (ORDER BY flag) FROM shop",
    "SELECT bool_and(flag), bool_or(flag), every(flag) FROM shop",
    "SELECT bit_and(small), bit_or(small) FROM shop WHERE small >= 0",
    "SELECT count(DISTINCT flag), count(DISTINCT (flag, small)) FROM shop",
    "SELECT date_trunc('year', moment) AS y, count(*) FROM shop GROUP BY 1 ORDER BY 1",
    "SELECT to_char(day, 'YYYY') AS y, count(*) FROM shop GROUP BY to_char(day, 'YYYY') ORDER BY 1",
    "SELECT extract(year FROM day) AS y, sum(amount) FROM shop GROUP BY y ORDER BY y",
    "SELECT date_trunc('month', max(moment)) - interval '1 day' FROM shop",
    "SELECT flag, grouping(flag), count(*) FROM shop GROUP BY ROLLUP (flag) ORDER BY 2, 1",
    "SELECT id FROM shop WHERE (id, small) IN ((1, 3), (2, 0)) ORDER BY id",
    "SELECT id FROM shop WHERE small = ANY(ARRAY[3, 15]) ORDER BY id",
    "SELECT id FROM shop WHERE id IN (SELECT max(id) FROM shop)",
    "SELECT id FROM shop s WHERE EXISTS (SELECT 1 FROM shop t WHERE t.id = s.id + 1 AND t.small > s.small) ORDER BY 1",
    "SELECT id, (SELECT to_char(t.moment, 'YYYY') FROM shop t WHERE t.id = s.id) FROM shop s ORDER BY id",
    "WITH d AS (SELECT day FROM shop) SELECT date_trunc('month', day) FROM d ORDER BY 1",
    "SELECT to_char(d, 'Mon DD') FROM (SELECT day AS d FROM shop) s ORDER BY 1",
    'SELECT key, value FROM json_each_text(\'{"a": 1, "b": "x"}\') ORDER BY key',
    "SELECT value FROM json_array_elements_text('[1, \"x\"]')",
    "SELECT json_array_elements_text('[1, \"x\"]')",
    'SELECT json_object_keys(\'{"a": 1, "b": 2}\')',
    "SELECT x FROM regexp_split_to_table('a-b-c', '-') AS x",
    "SELECT x FROM string_to_table('a-b-c', '-') AS x",
    "SELECT id FROM shop FETCH FIRST 2 ROWS ONLY",
    "SELECT id FROM shop ORDER BY id OFFSET 3",
    "SELECT id, count(*) OVER () FROM shop ORDER BY id LIMIT 2",
    "SELECT id FROM shop UNION ALL SELECT 99 ORDER BY 1 DESC LIMIT 2",
    "SELECT a, b FROM (VALUES (1, 'x'), (2, NULL)) AS v (a, b) ORDER BY b",
    "SELECT corr(small, ratio) IS NOT NULL, covar_pop(small, small), regr_count(small, small) FROM shop",
    "SELECT 1 AS one, 'x' AS \"Two\", count(*) FROM shop",
    "SELECT name, amount FROM shop WHERE amount > 0 AND name LIKE '%' ORDER BY amount DESC",
    "SELECT to_char(sum(amount), 'FM999,999,999.00') FROM shop",
    "SELECT id FROM shop WHERE NOT ('x' = ANY(tags)) ORDER BY id",
    "SELECT e ->> 'a' FROM json_array_elements('[{\"a\": 1}, {\"a\": null}]') AS e",
    "SELECT value FROM jsonb_array_elements('[1, 2]') AS e",
    'SELECT * FROM json_each(\'{"a": 1, "b/c": [2]}\')',
    "SELECT current_date - current_date, now() - now() < interval '1 second'",
)

ERRORS = (
    "SELECT 1 / 0",
    "SELECT 1.0 / 0",
    "SELECT 1.0::float8 / 0",
    "SELECT 1 % 0",
    "SELECT mod(1, 0)",
    "SELECT small / (small - small) FROM shop",
    "SELECT small % (small - small) FROM shop",
    "SELECT amount / (small - small) FROM shop",
    "SELECT ratio / (small - small) FROM shop",
    "SELECT div(1, 0)",
    "SELECT 'x'::int",
    "SELECT '1.5'::int",
    "SELECT ''::int",
    "SELECT name::int FROM shop",
    "SELECT amount::text::int FROM shop",
    "SELECT '99999999999'::int",
    "SELECT '99999'::smallint",
    "SELECT '99999999999999999999'::bigint",
    "SELECT 99999999999::int",
    "SELECT big::int FROM shop",
    "SELECT 2147483647 + 1",
    "SELECT 9223372036854775807 + 1",
    "SELECT (small * 10000)::smallint FROM shop",
    "SELECT 'x'::float8",
    "SELECT 'x'::numeric",
    "SELECT 'x'::boolean",
    "SELECT 'x'::date",
    "SELECT '2024-13-01'::date",
    "SELECT '2024-02-30'::date",
    "SELECT 'x'::timestamp",
    "SELECT '2024-01-01 25:00'::timestamp",
    "SELECT 'x'::interval",
    "SELECT 'x'::uuid",
    "SELECT '{'::json",
    "SELECT name::date FROM shop",
    "SELECT to_date('2024-13-01', 'YYYY-MM-DD')",
    "SELECT to_date('abc', 'YYYY-MM-DD')",
    "SELECT date_trunc('nonsense', moment) FROM shop",
    "SELECT extract(nonsense FROM moment) FROM shop",
    "SELECT 12345.678::numeric(5, 2)",
    "SELECT sqrt(-1)",
    "SELECT ln(0)",
    "SELECT name ~ '(' FROM shop",
    "SELECT name SIMILAR TO 't)ea' FROM shop",
    "SELECT name ~ 'a**' FROM shop",
    "SELECT name ~ 'a\\' FROM shop",
    "SELECT nosuch(1)",
    "SELECT nosuch FROM shop",
    "SELECT * FROM nosuch",
    "SELECT name, count(*) FROM shop",
    "SELECT id FROM shop WHERE count(*) > 1",
    "SELECT sum(sum(id)) FROM shop",
    "SELECT (SELECT id FROM shop)",
    "SELECT 'a' + 1",
    "SELECT decode('zz', 'hex')",
    "SELECT encode('a'::bytea, 'nonsense')",
    "SELECT g FROM generate_series(1, 2, 0) AS g",
    "SELECT now() AT TIME ZONE 'Nowhere/None'",
    "SELECT chr(0)",
    "SELECT name || ARRAY[1] FROM shop",
    "SELECT '\\xzz'::bytea",
    "SELECT array_agg(id ORDER BY nosuch) FROM shop",
)

KNOWN: dict[str, str] = {
    "to_char(ratio, 'FM999999990.00')": "a number too large for its pattern: one more # behind the point",
}
"""What differs, with the reason; docs/sql/postgresql.md lists for users what matters to them."""


@pytest.mark.parametrize("expression", [*TIMES, *NUMBERS, *TEXTS, *DOCUMENTS, *ARRAYS])
def test_expressions(our_shop: Connection, their_shop: Connection, expression: str) -> None:
    text = f"SELECT id, {expression} FROM shop ORDER BY id"
    assert (answer(our_shop, text) == answer(their_shop, text)) is (expression not in KNOWN)


@pytest.mark.parametrize("text", QUERIES)
def test_queries(our_shop: Connection, their_shop: Connection, text: str) -> None:
    assert answer(our_shop, text) == answer(their_shop, text)


@pytest.mark.parametrize("text", ERRORS)
def test_errors_have_the_same_sqlstate(our_shop: Connection, their_shop: Connection, text: str) -> None:
    expected = answer(their_shop, text)
    assert isinstance(expected, str), "PostgreSQL has an answer"
    assert (answer(our_shop, text) == expected) is (text not in KNOWN)


def described(connection: Connection, text: str) -> Any:
    """As ``answer``, with the types of the columns: ``char`` is text here, ``jsonb`` json."""
    types = connection.execute(text).description or ()
    shown = [{1042: 25, 1015: 1009, 3802: 114}.get(column.type_code, column.type_code) for column in types]
    return answer(connection, text), shown


@pytest.mark.parametrize("items", EDGES)
def test_edges(our_shop: Connection, their_shop: Connection, items: str) -> None:
    assert described(our_shop, f"SELECT {items}") == described(their_shop, f"SELECT {items}")


@pytest.mark.parametrize("items", NAMES)
def test_names(our_shop: Connection, their_shop: Connection, items: str) -> None:
    assert answer(our_shop, f"SELECT {items}")[0] == answer(their_shop, f"SELECT {items}")[0]


@pytest.mark.parametrize("items", EDGE_ERRORS)
def test_errors_at_the_edges(our_shop: Connection, their_shop: Connection, items: str) -> None:
    found = []
    for connection in (our_shop, their_shop):
        with pytest.raises(psycopg.Error) as raised:
            connection.execute(f"SELECT {items}")
        found.append((raised.value.sqlstate, raised.value.diag.message_primary))
    assert found[0] == found[1]


@pytest.mark.parametrize(("items", "message"), REFUSED)
def test_refused_by_name(our_shop: Connection, their_shop: Connection, items: str, message: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
        our_shop.execute(f"SELECT {items}")
    assert raised.value.diag.message_primary == message
    assert raised.value.diag.message_hint


@pytest.mark.parametrize("text", ["1-2", "-1-2", "1-2 3 04:05:06", "P1Y2M3DT4H", "2 weeks ago", "1 mon"])
def test_an_interval_in_a_parameter(our_shop: Connection, their_shop: Connection, text: str) -> None:
    found = [
        connection.execute("SELECT %s::interval::text", [text]).fetchone() for connection in (our_shop, their_shop)
    ]
    assert found[0] == found[1]


def one(connection: Connection, text: str) -> tuple[Any, ...]:
    row = connection.execute(text).fetchone()
    assert row is not None
    return tuple(row)


def test_now_is_the_transactions_time(our_shop: Connection) -> None:
    with our_shop.transaction():
        first, started = one(our_shop, "SELECT now(), clock_timestamp()")
        again, later, same = one(
            our_shop,
            "SELECT current_timestamp, clock_timestamp(), transaction_timestamp() = now() AND localtimestamp = now()",
        )
    assert first == again
    assert same
    assert first < started <= later
    assert one(our_shop, "SELECT now()")[0] > first


PREPARED = (
    ("PREPARE p (int[]) AS SELECT $1",
     ("ARRAY[1, 2, NULL]", "'{1,2,NULL}'", "'{}'", "NULL", "'{3}'::int[]", "'{1,x}'")),
    ("PREPARE p AS SELECT id FROM shop WHERE id = ANY($1) ORDER BY id", ("ARRAY[1, 2]", "'{1,3}'", "ARRAY[]::int[]")),
    ("PREPARE p (text[]) AS SELECT $1[1], array_length($1, 1)", ("ARRAY['a', 'b c', NULL]", """'{"x y",z}'""")),
    ("PREPARE p (timestamp[], bool[], float8[]) AS SELECT $1, $2, $3",
     ("ARRAY[timestamp '2024-01-01 01:02:03'], '{t,f}', '{1.5,NaN}'",)),
    ("PREPARE p (timestamp with time zone[], uuid[], bigint []) AS SELECT $1, $2, $3",
     ("""'{"2024-01-01 00:00+02"}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', ARRAY[1]""",)),
    ("PREPARE p (uuid, json, date[]) AS SELECT $1, $2, $3",
     ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '[1]', '{2024-02-29}'",)),
)  # fmt: skip


@pytest.mark.parametrize(("statement", "calls"), PREPARED, ids=[statement for statement, _ in PREPARED])
def test_prepared_with_arrays(
    our_shop: Connection, their_shop: Connection, statement: str, calls: tuple[str, ...]
) -> None:
    for connection in (our_shop, their_shop):
        connection.execute(statement)
    try:
        for call in calls:
            assert answer(our_shop, f"EXECUTE p ({call})") == answer(their_shop, f"EXECUTE p ({call})")
    finally:
        for connection in (our_shop, their_shop):
            connection.execute("DEALLOCATE p")
