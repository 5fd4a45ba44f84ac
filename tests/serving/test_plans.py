"""Names, types, parameters and errors of pull queries: what a plan says before anything runs."""

from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal

import pytest

from mvserver.errors import SqlError
from mvserver.serving.api import PlanRequest, PullScope
from tests.serving.world import OTHER_ID, SCOPE, TYPES_ID, VISITS_ID, World


@pytest.mark.parametrize(
    ("expression", "name", "oid", "value"),
    [
        ("1", "?column?", 23, 1),
        ("'a'", "?column?", 25, "a"),
        ("1.5", "?column?", 1700, Decimal("1.5")),
        ("5/2", "?column?", 23, 2),
        ("-5/2", "?column?", 23, -2),
        ("2::bigint * 3", "?column?", 20, 6),
        ("NULL", "?column?", 25, None),
        ("true", "bool", 16, True),
        ("'12'::int", "int4", 23, 12),
        ("'1.25'::numeric", "numeric", 1700, Decimal("1.25")),
        ("'on'::boolean", "bool", 16, True),
        ("upper('a')", "upper", 25, "A"),
        ("substr('hello', 2, 3)", "substr", 25, "ell"),
        ("length('aé')", "length", 23, 2),
        ("char_length('abc')", "char_length", 23, 3),
        ("octet_length('é')", "octet_length", 23, 2),
        ("mod(7, 3)", "mod", 23, 1),
        ("7 % 3", "?column?", 23, 1),
        ("initcap('hello wORLD')", "initcap", 25, "Hello World"),
        ("'abc'::varchar(2)", "varchar", 1043, "ab"),
        ("CASE WHEN true THEN 1 END", "case", 23, 1),
        ("CASE WHEN false THEN 1 ELSE abs(-2) END", "abs", 23, 2),
        ("coalesce(NULL, 'x')", "coalesce", 25, "x"),
        ("ARRAY[1, 2]", "array", 1007, [1, 2]),
        ("'{1,2}'::int[]", "int4", 1007, [1, 2]),
        ("1 = ANY('{1,2}'::int[])", "?column?", 16, True),
        ("'abc' ~ '^a'", "?column?", 16, True),
        ("'abc' !~* 'B'", "?column?", 16, False),
        ("to_char(timestamp '2020-05-06 07:08:09', 'YYYY-MM-DD HH24:MI:SS')", "to_char", 25, "2020-05-06 07:08:09"),
        ("to_char(date '2020-05-06', 'FMMonth')", "to_char", 25, "May"),
        ("to_date('06/05/2020', 'DD/MM/YYYY')", "to_date", 1082, datetime.date(2020, 5, 6)),
        ("extract(year from date '2020-05-06')", "extract", 1700, Decimal(2020)),
        ("extract(epoch from timestamp '2020-01-01')", "extract", 1700, Decimal("1577836800.000000")),
        ("encode('abc'::bytea, 'hex')", "encode", 25, "616263"),
        ("date_part('year', date '2020-05-06')", "date_part", 701, 2020.0),
        ("to_char(1234.5, '9,999.00')", "to_char", 25, " 1,234.50"),
        ("'\\x00ff'::bytea::text", "text", 25, "\\x00ff"),
        ("'{\"a\": [1]}'::jsonb ? 'a'", "?column?", 16, True),
        ("to_hex(255)", "to_hex", 25, "ff"),
        ("quote_ident('Ab c')", "quote_ident", 25, '"Ab c"'),
        ("(SELECT max(visits) FROM visits)", "max", 20, 3),
        ("EXISTS (SELECT 1 FROM visits)", "exists", 16, True),
        ("pg_typeof(1.5)", "pg_typeof", 25, "numeric"),
        ("pg_typeof('a'::text)", "pg_typeof", 25, "text"),
        ("current_database()", "current_database", 19, "postgres"),
        ("current_user", "current_user", 19, "postgres"),
        ("current_schema()", "current_schema", 19, "public"),
        ("pg_catalog.lower('A')", "lower", 25, "a"),
    ],
)
def test_expressions_have_postgresql_names_types_and_values(
    world: World, expression: str, name: str, oid: int, value: object
) -> None:
    plan = world.plan(f"SELECT {expression}")
    assert [(field.name, field.type_oid) for field in plan.fields] == [(name, oid)]
    assert world.rows(f"SELECT {expression}") == [(value,)]


