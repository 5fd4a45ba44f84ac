"""Functions nested in themselves: what DuckDB binds grows with the text, and means what it meant."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.dialect.macro_sizes import OF_DUCKDB, macros
from mvserver.errors import SqlError
from mvserver.serving.api import PlanRequest, PullPlan
from mvserver.sql.dialect import parse_pull
from mvserver.sql.pull_functions import table
from tests.serving.world import SCOPE, World

pytestmark = pytest.mark.large

LEVELS = 18
CHARACTERS_A_LEVEL = 400
NUMBERS = "FROM generate_series(1, 3) AS s(g)"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(Path(tmp_path_factory.mktemp("nesting")))
    yield made
    made.close()


def _plan(world: World, text: str) -> PullPlan:
    return world.service.plan(PlanRequest(parse_pull(text), SCOPE))


def _rows(world: World, text: str) -> list[tuple[Any, ...]]:
    snapshot = world.service.snapshot()
    try:
        result = snapshot.run(_plan(world, text), ())
        return [tuple(row.values()) for batch in result.batches for row in batch.to_pylist()]
    finally:
        snapshot.close()


NESTED = {
    "power": ("(", " ^ 1.0)", 1.0),
    "casts through text": ("(", ")::text::int", 1),
    "nullif": ("nullif(", ", 7)", 1),
    "split_part": ("split_part(", "::text, 'x', 1)", "1"),
    "substring": ("substring(", "::text, 1)", "1"),
    "square root": ("sqrt(", ")", 1.0),
    "left and right": ("left(right(", "::text, 5), 5)", "1"),
    "array": ("(ARRAY[", "])[1]", 1),
    "substrings": ("substring(", "::text from 1 for 3)", "1"),
    "justify_interval": ("justify_interval(", ")", pa.MonthDayNano([0, 1, 0])),
    "initcap": ("initcap(", "::text)", "1"),
    "array_remove": ("array_length(array_remove(ARRAY[1, 2], ", "), 1)", 1),
    "pattern": ("(regexp_match(", "::text, '(1)(x)?'))[1]", "1"),
    "substring by a pattern": ("substring(", "::text FROM '[0-9]+')", "1"),
    "between": ("(", " BETWEEN 0 AND 2)::int", 1),
    "between symmetric": ("(", " BETWEEN SYMMETRIC 2 AND 0)::int", 1),
}
"""Around 1: what stands before and behind at each level, and what comes of it, as in PostgreSQL."""


@pytest.mark.parametrize("name", NESTED)
def test_the_text_grows_with_the_levels(world: World, name: str) -> None:
    """Macros of DuckDB put in, 20 levels of what names its argument twice would be a million."""
    begin, end, expected = NESTED[name]
    inner = "interval '24 hours'" if name.startswith("justify") else "1"
    text = f"SELECT {begin * LEVELS}{inner}{end * LEVELS}"
    assert len(_plan(world, text).sql) < CHARACTERS_A_LEVEL * LEVELS
    ((found,),) = _rows(world, text)
    assert found == expected


TO_CHAR = "to_char(g * 1.5, '999.99')"
CONTEXTS = {
    f"SELECT {TO_CHAR}, count(*) {NUMBERS} GROUP BY {TO_CHAR} ORDER BY {TO_CHAR}": [
        ("   1.50", 1), ("   3.00", 1), ("   4.50", 1),
    ],
    f"SELECT {TO_CHAR} AS a, count(*) {NUMBERS} GROUP BY a HAVING {TO_CHAR} > '   2' ORDER BY 1": [
        ("   3.00", 1), ("   4.50", 1),
    ],
    f"SELECT DISTINCT {TO_CHAR} {NUMBERS} ORDER BY {TO_CHAR} DESC": [("   4.50",), ("   3.00",), ("   1.50",)],
    f"SELECT row_number() OVER (PARTITION BY {TO_CHAR} ORDER BY {TO_CHAR}) {NUMBERS}": [(1,), (1,), (1,)],
    f"SELECT to_char(sum(g) * 1.5, '999.99') {NUMBERS}": [("   9.00",)],
    f"SELECT sum(length({TO_CHAR})) FILTER (WHERE {TO_CHAR} <> 'x') {NUMBERS}": [(21,)],
    f"SELECT (SELECT {TO_CHAR}) {NUMBERS} ORDER BY 1": [("   1.50",), ("   3.00",), ("   4.50",)],
    f"SELECT to_char((SELECT max(y) FROM generate_series(1, g) z(y)) * 1.5, '9.9') {NUMBERS} ORDER BY 1": [
        (" 1.5",), (" 3.0",), (" 4.5",),
    ],
    f"SELECT to_char((row_number() OVER (ORDER BY g)) * 1.5, '9.9') {NUMBERS} ORDER BY 1": [
        (" 1.5",), (" 3.0",), (" 4.5",),
    ],
    f"SELECT CASE WHEN g > 1 THEN {TO_CHAR} END {NUMBERS} ORDER BY g": [(None,), ("   3.00",), ("   4.50",)],
    f"SELECT array_agg({TO_CHAR} ORDER BY {TO_CHAR}) {NUMBERS}": [(["   1.50", "   3.00", "   4.50"],)],
    "SELECT to_char(NULL::numeric, '99') AS a, to_char(NULL::numeric * g, '99') AS b FROM generate_series(1, 1) s(g)": [
        (None, None)
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", CONTEXTS)
def test_what_is_bound_once_means_the_same(world: World, text: str) -> None:
    assert "_once" in _plan(world, text).sql
    assert _rows(world, text) == CONTEXTS[text]


@pytest.mark.parametrize(
    ("begin", "inner", "end"),
    [
        ("format_type((", "23", ")::text::int, 1)"),
        ("to_regtype(", "'int4'", "::text)"),
        ("to_char(", "23", ", 'FM999')::int"),
        ("(CASE ", "1", " WHEN 1 THEN 2 WHEN 3 THEN 4 ELSE 5 END)"),
        ("((", "1", ", 1) < (2, 3))::int"),
        ("(", "'{}'", " @> '{}'::jsonb)::text"),
        ("regexp_instr('banana', ", "1", "::text, 1, 2)"),
    ],
)
def test_what_cannot_be_bound_once_is_refused_before_duckdb_sees_it(
    world: World, begin: str, inner: str, end: str
) -> None:
    few = 2
    assert _plan(world, f"SELECT {begin * few}{inner}{end * few}").fields
    with pytest.raises(SqlError) as caught:
        _plan(world, f"SELECT {begin * 25}{inner}{end * 25}")
    assert caught.value.sqlstate == "54001"


def test_an_array_is_not_repeated(world: World) -> None:
    """As in PostgreSQL. Each level of ``array_fill`` in itself would multiply what DuckDB computes while it plans."""
    with pytest.raises(SqlError) as caught:
        _rows(world, f"SELECT {'array_fill(' * LEVELS}1{', ARRAY[1000])' * LEVELS}")
    assert caught.value.sqlstate == "42704"


def test_an_operand_of_between_is_computed_as_postgresql_does(world: World) -> None:
    """Also where it is large enough to be bound once."""
    large = f"greatest({', '.join(['(g BETWEEN 1 AND 2)::int'] * 700)})"
    text = f"SELECT g, ({large} BETWEEN 1 AND 9) BETWEEN (g = 3) AND true {NUMBERS} ORDER BY g"
    assert "_once" in _plan(world, text).sql
    assert _rows(world, text) == [(1, True), (2, True), (3, False)]


CLAUSES = (
    "({} BETWEEN 1 AND 2)", "(1 BETWEEN {} AND 2)", "({} BETWEEN SYMMETRIC 1 AND 2)", "({} NOT IN (1, 2))",
    "(CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 ELSE 5 END)", "(CASE 1 WHEN {} THEN 2 ELSE 3 END)", "(1 / {})", "({} % 3)",
    "({} ^ 2)", "({} IN (1, 2))", "({} = ANY (ARRAY[1, 2]))", "({} IS DISTINCT FROM 1)", "({} LIKE 'a%')",
    "('a' SIMILAR TO {})", "({} ~ 'a')", "({} || 'a')", "({} -> 'a')", "({} #>> '{{a}}')", "({} @> '{{}}'::jsonb)",
    "({} AT TIME ZONE 'UTC')", "({} + interval '1 day')", "(now() - {})", "({} & 1)", "({} << 1)", "(|/ {})",
    "(ARRAY[{}, 1])[1]", "(({}, 1) = (1, 2))", "(({}, 1) < (2, 3))", "(({}, 1) IN ((1, 2)))", "({} IS NOT UNKNOWN)",
    "(NULLIF({}, 1))", "(NULLIF(1, {}))", "(EXTRACT(year FROM {}))", "(SUBSTRING({} FROM 'a'))",
    "(TRIM(BOTH 'x' FROM {}))", "((SELECT {}))", "({}::numeric(9, 2))", "({}::varchar(3))",
)  # fmt: skip
SEEDS = ("1", "'a'", "1.5", "now()", "'{}'::jsonb", "true", "ARRAY[1]", "interval '1 day'", "current_date")
CASTS = ("", *(f"::{name}" for name in (
    "int", "text", "float8", "numeric", "timestamptz", "date", "interval", "jsonb", "boolean", "int[]", "bytea",
)))  # fmt: skip
CONSTANT = re.compile(r"'(?:[^']|'')*'(?:::\w+)?|\b\d+(?:\.\d+)?\b")
SECONDS_MAX = 10.0  # of the processor, on a slow machine: what doubles at each level takes more at the twelfth


def _forms() -> Iterator[str]:
    """Whatever takes an expression, with a place for one: clauses, and each constant of each function's example."""
    yield from CLAUSES
    for known in table().values():
        for each in known.examples[:2] if known.kind == "scalar" else ():
            for constant in CONSTANT.finditer(each.sql):
                around = each.sql[: constant.start()], each.sql[constant.end() :]
                yield "{}".join(part.replace("{", "{{").replace("}", "}}") for part in around)


