"""Wrong SELECTs, each with its exact SQLSTATE, message and position."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from tests.compiler.harness import compiled

CASES = [
    ("SELECT ulr FROM clicks", "42703", 'column "ulr" does not exist', 8),
    ("SELECT c.ulr FROM clicks c", "42703", "column c.ulr does not exist", 8),
    ("SELECT x.url FROM clicks", "42P01", 'missing FROM-clause entry for table "x"', 8),
    ("SELECT clicks.url FROM clicks c", "42P01", 'missing FROM-clause entry for table "clicks"', 8),
    ("SELECT url FROM nowhere", "42P01", 'relation "nowhere" does not exist', 17),
    ("SELECT foo(i4) FROM everything", "42883", "function foo(integer) does not exist", 8),
    ("SELECT upper(i4) FROM everything", "42883", "function upper(integer) does not exist", 8),
    ("SELECT i4 + s FROM everything", "42883", "operator does not exist: integer + text", None),
    ("SELECT i4 || i8 FROM everything", "42883", "operator does not exist: integer || bigint", None),
    ("SELECT i4 = s FROM everything", "42883", "operator does not exist: integer = text", None),
    ("SELECT s LIKE 5 FROM everything", "42883", "operator does not exist: text LIKE integer", None),
    ("SELECT b + 1 FROM everything", "42883", "operator does not exist: boolean + integer", None),
    ("SELECT - s FROM everything", "42883", "operator does not exist: - text", None),
    ("SELECT NOT i4 FROM everything", "42804", "argument of NOT must be type boolean, not type integer", None),
    ("SELECT i4 FROM everything WHERE i4", "42804", "argument of WHERE must be type boolean, not type integer", 33),
    ("SELECT i4 FROM everything WHERE count(*) > 1", "42803", "aggregate functions are not allowed in WHERE", 33),
    ("SELECT count(*) FROM everything GROUP BY sum(i4)", "42803",
    "aggregate functions are not allowed in GROUP BY", 42),
    ("SELECT sum(count(*)) FROM everything", "42803", "aggregate function calls cannot be nested", 12),
    ("SELECT count(*) FILTER (WHERE sum(i4) > 1) FROM everything", "42803",
    "aggregate functions are not allowed in FILTER", 31),
    ("SELECT s, i4, count(*) FROM everything GROUP BY s", "42803",
     'column "everything.i4" must appear in the GROUP BY clause or be used in an aggregate function', 11),
    ("SELECT i4, count(*) FROM everything e", "42803",
     'column "e.i4" must appear in the GROUP BY clause or be used in an aggregate function', 8),
    ("SELECT s FROM everything GROUP BY s HAVING i4 > 1", "42803",
     'column "everything.i4" must appear in the GROUP BY clause or be used in an aggregate function', 44),
    ("SELECT s, count(*) FROM everything GROUP BY 5", "42P10", "GROUP BY position 5 is not in select list", 45),
    ("SELECT s, count(*) FROM everything GROUP BY 'x'", "42601", "non-integer constant in GROUP BY", 45),
    ("SELECT arr, count(*) FROM everything GROUP BY arr", "0A000",
    "GROUP BY a value of type integer[] is not supported", 47),
    ("SELECT s, s FROM everything", "42701", 'column "s" specified more than once', 11),
    ("SELECT i4 + 1, i4 + 2 FROM everything", "42701", 'column "?column?" specified more than once', None),
    ("SELECT max(b) FROM everything", "42883", "function max(boolean) does not exist", 8),
    ("SELECT sum(s) FROM everything", "42883", "function sum(text) does not exist", 8),
    ("SELECT count(DISTINCT arr) FROM everything", "0A000",
    "COUNT(DISTINCT ...) of type integer[] is not supported", 8),
    ("SELECT count(DISTINCT s, i4) FROM everything", "42883", "function count(text, integer) does not exist", 8),
    ("SELECT sum(DISTINCT s) FROM everything", "42883", "function sum(text) does not exist", 8),
    ("SELECT first_value(DISTINCT s) FROM everything", "0A000",
    "FIRST_VALUE(DISTINCT ...) is not supported in a continuous query", 8),
    ("SELECT last_value(arr) FROM everything", "42883", "function last_value(integer[]) does not exist", 8),
    ("SELECT bool_and(i4) FROM everything", "42883", "function bool_and(integer) does not exist", 8),
    ("SELECT bool_or(*) FROM everything", "42883", "function bool_or() does not exist", 8),
    ("SELECT percentile_cont(0.5) FROM everything", "42809",
    "WITHIN GROUP is required for ordered-set aggregate percentile_cont", 8),
    ("SELECT sum(i4) WITHIN GROUP (ORDER BY i4) FROM everything", "42809",
    "sum is not an ordered-set aggregate, so it cannot have WITHIN GROUP", 8),
    ("SELECT upper(s) WITHIN GROUP (ORDER BY s) FROM everything", "42809",
    "WITHIN GROUP specified, but upper is not an aggregate function", 8),
    ("SELECT listagg(s, ',') WITHIN GROUP (ORDER BY s) FROM everything", "0A000",
    "listagg with WITHIN GROUP is not supported in a continuous query", 8),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s) FROM everything", "42883",
    "function percentile_cont(numeric, text) does not exist", 8),
    ("SELECT percentile_disc() WITHIN GROUP (ORDER BY i4) FROM everything", "42883",
    "function percentile_disc(integer) does not exist", 8),
    ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY i4, i8) FROM everything", "42883",
    "function percentile_disc(numeric, integer, bigint) does not exist", 8),
    ("SELECT mode(i4) WITHIN GROUP (ORDER BY i4) FROM everything", "42883",
    "function mode(integer, integer) does not exist", 8),
    ("SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY i4) FROM everything", "22003",
    "percentile value 1.5 is not between 0 and 1", 8),
    ("SELECT percentile_cont(f8) WITHIN GROUP (ORDER BY i4) FROM everything", "0A000",
    "argument 1 of percentile_cont must be a constant number", 8),
    ("SELECT percentile_disc(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY i4) FROM everything", "0A000",
    "argument 1 of percentile_disc must be a constant number", 8),
    ("SELECT mode() WITHIN GROUP (ORDER BY count(*)) FROM everything", "42803",
    "aggregate function calls cannot be nested", 38),
    ("SELECT i4 FROM everything WHERE mode() WITHIN GROUP (ORDER BY i4) > 1", "42803",
    "aggregate functions are not allowed in WHERE", 33),
    ("SELECT json_agg(s) FROM everything", "0A000",
    "aggregate function json_agg is not supported in a continuous query", 8),
    ("SELECT array_agg(arr) FROM everything", "42883", "function array_agg(integer[]) does not exist", 8),
    ("SELECT topk(i4, 0) FROM everything", "22023", "argument 2 of topk must be a constant from 1 to 10000", 8),
    ("SELECT topk(i4, i4) FROM everything", "22023", "argument 2 of topk must be a constant from 1 to 10000", 8),
    ("SELECT topk(b, 2) FROM everything", "42883", "function topk(boolean, integer) does not exist", 8),
    ("SELECT array_agg(b, 0) FROM everything", "22023", None, 8),
    ("SELECT bottomk(arr, 2) FROM everything", "42883", "function bottomk(integer[], integer) does not exist", 8),
    ("SELECT most_frequent(arr, 2) FROM everything", "42883",
     "function most_frequent(integer[], integer) does not exist", 8),
    ("SELECT topk(i4) FROM everything", "42883", "function topk(integer) does not exist", 8),
    ("SELECT approx_count_distinct(DISTINCT i4) FROM everything", "0A000",
    "APPROX_COUNT_DISTINCT(DISTINCT ...) is not supported in a continuous query", 8),
    ("SELECT approx_count_distinct(m) FROM everything", "42883", None, 8),
    ("SELECT approx_percentile(i4, 2) FROM everything", "22003", "percentile value 2 is not between 0 and 1", 8),
    ("SELECT approx_percentile(s, 0.5) FROM everything", "42883",
    "function approx_percentile(text, numeric) does not exist", 8),
    ("SELECT approx_percentile(0.5) WITHIN GROUP (ORDER BY i4) FROM everything", "42809",
    "approx_percentile is not an ordered-set aggregate, so it cannot have WITHIN GROUP", 8),
    ("SELECT string_agg(s) FROM everything", "42883", "function string_agg(text) does not exist", 8),
    ("SELECT string_agg(i4, ',') FROM everything", "42883", "function string_agg(integer, unknown) does not exist", 8),
    ("SELECT string_agg(s, s) FROM everything", "0A000", "argument 2 of string_agg must be a constant", 8),
    ("SELECT now() FROM everything", "0A000",
    "function now() is not supported in a continuous query that keeps, groups or joins rows", 8),
    ("SELECT current_timestamp FROM everything", "0A000",
    "current_timestamp is not supported in a continuous query that keeps, groups or joins rows", 8),
    ("SELECT current_timestamp(3) FROM everything", "0A000",
    "current_timestamp with arguments is not supported in a continuous query", 8),
    ("SELECT mv_random_integer() FROM everything", "42883", "function mv_random_integer() does not exist", 8),
    ("SELECT mv_random_integer(i4) FROM everything", "42883",
    "function mv_random_integer(integer) does not exist", 8),
    ("SELECT mv_random_integer(1.5) FROM everything", "42883",
    "function mv_random_integer(numeric) does not exist", 8),
    ("SELECT mv_random_integer('a') FROM everything", "42883",
    "function mv_random_integer(unknown) does not exist", 8),
    ("SELECT mv_random_integer(NULL) FROM everything", "42883",
    "function mv_random_integer(unknown) does not exist", 8),
    ("SELECT random(1, 5) FROM everything", "0A000",
    "random with arguments is not supported in a continuous query", 8),
    ("SELECT uuid() FROM everything", "0A000",
    "function uuid() is not supported in a continuous query that keeps, groups or joins rows", 8),
    ("SELECT unix_timestamp() FROM everything", "0A000",
    "function unix_timestamp() is not supported in a continuous query", 8),
    ("SELECT 1", "0A000", "a SELECT without FROM is not supported in a continuous query", None),
    ("SELECT * FROM changes", "0A000", 'a continuous query over materialized view "changes" is not supported', 15),
    ("SELECT * FROM everything a JOIN clicks b ON a.s = b.url", "0A000",
    "a join of two streams without WITHIN is not supported", None),
    ("SELECT '1.5'::int AS x FROM everything", "22P02", 'invalid input syntax for type integer: "1.5"', None),
    ("SELECT i4 + 'x' FROM everything", "22P02", 'invalid input syntax for type integer: "x"', None),
    ("SELECT DATE '2024-02-30' FROM everything", "22008", 'date/time field value out of range: "2024-02-30"', None),
    ("SELECT d::int FROM everything", "42846", "cannot cast type date to integer", None),
    ("SELECT CASE WHEN b THEN 1 ELSE s END FROM everything", "42804",
    "CASE types integer and text cannot be matched", None),
    ("SELECT st->z FROM everything", "42703", None, None),
    ("SELECT i4->z FROM everything", "42809",
     "column notation .z applied to type integer, which is not a composite type", None),
    ("SELECT i4[1] FROM everything", "42804",
     "cannot subscript type integer because it does not support subscripting", None),
    ("SELECT ts - ts AS x FROM everything", "0A000",
     'column "x" has type interval, which a continuous query cannot store', None),
    ("SELECT round(n, i4) FROM everything", "0A000", "argument 2 of round must be a constant", 8),
    ("SELECT upper(s) FILTER (WHERE b) FROM everything", "42809",
    "FILTER specified, but upper is not an aggregate function", None),
    ("SELECT url FROM clicks WITH ('starting.pos' = 'earliest')",
    "22023", 'unrecognized source property "starting.pos"', 30),
    ("SELECT url FROM clicks WITH ('starting.position' = 'middle')", "22023",
     'invalid value for property "starting.position": "middle"', 30),
    ("SELECT url FROM clicks WITH ('timestamp' = 'nope')",
    "42703", 'column "nope" named in property "timestamp" does not exist', 30),
    ("SELECT url FROM clicks WITH ('timestamp' = 'url')", "42804",
     'column "url" cannot be the event time because it has type VARCHAR', 30),
    ("SELECT url FROM clicks WITH ('expression.error.handling' = 'NULL')", "0A000",
     'source property "expression.error.handling" is not supported', 30),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "sqlstate", "message", "position"), CASES, ids=[case[0] for case in CASES])
def test_wrong_selects(sql: str, sqlstate: str, message: str | None, position: int | None) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(sql)
    assert caught.value.sqlstate == sqlstate
    if message is not None:
        assert caught.value.message == message
    if position is not None:
        assert caught.value.position == position


def test_hints() -> None:
    with pytest.raises(SqlError) as caught:
        compiled("SELECT ulr FROM clicks")
    assert caught.value.hint == 'Perhaps you meant to reference the column "clicks.url".'
    with pytest.raises(SqlError) as caught:
        compiled("SELECT foo(i4) FROM everything")
    assert caught.value.hint == "The functions of continuous queries are listed in docs/sql/functions.md."
    with pytest.raises(SqlError) as caught:
        compiled("SELECT url FROM clicks WITH ('x' = 1)")
    assert caught.value.hint == (
        "The source properties are 'starting.position', 'timestamp', 'timestamp.format', "
        "'source.deserialization.error.handling', 'watermark.delay.millis', 'source.idle.timeout.millis'."
    )


def test_an_expression_whose_text_would_explode_is_refused() -> None:
    nested = "f4"
    for _ in range(30):
        nested = f"CAST(CAST({nested} AS text) AS real)"
    with pytest.raises(SqlError) as caught:
        compiled(f"SELECT {nested} AS x FROM everything")
    assert caught.value.sqlstate == "54001"
