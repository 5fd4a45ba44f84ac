"""Values whose form depends on their type: the blanks of a char(n), digits of times in arrays, rows of sets."""

from __future__ import annotations

from datetime import datetime, time

import pytest

from mvserver.errors import SqlError
from mvserver.types import oids
from tests.serving.world import World

_CHARS = "(SELECT 'b'::char(3) AS x UNION ALL SELECT 'a'::char(3)) s"


def _rows(world: World, text: str) -> list[tuple[object, ...]]:
    return list(world.rows(text))


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("max(DISTINCT x)", "b  "),
        ("min(DISTINCT x)", "a  "),
        ("max(DISTINCT x) FILTER (WHERE x <> 'b')", "a  "),
        ("max(x ORDER BY x)", "b  "),
        ("max(DISTINCT x::char(4))", "b   "),
    ],
)
def test_the_largest_of_distinct_chars_has_its_blanks(world: World, call: str, wanted: str) -> None:
    text = f"SELECT {call} FROM {_CHARS}"
    assert [field.type_oid for field in world.plan(text).fields] == [oids.BPCHAR]
    assert _rows(world, text) == [(wanted,)]


def test_chars_beside_constants_have_their_blanks(world: World) -> None:
    assert _rows(world, "SELECT octet_length(coalesce('a'::char(4), 'b')) AS n") == [(4,)]
    assert _rows(world, "SELECT octet_length(coalesce(NULL::char(4), 'b')) AS n") == [(1,)]
    text = f"SELECT concat(CASE WHEN x = 'a' THEN x ELSE coalesce('c', x) END, '|') AS t FROM {_CHARS}"
    assert sorted(_rows(world, text)) == [("a  |",), ("c|",)]
    grouped = f"SELECT concat(coalesce(x, 'c'), '') IS NULL AS t, count(*) AS n FROM {_CHARS} GROUP BY coalesce(x, 'c')"
    assert _rows(world, grouped) == [(False, 1), (False, 1)]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("'{12:00:00.55,NULL}'::time(1)[]", [time(12, 0, 0, 600_000), None]),
        ("ARRAY['12:00:00.55'::time]::time(0)[]", [time(12, 0, 1)]),
        ("'{{12:00:00.55},{12:00:00.44}}'::time(1)[]", [[time(12, 0, 0, 600_000)], [time(12, 0, 0, 400_000)]]),
        ("'{\"2020-01-01 12:00:00.5\"}'::timestamp(0)[]", [datetime(2020, 1, 1, 12, 0, 1)]),
        ("'{12:00:00.55}'::time(6)[]", [time(12, 0, 0, 550_000)]),
        ("NULL::time(1)[]", None),
        ("(ARRAY['1.55 sec'::interval]::interval(1)[])[1]::text", "00:00:01.6"),
    ],
)
def test_times_of_arrays_have_the_digits_of_their_type(world: World, value: str, wanted: object) -> None:
    assert _rows(world, f"SELECT {value} AS v") == [(wanted,)]


def test_a_text_beside_null_in_a_set_is_a_text(world: World) -> None:
    rows = "(SELECT 1 AS a, 'x y' AS b UNION ALL SELECT 2, NULL) t"
    assert _rows(world, f"SELECT array_agg(t ORDER BY a)::text AS t FROM {rows}") == [(r'{"(1,\"x y\")","(2,)"}',)]
    assert _rows(world, f"SELECT t::text AS t FROM {rows} ORDER BY a") == [('(1,"x y")',), ("(2,)",)]
    assert _rows(world, "SELECT count(*) AS n FROM (SELECT '{}' AS b UNION ALL SELECT ARRAY[NULL]) t") == [(2,)]


def test_to_char_of_chance_shows_one_draw(world: World) -> None:
    several = "FROM generate_series(1, 300) ORDER BY 1"
    moment = "'2020-01-31 23:59:59'::timestamp + (random() * 2)::int * interval '1 second'"
    assert _rows(world, f"SELECT DISTINCT to_char({moment}, 'YYYY-MM-DD HH24:MI:SS') AS t {several}") == [
        ("2020-01-31 23:59:59",), ("2020-02-01 00:00:00",), ("2020-02-01 00:00:01",),
    ]  # fmt: skip
    tens = "(random() * 2)::int * 10.5::float8 - 10"
    assert _rows(world, f"SELECT DISTINCT to_char({tens}, 'S99.9') AS t {several}") == [
        ("  +.5",), ("+11.0",), ("-10.0",),
    ]  # fmt: skip
    assert "_drawn" not in world.plan("SELECT to_char(1.5 + g, '9.9') FROM generate_series(1, 2) s(g)").sql


def test_a_row_of_all_columns_has_them_for_its_fields(world: World) -> None:
    rows = "(SELECT 1 AS a, 2.5::float8 AS b) t"
    assert _rows(world, f"SELECT row(t.*)::text AS t, row(t.*) IS NULL AS n FROM {rows}") == [("(1,2.5)", False)]
    assert _rows(world, f"SELECT row(t.*) = row(1, 2.5) AS e FROM {rows}") == [(True,)]
    assert [field.name for field in world.plan(f"SELECT row(t.*)::text, row(t.*), t::text FROM {rows}").fields] == [
        "row", "row", "t",
    ]  # fmt: skip


def test_the_row_of_a_sub_query_is_read_once(world: World) -> None:
    row = "(SELECT t FROM (SELECT g, g + 0.5::float8 AS f, g > 1 AS b) t WHERE visits > 0)"
    text = f"SELECT {row}::text AS t FROM visits, generate_series(1, 2) s(g) WHERE visits = 1"
    assert world.plan(text).sql.lower().count("> 0") == 1
    assert _rows(world, f"{text} ORDER BY 1") == [("(1,1.5,f)",), ("(2,2.5,t)",)]


def test_fields_that_are_sub_queries_are_values(world: World) -> None:
    none, two = "(SELECT 1.5::float8 WHERE false)", "(SELECT g::float8 FROM generate_series(1, 2) s(g))"
    assert _rows(world, f"SELECT row({none})::text AS t, row({none}, true)::text AS u") == [("()", "(,t)")]
    for text in (f"row({two})::text", f"row({two}, 1)::text", "(SELECT t FROM generate_series(1, 2) t)::text"):
        with pytest.raises(SqlError, match="more than one row returned by a subquery"):
            _rows(world, f"SELECT {text} AS t")


@pytest.mark.parametrize("row", ["row(t.*, 3)", "row(0, t.*)", "(t.*, 3)", "row(u.*)"])
def test_all_columns_beside_other_fields_are_refused(world: World, row: str) -> None:
    with pytest.raises(SqlError, match=r"[tu]\.\* in a row, beside other fields or of an outer join") as caught:
        world.plan(f"SELECT {row}::text FROM (SELECT 1 AS a, 2 AS b) t LEFT JOIN (SELECT 1 AS c) u ON false")
    assert caught.value.sqlstate == "0A000"