def test_now_is_timestamptz_and_version_names_postgresql(world: World) -> None:
    plan = world.plan("SELECT now(), version(), current_timestamp")
    assert [(field.name, field.type_oid) for field in plan.fields] == [
        ("now", 1184), ("version", 25), ("current_timestamp", 1184),
    ]  # fmt: skip
    ((now, version, _),) = world.rows("SELECT now(), version(), current_timestamp")
    assert now.tzinfo is not None
    assert version.startswith("PostgreSQL 15.")


def test_every_type_of_a_view_has_its_oid(world: World) -> None:
    plan = world.plan("SELECT * FROM all_types")
    assert [field.type_oid for field in plan.fields] == [
        16, 21, 23, 20, 700, 701, 1700, 25, 17, 1082, 1083, 1114, 1184, 1007, 114, 114,
    ]  # fmt: skip
    assert plan.fields[6].typmod == ((10 << 16) | 2) + 4
    assert [field.type_size for field in plan.fields][:5] == [1, 2, 4, 8, 4]
    assert plan.view_ids == (TYPES_ID,)
    (row,) = world.rows("SELECT * FROM all_types")
    assert row[:9] == (True, 1, 2, 3, 1.5, 2.5, Decimal("1.25"), "x", b"ab")
    assert row[13] == [1, 2]
    assert json.loads(row[14]) == {"x": 1}
    assert json.loads(row[15]) == {"k": 1}


def test_aggregates_have_postgresql_types(world: World) -> None:
    plan = world.plan(
        "SELECT count(*), sum(visits), avg(visits), sum(n), sum(mean), min(url), sum(f8), avg(f8), sum(visits) FILTER "
        "(WHERE true), sum(n) OVER () FROM (SELECT visits, mean, url, 1 AS n, 1.0::float8 AS f8 FROM visits) s "
        "GROUP BY n"
    )
    assert [(field.name, field.type_oid) for field in plan.fields] == [
        ("count", 20), ("sum", 1700), ("avg", 1700), ("sum", 20), ("sum", 1700), ("min", 25), ("sum", 701),
        ("avg", 701), ("sum", 1700), ("sum", 20),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT url, visits FROM visits ORDER BY visits DESC LIMIT 1", [("./home", 3)]),
        ("SELECT url FROM visits ORDER BY url", [("./a",), ("./home",), (None,)]),
        ("SELECT url FROM visits ORDER BY url DESC", [(None,), ("./home",), ("./a",)]),
        ("SELECT url FROM visits ORDER BY url DESC NULLS LAST", [("./home",), ("./a",), (None,)]),
        ("SELECT url FROM visits ORDER BY url NULLS FIRST", [(None,), ("./a",), ("./home",)]),
        ("SELECT visits FROM visits WHERE url LIKE '.\\/h%'", [(3,)]),
        ("SELECT to_char(visits, 'FM00') FROM visits WHERE url = './a'", [("01",)]),
        ("SELECT visits::float8::text || mean::text FROM visits WHERE url = './a'", [("12.000000",)]),
        ("SELECT v.visits, public.visits.url FROM visits v, public.visits WHERE v.visits = 3 AND visits.visits = 1",
         [(3, "./a")]),
        ("SELECT postgres.public.visits.visits FROM postgres.public.visits WHERE visits = 1", [(1,)]),
        ("SELECT count FROM (SELECT count(*) FROM visits) s", [(3,)]),
        ("SELECT url, count(*) FROM visits GROUP BY url ORDER BY count DESC, url LIMIT 1", [("./a", 1)]),
        ("WITH visits AS (SELECT 1 AS one) SELECT * FROM visits", [(1,)]),
        ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT sum(n) FROM t",
         [(Decimal(6),)]),
        ("SELECT n FROM shop.public.orders", [(7,)]),
        ("VALUES (1, 'a'), (2, 'b')", [(1, "a"), (2, "b")]),
        ("SELECT g FROM generate_series(1, 3) AS g", [(1,), (2,), (3,)]),
        ("SELECT * FROM current_schema()", [("public",)]),
        ("SELECT a.x FROM visits, LATERAL (SELECT visits.visits + 1 AS x) a WHERE url = './a'", [(2,)]),
        ("SELECT count(*) FROM visits UNION ALL SELECT 5 ORDER BY 1", [(3,), (5,)]),
        ("SELECT row_number() OVER (ORDER BY visits DESC) FROM visits WHERE url = './a'", [(1,)]),
        ("SELECT DISTINCT ON (total IS NULL) url FROM visits ORDER BY total IS NULL, visits", [("./a",), (None,)]),
        ("SELECT s FROM visits AS s(u) WHERE u = './a' AND false", []),
    ],
)  # fmt: skip
def test_queries(world: World, text: str, rows: list[tuple[object, ...]]) -> None:
    assert world.rows(text) == rows


