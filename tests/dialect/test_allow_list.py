"""Nothing passes through to DuckDB because it happens to know it: functions, types and grammar are PostgreSQL's."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pytest
from sqlglot import exp
from sqlglot.dialects import Postgres

from mvserver.dialect import guard
from mvserver.dialect.allow_list import UNDEFINED
from mvserver.errors import SqlError
from mvserver.pgcatalog.static_data import type_spellings
from mvserver.sql.dialect import parse_pull
from mvserver.sql.pull_functions import other_forms, table
from mvserver.sql.pull_parser import PullParser
from tests.serving.world import World

_REFUSALS = {"42883", "0A000", "42601", "42809"}
_SPECIAL_GRAMMAR = {"case", "cast", "coalesce", "nullif", "exists", "array", "row"}


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def _answer(text: str) -> str | None:
    """The SQLSTATE of the refusal, before anything is bound; None for a text that passes."""
    try:
        tree = parse_pull(text)
        guard.check(tree)
    except SqlError as error:
        return error.sqlstate
    # one that is not found is refused when the types of its arguments are known
    hidden = [node for node in tree.find_all(exp.Anonymous) if node.name.startswith(UNDEFINED)]
    return "42883" if hidden else None


@pytest.mark.slow
@pytest.mark.large
def test_each_function_of_duckdb_is_postgresqls_or_refused(engine: duckdb.DuckDBPyConnection) -> None:
    names = {
        name
        for (name,) in engine.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
        if re.fullmatch(r"\w+", name)
    }
    assert len(names) > 800
    passed: list[str] = []
    for name in sorted(names - table().keys() - _SPECIAL_GRAMMAR):
        texts = (
            f"SELECT {name}()", f"SELECT {name}(1)", f"SELECT {name}('a', 2, 3)", f"SELECT * FROM {name}(1)",
            f"SELECT * FROM t, LATERAL {name}(t.x) AS l", f'SELECT "{name}"(1)', f"SELECT pg_catalog.{name}(1)",
            f"SELECT count(*) FILTER (WHERE {name}(1)) FROM t", f"SELECT {name}(x) OVER () FROM t",
            f"SELECT 1 ORDER BY {name}(1)", f"SELECT {name.upper()}(DISTINCT x) FROM t",
            f"WITH c AS (SELECT {name}(1)) SELECT * FROM c", f"SELECT x FROM t WHERE x IN (SELECT {name}(x))",
        )  # fmt: skip
        passed += [text for text in texts if _answer(text) not in _REFUSALS]
    assert passed == []


def test_no_function_is_reached_by_another_schema_or_as_a_method(engine: duckdb.DuckDBPyConnection) -> None:
    for name in ("abs", "length", "list_value", "read_csv"):
        for call in (f"main.{name}(1)", f"system.{name}(1)", f"x.{name}()", f"'a'.{name}()", f"(1).{name}()",
                     f"system.main.{name}(1)", f"x.y.{name}(1)", f"abs(1).{name}()", f'"pg_catalog2".{name}(1)',
                     f"information_schema.{name}(1)", f"_system.fn.{name}(1)", f"fn.{name}(1)"):  # fmt: skip
            assert _answer(f"SELECT {call} FROM t") in _REFUSALS, call
            assert _answer(f"SELECT * FROM {call}") in _REFUSALS, call
    assert _answer("SELECT pg_catalog.abs(1), pg_catalog.length('a')") is None


def test_the_macros_behind_the_functions_are_out_of_reach(world: World) -> None:
    macros = {
        name
        for (name,) in world.database.cursor()
        .execute("SELECT DISTINCT function_name FROM duckdb_functions() WHERE database_name = '_system'")
        .fetchall()
    }
    world.value("SELECT 1")
    for name in macros - table().keys():
        assert _answer(f"SELECT {name}(1)") in _REFUSALS, name
    for name in macros:
        assert _answer(f"SELECT _system.fn.{name}(1)") in _REFUSALS, name


def test_each_number_of_arguments_that_postgresql_has_not_is_refused() -> None:
    for name, called in table().items():
        if called.most < 8 and _answer(f"SELECT {name}({', '.join('1' * (called.most + 1))})") not in _REFUSALS:
            pytest.fail(f"{name} with {called.most + 1} arguments")
        if called.least > 0 and _answer(f"SELECT {name}()") not in _REFUSALS:
            pytest.fail(f"{name} without arguments")


@pytest.mark.parametrize(
    "call",
    [
        "regexp_replace('a', 'b', 'c', 1, 2)", "array_position(ARRAY[1], 1, 2)", "array_to_json(ARRAY[1], true)",
        "regexp_replace('a', 'b', 'c', 1, 2, 'i')", "row_to_json(ROW(1), true)", "length('a'::bytea, 'UTF8')",
        "random(1, 2)",
    ],
)  # fmt: skip
def test_what_postgresql_has_in_more_forms_is_not_supported_there(call: str) -> None:
    """It exists, so 42883 would be false."""
    with pytest.raises(SqlError) as raised:
        guard.check(parse_pull(f"SELECT {call}"))
    assert raised.value.sqlstate == "0A000"
    assert "arguments is not supported" in raised.value.message
    assert "it takes" in (raised.value.hint or "")


def test_other_forms_are_none_that_are_supported() -> None:
    for name, other in other_forms().items():
        assert not any(table()[name].accepts(count) for count in range(other.least, min(other.most, 9) + 1)), name


@pytest.mark.parametrize(
    ("expression", "value"),
    [  # answers of PostgreSQL
        ("num_nonnulls(1, 2, 3)", 3),
        ("num_nulls(1, NULL, 3)", 1),
        ("num_nulls(NULL)", 1),
        ("num_nonnulls('a', 1 = 1, ARRAY[1], NULL)", 3),
        ("pg_typeof(num_nulls(1))", "integer"),
        ("concat(ARRAY[1, 2], 'x')", "{1,2}x"),
        ("concat('x', ARRAY[1, 2])", "x{1,2}"),
        ("concat(ARRAY[1.5, NULL], 'x', NULL, ARRAY['a b'])", '{1.5,NULL}x{"a b"}'),
        ("concat(ARRAY[true, false], 'x')", "{t,f}x"),
        ("concat(ARRAY[[1, 2], [3, 4]], 'x')", "{{1,2},{3,4}}x"),
        ("concat(concat(ARRAY[1], 'x'), ARRAY[2])", "{1}x{2}"),
        ("concat_ws(',', ARRAY[1, 2], 'x')", "{1,2},x"),
        ("concat(true, ARRAY[1], 'y', 1.0::float8)", "t{1}y1"),
    ],
)
def test_functions_of_any_arguments(world: World, expression: str, value: object) -> None:
    assert world.value(f"SELECT {expression}") == value


@pytest.mark.parametrize(
    "text",
    [
        "SELECT [1, 2]", "SELECT abs([1][1])", "SELECT {'a': 1}", "SELECT MAP {'a': 1}", "SELECT [x FOR x IN ARRAY[1]]",
        "SELECT list_transform(ARRAY[1], x -> x + 1)", "SELECT list_transform(ARRAY[1], lambda x: x + 1)",
        "SELECT * EXCLUDE (a) FROM t", "SELECT * EXCEPT (a) FROM t", "SELECT * REPLACE (1 AS a) FROM t",
        "SELECT * RENAME (a AS b) FROM t", "SELECT t.* EXCLUDE (a) FROM t", "SELECT COLUMNS(*) FROM t",
        "SELECT COLUMNS('a.*') FROM t", "SELECT * LIKE 'a%' FROM t", "SELECT abs(*) FROM t", "SELECT max(*) FROM t",
        "SELECT coalesce(*) FROM t", "SELECT 1 + * FROM t", "SELECT a FROM t QUALIFY row_number() OVER () = 1",
        "SELECT a FROM t USING SAMPLE 10", "SELECT a FROM t TABLESAMPLE (10 ROWS)",
        "SELECT a FROM t TABLESAMPLE reservoir(10)", "PIVOT t ON a USING sum(b)", "UNPIVOT t ON a",
        "SELECT * FROM t PIVOT (sum(b) FOR a IN (1))", "SELECT * FROM t POSITIONAL JOIN u",
        "SELECT a, count(*) FROM t GROUP BY ALL", "FROM t", "FROM t SELECT a", "SELECT a FROM t LIMIT 10%",
        "SELECT a FROM t LIMIT 10 PERCENT", "SELECT 1 UNION BY NAME SELECT 2", "SELECT 5 // 2", "SELECT 2 ** 3",
        "SELECT 'a' GLOB 'b'", "SELECT 5!", "SELECT a FROM t AT (VERSION => 1)", "SELECT #1 FROM t",
        "SELECT first_value(a) IGNORE NULLS OVER () FROM t", "SELECT struct_pack(a := 1)", "SELECT abs(x := 1)",
        "SELECT generate_series(1, 2, step => 1)", "SELECT try_cast('a' AS int)", "SELECT try(1)",
        "SELECT max(a, 2) FROM t", "SELECT count() FROM t", "SELECT count(a, b) FROM t", "SELECT mode(a) FROM t",
        "SELECT percentile_cont(a, 0.5) FROM t", "SELECT first_value(a) FROM t", "SELECT row_number()",
        "SELECT a[1:2:3] FROM t", "SELECT 1::hugeint", "SELECT 1::struct(a int)",
        "SELECT 'a' COLLATE nocase", "SELECT 'a' COLLATE de", "DESCRIBE t", "SUMMARIZE t", "SHOW TABLES FROM t",
        "CALL pragma_version()", "PRAGMA version", "SELECT x: 1", "SELECT sum(a) WITHIN GROUP (ORDER BY a) FROM t",
        "SELECT * FROM 'file.csv'", "SELECT * FROM \"/etc/passwd\".x.y.z", "SELECT getvariable('mv_now')",
    ],
)  # fmt: skip
def test_grammar_of_duckdb_is_refused(text: str) -> None:
    try:
        answer = _answer(text)
    except SqlError as error:
        answer = error.sqlstate
    assert answer in _REFUSALS | {"42704"}, text


@pytest.mark.parametrize(
    ("text", "answer"),
    [  # answers of PostgreSQL, where a word of the grammar is a function's name if it is quoted or behind a schema
        ("array(1, 2)", "42601"), ("array((1))", "42601"), ('"array"(1)', "42883"), ("pg_catalog.array(1)", "42883"),
        ('"coalesce"(1, 2)', "42883"), ("pg_catalog.coalesce(1, 2)", "42883"), ('"nullif"(1, 2)', "42883"),
        ("pg_catalog.nullif(1, 2)", "42883"), ('"row"(1, 2)', "42883"), ("pg_catalog.row(1, 2)", "42883"),
        ('"any"(1)', "42883"), ('1 = "any"(ARRAY[1])', "42883"), ('1 = "some"(ARRAY[1])', "42883"),
        ('1 < "all"(ARRAY[1])', "42883"), ('"greatest"(1, 2)', "42883"), ("pg_catalog.least(1, 2)", "42883"),
        ("\"trim\"('a')", "42883"), ('"case"(1)', "42883"), ('"exists"(SELECT 1)', "42601"),
        ("pg_catalog.exists(SELECT 1)", "42601"), ('"cast"(1 AS int)', "42601"), ("pg_catalog.cast(1 AS int)", "42601"),
        ("concat(VARIADIC ARRAY['a'])", "0A000"), ('"variadic"(1)', "42883"),
    ],
)  # fmt: skip
def test_words_of_the_grammar_are_no_functions(world: World, text: str, answer: str) -> None:
    with pytest.raises(SqlError) as raised:
        world.rows(f"SELECT {text}")
    assert raised.value.sqlstate == answer
    if answer == "42883":
        name = text.partition("(")[0].split()[-1].replace('"', "")
        assert raised.value.message.startswith(f"function {name}")


@pytest.mark.parametrize("operator", ["@?", "@@"])
def test_operators_of_paths_are_refused_by_their_names(world: World, operator: str) -> None:
    with pytest.raises(SqlError, match=f"operator {re.escape(operator)} is not supported") as raised:
        world.rows(f"SELECT '{{}}'::jsonb {operator} '$.a'")
    assert raised.value.sqlstate == "0A000"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('SELECT a."array"[1] FROM (SELECT ARRAY[7, 8] AS "array") a', 7),
        ('SELECT "array"[2] FROM (SELECT ARRAY[7, 8] AS "array") a', 8),
        ("SELECT a.array[1] FROM (SELECT ARRAY[7, 8] AS array) a", 7),
        ('SELECT "array"[1:1] FROM (SELECT ARRAY[7, 8] AS "array") a', [7]),
        ("SELECT list[2] FROM (SELECT ARRAY[7, 8] AS list) a", 8),
        ("SELECT a.list[1] FROM (SELECT ARRAY[7, 8] AS list) a", 7),
        ("SELECT ARRAY[7, 8][2]", 8),
        ("SELECT (ARRAY[[1, 2], [3, 4]])[2][1]", 3),
        ("SELECT array((SELECT 1))", [1]),
        ("SELECT 1 = SOME(ARRAY[1])", True),
    ],
)
def test_what_stands_before_brackets_may_be_a_column(world: World, text: str, value: object) -> None:
    assert world.value(text) == value


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("SELECT len(t) FROM all_types", "42883"),
        ("SELECT i4 AS q, q + 1 AS r FROM all_types", "42703"),
        ("SELECT i4 + 1 AS q FROM all_types ORDER BY q + 1", "42703"),
        ("SELECT i4 + 1 AS q FROM all_types GROUP BY q + 1", "42703"),
        ("SELECT t[1] FROM all_types", "42804"),
        ("SELECT 'abc'[1:2]", "42804"),
        ("SELECT s['x'] FROM all_types", "42804"),
        ("SELECT unnest(s) FROM all_types", "42883"),
        ("SELECT max(b) FROM all_types", "42883"),
        ("SELECT sum(b) FROM all_types", "42883"),
        ("SELECT avg(dt) FROM all_types", "42883"),
        ("SELECT bool_and(i4) FROM all_types", "42883"),
        ("SELECT string_agg(i4, ',') FROM all_types", "42883"),
        ("SELECT length(a) FROM all_types", "42883"),
        ("SELECT 1::utinyint", "42704"),
    ],
)
def test_meanings_of_duckdb_alone_are_errors(world: World, text: str, answer: str) -> None:
    with pytest.raises(SqlError) as raised:
        world.rows(text)
    assert raised.value.sqlstate == answer


def test_each_type_of_duckdb_is_postgresqls_or_does_not_exist(world: World, engine: duckdb.DuckDBPyConnection) -> None:
    names = {name for (name,) in engine.execute("SELECT DISTINCT type_name FROM duckdb_types()").fetchall()}
    names |= {word for word, kind in Postgres.Tokenizer.KEYWORDS.items() if kind in PullParser.TYPE_TOKENS}
    names |= {kind.value for kind in exp.DType}
    accepted = set()
    for name in sorted({name.lower() for name in names if re.fullmatch(r"\w+", name)}):
        for written in (name, f'"{name}"', f"{name}[]", f"pg_catalog.{name}"):
            try:
                world.plan(f"SELECT NULL::{written}")
            except SqlError as error:
                assert error.sqlstate in ("42704", "0A000", "42601", "42P01"), written  # noqa: PT017
                continue
            accepted.add(name)
    # spellings of PostgreSQL's grammar, and this server's own
    assert sorted(accepted - set(type_spellings().values()) - {
        "bigint", "bool", "boolean", "bytea", "char", "date", "dec", "decimal", "double", "float", "float4", "float8",
        "int", "int2", "int4", "int8", "integer", "interval", "json", "numeric", "oid", "real", "smallint", "text",
        "time", "timestamp", "timestamptz", "uuid", "varchar", "bpchar", "string", "tinyint", "varbinary", "binary",
        "nchar", "timestamp_ltz",
    }) == []  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "value"),
    [  # answers of PostgreSQL
        (r"length('\x0102ff'::bytea)", 3),
        (r"length(''::bytea)", 0),
        (r"octet_length('\x0102'::bytea)", 2),
        (r"bit_length('\x0102'::bytea)", 16),
        (r"substring('\xff00fe'::bytea, 2, 1)", b"\x00"),
        (r"substring('\xff00fe'::bytea FROM 2)", b"\x00\xfe"),
        (r"substring('\xff00fe'::bytea, -1, 3)", b"\xff"),
        (r"substr('\xff00fe'::bytea, 2, 9)", b"\x00\xfe"),
        (r"position('\x02'::bytea IN '\x0102'::bytea)", 2),
        (r"position('\x20'::bytea IN '\x0102'::bytea)", 0),
        (r"position(''::bytea IN '\x01'::bytea)", 1),
        (r"overlay('\x010203'::bytea PLACING '\xff'::bytea FROM 2)", b"\x01\xff\x03"),
        (r"overlay('\x010203'::bytea PLACING '\xff'::bytea FROM 2 FOR 2)", b"\x01\xff"),
        (r"btrim('\x00010200'::bytea, '\x00'::bytea)", b"\x01\x02"),
        (r"ltrim('\x000100'::bytea, '\x00'::bytea)", b"\x01\x00"),
        (r"rtrim('\x000100'::bytea, '\x00'::bytea)", b"\x00\x01"),
        (r"trim('\x00'::bytea FROM '\x000100'::bytea)", b"\x01"),
        (r"btrim('\x1010'::bytea, '\x01'::bytea)", b"\x10\x10"),
        (r"get_byte('\x01ff'::bytea, 1)", 255),
        (r"md5('\x616263'::bytea)", "900150983cd24fb0d6963f7d28e17f72"),
        (r"encode(sha256('\x616263'::bytea), 'hex')",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (r"'\x01'::bytea || '\x02'::bytea", b"\x01\x02"),
        (r"'\x01'::bytea || 'a'", b"\x01a"),
        (r"concat('\x61'::bytea, 'b')", "\\x61b"),
        (r"concat(ARRAY[1, 2], ARRAY[3])", "{1,2}{3}"),
        (r"(SELECT length(by) + bit_length(by) FROM all_types)", 18),
        (r"(SELECT by || t FROM all_types)", "\\x6162x"),
        (r"(SELECT string_agg(b, '\x00'::bytea ORDER BY b DESC) FROM (VALUES ('\x01'::bytea), ('\x02')) v(b))",
         b"\x02\x00\x01"),
    ],
)  # fmt: skip
def test_functions_of_bytes(world: World, expression: str, value: object) -> None:
    assert world.value(f"SELECT {expression}") == value


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        (r"char_length('\x01'::bytea)", "42883"),
        (r"substring('\x01'::bytea, 1, -1)", "22011"),
        (r"get_byte('\x01'::bytea, 1)", "2202E"),
        (r"sha512('\x01'::bytea)", "0A000"),  # DuckDB has none, and was given sha256
        (r"upper('\x01'::bytea)", "42883"),
    ],
)
def test_what_bytes_have_not(world: World, expression: str, answer: str) -> None:
    with pytest.raises(SqlError) as raised:
        world.value(f"SELECT {expression}")
    assert raised.value.sqlstate == answer


@pytest.mark.parametrize(
    ("literal", "value"),
    [("json '{\"b\": 1,  \"a\":2}'", '{"b": 1,  "a":2}'), ("jsonb '[1]'", "[1]"),
     ("bytea '\\x00ff'", "\\x00ff"),
     ("uuid 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
     ("timestamptz '2020-01-01'", "2020-01-01 00:00:00+00"), ("timestamp '2020-01-01'", "2020-01-01 00:00:00"),
     ("timestamp without time zone '2020-01-01'", "2020-01-01 00:00:00"), ("time '10:00'", "10:00:00"),
     ("date '2020-01-01'", "2020-01-01"), ("interval '1 day'", "1 day"), ("numeric '1.50'", "1.50"), ("int2 '3'", "3"),
     ("'1'::pg_catalog.int4", "1"), ("'1'::pg_catalog.\"int2\"", "1"),
     ("'1.5'::double precision", "1.5"), ("'ab'::character varying(1)", "a"), ("'{1}'::double precision[]", "{1}"),
     ("varchar 'a'", "a"), ("float8 '1.5'", "1.5"), ("real '1.5'", "1.5"), ("bool 't'", "true")],
)  # fmt: skip
def test_a_typed_text_is_a_cast(world: World, literal: str, value: str) -> None:
    assert world.value(f"SELECT ({literal})::text") == value


def test_functions_of_users_are_refused_by_their_name_unless_pull_queries_have_the_name() -> None:
    names = {"slug", "host", "lower"}
    for call in ("slug('a')", "host('a')", "1 + length(slug('a'))"):
        refusal = guard.own_call(parse_pull(f"SELECT {call}"), names)
        assert refusal is not None
        assert refusal.sqlstate == "0A000"
        assert refusal.message.endswith(" cannot be called in a pull query")
    for call in ("lower('A')", "'slug'", "upper('host')"):
        assert guard.own_call(parse_pull(f"SELECT {call}"), names) is None