def _accepted(world: World, text: str) -> bool:
    try:
        return bool(_plan(world, text).fields)
    except SqlError:
        return False


@pytest.mark.night
def test_whatever_is_nested_is_planned_or_refused_soon(world: World) -> None:
    nested = 0
    for form in _forms():
        units = (form.replace("{}", f"({{}}){cast}") if cast else form for cast in CASTS)
        tries = ((unit, seed) for unit in units for seed in SEEDS)
        found = next((t for t in tries if _accepted(world, f"SELECT {t[0].format(t[0].format(t[1]))}")), None)
        if found is None:
            continue  # nothing that it gives may stand in it
        unit, text = found
        nested += 1
        for levels in (6, 6, 8):  # one after the other, so that what doubles is met before it fills the memory
            for _ in range(levels):
                text = unit.format(text)
            began = time.process_time()
            _accepted(world, f"SELECT {text}")
            assert time.process_time() - began < SECONDS_MAX, f"{unit} in itself, {len(text)} characters"
    assert nested > 300


def test_plain_queries_are_written_as_before(world: World) -> None:
    for text in ("SELECT g ^ 2 " + NUMBERS, "SELECT nullif(g, 1), g::text::int " + NUMBERS):
        assert "_once" not in _plan(world, text).sql


def test_macros_of_a_rows_text_are_called_once_for_each_type(world: World) -> None:
    """DuckDB puts in their texts wherever they are called: 40 of ``_float8_out`` took it seconds to plan."""
    columns = ", ".join(f"{n}.5::float8 AS f{n}, {n} AS i{n}, {n} > 3 AS b{n}" for n in range(40))
    text = f"SELECT t::text FROM (SELECT {columns}) t"
    sql = _plan(world, text).sql.lower()
    assert [sql.count(f"{name}(") for name in ("_float8_out", "_bool_out", "_record_item")] == [1, 1, 1]
    expected = ",".join(f"{n}.5,{n},{'t' if n > 3 else 'f'}" for n in range(40))
    assert _rows(world, text) == [(f"({expected})",)]