def test_values_columns_are_named_as_in_postgresql(world: World) -> None:
    assert [field.name for field in world.plan("VALUES (1, 2)").fields] == ["column1", "column2"]


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "position"),
    [
        ("SELECT * FROM nosuch", "42P01", 'relation "nosuch" does not exist', 15),
        ("SELECT * FROM public.nosuch", "42P01", 'relation "public.nosuch" does not exist', 15),
        ("SELECT * FROM nodb.public.visits", "3D000", 'database "nodb" does not exist', 15),
        ("SELECT * FROM postgres.nope.visits", "3F000", 'schema "nope" does not exist', 15),
        ("SELECT nosuch FROM visits", "42703", 'column "nosuch" does not exist', 8),
        ("SELECT v.nosuch FROM visits v", "42703", "column v.nosuch does not exist", 8),
        ("SELECT x.url FROM visits", "42P01", 'missing FROM-clause entry for table "x"', None),
        ("SELECT url FROM visits a, visits b", "42702", 'column reference "url" is ambiguous', 8),
        ("SELECT visits FROM visits GROUP BY url", "42803",
         'column "visits.visits" must appear in the GROUP BY clause or be used in an aggregate function', 8),
        ("SELECT nosuch(1)", "42883", "function nosuch(integer) does not exist", 8),
        ("SELECT sum(url) FROM visits", "42883", "function sum(text) does not exist", None),
        ("SELECT * FROM src", "0A000",
         'cannot read from stream "src" here', 15),
        ("SELECT * FROM read_csv('/etc/passwd')", "42883", "function read_csv(unknown) does not exist", 15),
        ("SELECT * FROM sniff_csv('/*')", "42883", "function sniff_csv(unknown) does not exist", 15),
        ("SELECT * FROM query_table('visits')", "42883", "function query_table(unknown) does not exist", 15),
        ("SELECT * FROM duckdb_settings()", "42883", "function duckdb_settings() does not exist", 15),
        ("SELECT getenv('HOME')", "42883", "function getenv(unknown) does not exist", 8),
        ('SELECT * FROM "/etc/passwd"', "42P01", 'relation "/etc/passwd" does not exist', 15),
        ("SELECT * FROM _views.x", "42P01", 'relation "_views.x" does not exist', 15),
        ("SELECT * FROM duckdb_tables", "42P01", 'relation "duckdb_tables" does not exist', 15),
        ("SELECT 'x'::nosuch", "42704", 'type "nosuch" does not exist', None),
        ("SELECT 'nosuch'::regclass", "42P01", 'relation "nosuch" does not exist', None),
        ("SELECT 1 ORDER BY 2", "42P10", "ORDER BY position 2 is not in select list", None),
        ("SELECT to_tsvector('a')", "0A000", "function to_tsvector is not supported", None),
    ],
)  # fmt: skip
def test_errors_of_planning(world: World, text: str, sqlstate: str, message: str, position: int | None) -> None:
    with pytest.raises(SqlError) as caught:
        world.plan(text)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)
    if position is not None:
        assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("SELECT 1 / (visits - visits) FROM visits", "22012", "division by zero"),
        ("SELECT url::int FROM visits", "22P02", 'invalid input syntax for type integer: "./home"'),
        ("SELECT 9223372036854775807 + visits FROM visits", "22003", "bigint out of range"),
        ("SELECT (visits * 100000)::smallint FROM visits", "22003", "smallint out of range"),
        ("SELECT (SELECT visits FROM visits)", "21000",
         "more than one row returned by a subquery used as an expression"),
        ("SELECT (substr(url, 1, 0) || '2020-13-01')::date FROM visits", "22008",
         'date/time field value out of range: "2020-13-01"'),
        ("SELECT (url || '{')::json FROM visits", "22P02", "invalid input syntax for type json"),
    ],
)  # fmt: skip
def test_errors_of_running(world: World, text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        world.rows(text)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)
    assert world.value("SELECT 1") == 1, "the cursor serves on after an error"


