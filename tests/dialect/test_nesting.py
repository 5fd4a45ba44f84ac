"""Functions nested in themselves: what DuckDB binds grows with the text, and means what it meant."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mvserver import limits
from mvserver.dialect.macro_sizes import OF_DUCKDB, macros
from mvserver.errors import SqlError
from mvserver.serving.api import PlanRequest, PullPlan
from mvserver.sql.dialect import parse_pull
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
}
"""Around 1: what stands before and behind at each level, and what comes of it, as in PostgreSQL."""


@pytest.mark.parametrize("name", NESTED)
def test_the_text_grows_with_the_levels(world: World, name: str) -> None:
    """Macros of DuckDB put in, 20 levels of what names its argument twice would be a million."""
    begin, end, expected = NESTED[name]
    text = f"SELECT {begin * LEVELS}1{end * LEVELS}"
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


def test_what_cannot_be_bound_once_is_refused_before_duckdb_sees_it(world: World) -> None:
    for begin, end in (("format_type((", ")::text::int, 1)"), ("to_char(", ", 'FM999')::int")):
        with pytest.raises(SqlError) as caught:
            _plan(world, f"SELECT {begin * 12}23{end * 12}")
        assert caught.value.sqlstate == "54001"


def test_plain_queries_are_written_as_before(world: World) -> None:
    for text in ("SELECT g ^ 2 " + NUMBERS, "SELECT nullif(g, 1), g::text::int " + NUMBERS):
        assert "_once" not in _plan(world, text).sql


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