def test_texts_of_rows_in_rows_grow_with_the_fields(world: World) -> None:
    levels = 7
    text = f"SELECT {'row(1.5::float8, ' * levels}1{')' * levels}::text"
    sql = _plan(world, text).sql.lower()
    assert [sql.count(f"{name}(") for name in ("_float8_out", "_record_item")] == [levels, levels]
    assert macros()["_row_out"].times == (1, *[0] * 8), "rows in rows would be 2 to the levels"
    inner = "(1.5,1)"
    for _ in range(levels - 1):
        inner = '(1.5,"' + inner.replace('"', '""') + '")'
    assert _rows(world, text) == [(inner,)]


def test_sizes_of_macros_are_those_of_their_texts(world: World) -> None:
    """Counted here from DuckDB's own form of them: no argument stands in a text much more often than was counted."""
    cursor = world.database.cursor()
    try:
        rows = cursor.execute(
            "SELECT function_name, parameters, macro_definition FROM duckdb_functions() "
            "WHERE function_type = 'macro' AND macro_definition IS NOT NULL "
            "AND (schema_name = 'fn' OR function_name IN (SELECT unnest(?)))",
            [list(OF_DUCKDB)],
        ).fetchall()
    finally:
        cursor.close()
    known = macros()
    assert len(rows) > 200
    for name, parameters, text in rows:
        words = text.replace("(", " ").replace(")", " ").replace(",", " ").replace("[", " ").split()
        for number, parameter in enumerate(parameters):
            counted = known[name].times[number] if number < len(known[name].times) else 0
            names = sum(1 for word, mark in pairwise(words) if word == parameter and mark == ":=")
            assert counted * 2 >= words.count(parameter) - names, (name, parameter)  # DuckDB repeats some operands
    assert limits.EXPANDED_TOKENS_MAX > limits.MACRO_REPEATS_MAX