def test_parameters_take_the_types_of_columns_and_clients(world: World) -> None:
    assert world.plan("SELECT url FROM visits WHERE visits = $1 AND url = $2").parameter_oids == (20, 25)
    assert world.plan("SELECT $1").parameter_oids == (25,)
    assert world.plan("SELECT $1::int, $2").parameter_oids == (23, 25)
    assert world.plan("SELECT $1::date - $2").parameter_oids == (1082, 1082)
    with pytest.raises(SqlError, match=r"42725: operator is not unique: date \+ unknown"):
        world.plan("SELECT $1::date + $2")
    # one of unknown type leaves the others theirs
    assert world.plan("SELECT $2, visits = $1 FROM visits").parameter_oids == (20, 25)
    assert world.plan("SELECT url FROM visits WHERE visits = total + $1 LIMIT $2").parameter_oids == (20, 20)
    assert world.plan("SELECT $1, $2::text[], mean = $3, visits = $4 FROM visits").parameter_oids == (
        25,
        1009,
        1700,
        20,
    )
    assert world.plan("SELECT $1, $2, visits = $3 FROM visits").parameter_oids == (25, 25, 20)
    assert world.plan("SELECT url FROM visits WHERE visits BETWEEN $1 AND $1 + 100").parameter_oids == (20,)
    assert world.rows("SELECT url FROM visits WHERE visits BETWEEN $1 AND $1 + 1", [3]) == [("./home",)]
    assert world.plan("SELECT $1", (23,)).fields[0].type_oid == 23
    assert world.plan("SELECT url FROM visits WHERE visits = $1", (21,)).parameter_oids == (21,)
    assert world.rows("SELECT url FROM visits WHERE visits = $1", [3], (21,)) == [("./home",)]
    assert world.rows("SELECT n FROM shop.public.orders WHERE n < $1", [2**40], (20,)) == [(7,)]
    assert world.rows("SELECT url FROM visits WHERE url = ANY($1)", [["./a", "x"]], (1009,)) == [("./a",)]
    assert world.rows("SELECT $1::text || $2", ["a", None]) == [(None,)]
    assert world.plan("SELECT url FROM visits WHERE url LIKE $1").parameter_oids == (25,)
    assert world.rows("SELECT url FROM visits WHERE url LIKE $1", ["%\\/a"]) == [("./a",)]
    assert world.rows("SELECT to_char($1::numeric, '9.9')", [Decimal("1.25")]) == [(" 1.3",)]
    assert world.rows("SELECT url FROM visits WHERE mean > $1", [Decimal("3.33")], (1700,)) == [("./home",)]
    assert world.rows("SELECT url FROM visits WHERE visits IN ($1, $2) ORDER BY 1 LIMIT $3", [1, 3, 1]) == [("./a",)]


def test_an_expression_of_numbers_has_no_type_modifier(world: World) -> None:
    plan = world.plan("SELECT mean, mean + 1, mean::numeric(10, 2), sum(mean) FROM visits GROUP BY mean")
    assert [field.typmod for field in plan.fields] == [(38 << 16 | 6) + 4, -1, (10 << 16 | 2) + 4, -1]


@pytest.mark.parametrize(
    ("source", "typmod"),
    [
        ("(SELECT * FROM visits) s", (38 << 16 | 6) + 4),
        ("(SELECT * FROM (SELECT s.* FROM visits s) t) s", (38 << 16 | 6) + 4),
        ("visits JOIN (SELECT * FROM visits) s USING (mean)", (38 << 16 | 6) + 4),
        ("(SELECT url, mean + 1 AS mean FROM (SELECT * FROM visits) t) s", -1),
        ("visits JOIN (SELECT mean + 1 AS mean FROM visits) s USING (mean)", -1),
        ("(SELECT mean FROM visits) r JOIN (SELECT mean + 1 AS mean FROM visits) s USING (mean)", -1),
        ("(SELECT mean + 1 AS mean FROM visits) r JOIN visits USING (mean)", -1),
    ],
)
def test_a_column_through_a_star_keeps_its_type_modifier(world: World, source: str, typmod: int) -> None:
    assert world.plan(f"SELECT mean FROM {source}").fields[0].typmod == typmod
    assert world.plan(f"WITH w AS (SELECT * FROM {source}) SELECT mean FROM w").fields[0].typmod == typmod


@pytest.mark.parametrize(
    ("joined", "columns"),
    [
        ("{a}, {b} NATURAL JOIN {c}", "x da y x db e"),
        ("(SELECT * FROM {a}, {b} NATURAL JOIN {c}) AS q (x, da, y, z, db, e)", "x da y z db e"),
        ("{a} JOIN ({b} JOIN {c} USING (y)) ON a.x = b.x", "x da y x db e"),
        ("{a} JOIN {b} JOIN {c} USING (y) USING (x)", "x da y db e"),
        ("{b} JOIN {c} USING (y)", "y x db e"),
        ("({b} JOIN {c} USING (y))", "y x db e"),
        ("(({b} JOIN {c} USING (y)))", "y x db e"),
        ("{a} CROSS JOIN (({b} JOIN {c} USING (y)))", "x da y x db e"),
        ("({b} JOIN {c} USING (y)) AS k (p, q)", "p q db e"),
        ("(SELECT k.* FROM ({b} JOIN {c} USING (y)) AS k (p, q)) r", "p q db e"),
    ],
)
def test_a_star_over_joins_by_names(world: World, joined: str, columns: str) -> None:
    """The documents among the columns are known by their places."""
    a, b = "(SELECT 1 AS x, '1'::jsonb AS da) a", "(SELECT 1 AS x, 2 AS y, '2'::jsonb AS db) b"
    fields = world.plan(f"SELECT * FROM {joined.format(a=a, b=b, c='(SELECT 3 AS e, 2 AS y) c')}").fields
    assert [field.name for field in fields] == columns.split()
    assert [field.type_oid for field in fields] == [3802 if "d" in field.name else 23 for field in fields]


@pytest.mark.parametrize(
    ("joined", "oids"),
    [
        ("{b} JOIN {c} USING (a)", (20, 25, 1082)),
        ("({b} JOIN {c} USING (a))", (20, 25, 1082)),
        ("(({b} JOIN {c} USING (a)))", (20, 25, 1082)),
        ("((VALUES ('x', 1)) AS b (b, a) JOIN {c} USING (a))", (20, 25, 1082)),
        ("(VALUES (true)) AS v (a), {b} NATURAL JOIN {c}", (16, 20, 25, 1082)),
        ("{b} JOIN {c} ON b.a = c.a", (25, 23, 1082, 20)),
    ],
)
def test_parameters_below_a_star_over_joins_by_names(world: World, joined: str, oids: tuple[int, ...]) -> None:
    b, c = "(SELECT 'x' AS b, 1 AS a) b", "(SELECT date '2024-01-01' AS c, 2::bigint AS a) c"
    given = ", ".join(f"${at}" for at in range(1, len(oids) + 1))
    plan = world.plan(f"SELECT * FROM {joined.format(b=b, c=c)} UNION ALL SELECT {given}")
    assert plan.parameter_oids == oids
    assert tuple(field.type_oid for field in plan.fields) == oids


@pytest.mark.parametrize("within", ["visits", "(SELECT * FROM visits) v"])
def test_a_column_within_is_not_one_of_the_query_around(world: World, within: str) -> None:
    """Both have a "url", which is a document in one of them only."""
    text = f"SELECT (SELECT url || '!' FROM {within} WHERE visits = 1) FROM (SELECT '1'::jsonb AS url) q"
    assert world.rows(text) == [("./a!",)]


@pytest.mark.parametrize("kind", ["int", "numeric", "numeric(5, 2)", "timestamptz"])
def test_arrays_of_more_dimensions_than_their_cast_has(world: World, kind: str) -> None:
    plan = world.plan(f"SELECT $1::{kind}[]")
    plan.refuse_dimensions([[None, "1"]])
    with pytest.raises(SqlError, match="more than one dimension") as raised:
        plan.refuse_dimensions([[["1"], ["2"]]])
    assert raised.value.sqlstate == "0A000"
    world.plan(f"SELECT $1::{kind}[][]").refuse_dimensions([[["1"], ["2"]]])


def test_a_name_in_quotes_is_no_unit_of_an_interval(world: World) -> None:
    text = """SELECT interval '1' "day", interval '1' hour "day", interval '1' DAY"""
    assert [field.name for field in world.plan(text).fields] == ["day", "day", "interval"]
    assert [value.nanoseconds for value in world.rows(text)[0]] == [10**9, 3_600 * 10**9, 0]


def test_a_missing_parameter_is_an_error(world: World) -> None:
    with pytest.raises(SqlError) as caught:
        world.rows("SELECT $1::int")
    assert (caught.value.sqlstate, caught.value.message) == ("42P02", "there is no parameter $1")


def test_kinds_of_reads(world: World) -> None:
    assert world.plan("SELECT * FROM visits WHERE url = $1").kind == "point"
    assert world.plan("SELECT visits FROM visits WHERE './a' = url AND visits > 0").kind == "point"
    assert world.plan("SELECT * FROM visits WHERE url >= 'a' AND url < 'b'").kind == "range"
    assert world.plan("SELECT count(*) FROM visits WHERE url = 'a'").kind == "other"
    assert world.plan("SELECT * FROM visits WHERE url = lower(url)").kind == "other"
    assert world.rows("SELECT * FROM visits WHERE url = $1", ["./a"]) == [("./a", 1, 2, Decimal(2))]
    assert world.rows("SELECT * FROM visits WHERE url = $1", ["none"]) == []


def test_search_path_decides_what_a_name_means(world: World) -> None:
    with pytest.raises(SqlError) as caught:
        world.plan("SELECT * FROM visits", scope=PullScope("postgres", ("Odd",), "postgres"))
    assert caught.value.sqlstate == "42P01"
    assert world.plan("SELECT * FROM orders", scope=PullScope("shop", ("public",), "postgres")).view_ids == (OTHER_ID,)
    plan = world.plan("SELECT * FROM visits JOIN shop.public.orders ON true")
    assert plan.view_ids == (VISITS_ID, OTHER_ID)


def test_the_time_zone_of_the_session_counts(world: World) -> None:
    berlin = PullScope("postgres", ("public",), "postgres", time_zone="Europe/Berlin")
    assert world.value("SELECT (tz::timestamp)::text FROM all_types", scope=berlin) == "2020-01-02 04:04:05"
    assert world.value("SELECT (tz::timestamp)::text FROM all_types") == "2020-01-02 03:04:05"


def test_plans_are_cached_by_text_scope_and_generation(world: World) -> None:
    from mvserver.sql.dialect import parse_pull

    text = "SELECT visits FROM visits WHERE url = 'cache'"
    assert world.service.cached(text, SCOPE) is None
    plan = world.service.plan(PlanRequest(parse_pull(text), SCOPE, text=text))
    assert world.service.cached(text, SCOPE) is plan
    assert world.service.cached(text, PullScope("postgres", ("Odd",), "postgres")) is None
    world.catalog.change()
    assert world.service.cached(text, SCOPE) is None
    world.service.plan(PlanRequest(parse_pull("SELECT pg_backend_pid()"), SCOPE, text="SELECT pg_backend_pid()"))
    assert world.service.cached("SELECT pg_backend_pid()", SCOPE) is None


def test_set_config_is_left_to_the_session(world: World) -> None:
    plan = world.plan("SELECT pg_catalog.set_config('search_path', '', false)")
    assert plan.sets == (("search_path", "", False),)
    assert world.rows("SELECT set_config('a.b', 'c', true)") == [("c",)]


def test_current_setting(world: World) -> None:
    scope = PullScope("postgres", ("public",), "postgres", settings=(("application_name", "tester"),), backend_pid=77)
    assert world.value("SELECT current_setting('application_name')", scope=scope) == "tester"
    assert world.value("SELECT current_setting('server_version_num')::int > 150000", scope=scope) is True
    assert world.value("SELECT current_setting('no.such', true)", scope=scope) is None
    assert world.value("SELECT pg_backend_pid()", scope=scope) == 77
    with pytest.raises(SqlError) as caught:
        world.plan("SELECT current_setting('nosuch')")
    assert caught.value.sqlstate == "42704"


def test_explain_shows_what_would_run(world: World) -> None:
    lines = world.service.explain(world.plan("SELECT * FROM visits WHERE url = $1"))
    assert re.fullmatch(r"Pull query \(point\) over 1 view\(s\)  \(cost=0\.00\.\.0\.01 rows=1 width=\d+\)", lines[0])
    assert len(lines) > 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM visits", [(16400, 1), (16400, 2), (16400, 3), (16400, 4)]),
        ("SELECT v.mean, url AS u, visits + 1 FROM visits v", [(16400, 4), (16400, 1), (0, 0)]),
        ("SELECT o.*, v.url FROM visits v, shop.public.orders o", [(16420, 1), (16400, 1)]),
        ("SELECT url FROM (SELECT url FROM visits) s", [(0, 0)]),
        ("SELECT 1", [(0, 0)]),
    ],
)
def test_columns_know_the_view_they_come_from(world: World, text: str, expected: list[tuple[int, int]]) -> None:
    assert [(field.table_oid, field.column_number) for field in world.plan(text).fields] == expected
