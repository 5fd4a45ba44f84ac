"""Streams that a pull query reads to their present end: what is read of them, and what the query makes of the rows.

The rows are a table of the test instead of Spark's; what the SQL means over them is DuckDB's, as for a view.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from mvserver.serving.api import ReadsStream, StreamRead
from mvserver.sql.dialect import parse_select
from mvserver.types.registry import encoder
from tests.serving.world import SCOPE, World, rows_of

BOUNDED = replace(SCOPE, reads_streams=True)
ROWS = pa.table({"url": ["./home", "./a", "./home"], "n": pa.array([1, 2, None], pa.int32())})


def reads(world: World, text: str) -> tuple[StreamRead, ...]:
    found = world.plan(text, scope=BOUNDED).streams
    for read in found:
        parse_select(read.select)  # what the session sends to the compiler
    return found


def answer(world: World, text: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    plan = world.plan(text, scope=BOUNDED)
    tables: Mapping[str, Any] = {read.name: ROWS.select([name for name, _ in read.columns]) for read in plan.streams}
    return rows_of(world.snapshot.run(plan, parameters, tables=tables))


def test_a_changelog_is_read_whole(world: World) -> None:
    """Which of its rows are there is known at its end, so a LIMIT does not go to the source."""
    relations = world.catalog.current.relations
    changed = tuple(replace(each, kind="changelog") if each.name == "src" else each for each in relations)
    world.catalog.change(relations=changed)
    try:
        (read,) = reads(world, "SELECT n FROM src LIMIT 5")
        with pytest.raises(ReadsStream):
            world.plan("SELECT n FROM src LIMIT 5")
    finally:
        world.catalog.change(relations=relations)
    assert ([name for name, _ in read.columns], read.limit) == (["n"], None)


def test_live_is_the_default(world: World) -> None:
    with pytest.raises(ReadsStream) as caught:
        world.plan("SELECT * FROM src")
    assert (caught.value.sqlstate, caught.value.position) == ("0A000", 15)


@pytest.mark.parametrize(
    ("text", "columns", "limit"),
    [
        ("SELECT * FROM src", ("url", "n"), None),
        ("SELECT n FROM src", ("n",), None),
        ("SELECT count(*) FROM src", ("url",), None),
        ("SELECT count(*) FROM src WHERE n > 1", ("n",), None),
        ("SELECT s.* FROM src s", ("url", "n"), None),
        ("SELECT s FROM src s", ("url", "n"), None),
        ("SELECT visits FROM visits JOIN src USING (url)", ("url",), None),
        ("SELECT 1 FROM visits NATURAL JOIN src", ("url", "n"), None),
        ("SELECT * FROM src LIMIT 5", ("url", "n"), 5),
        ("SELECT n FROM src LIMIT 5 OFFSET 3", ("n",), 8),
        ("SELECT n AS m, 1 FROM src LIMIT 0", ("n",), 0),
        ("SELECT n + 1 FROM src LIMIT 5", ("n",), None),
        ("SELECT n FROM src WHERE n > 1 LIMIT 5", ("n",), None),
        ("SELECT n FROM src ORDER BY n LIMIT 5", ("n",), None),
        ("SELECT DISTINCT n FROM src LIMIT 5", ("n",), None),
        ("SELECT sum(n) FROM src LIMIT 5", ("n",), None),
        ("SELECT n, count(*) FROM src GROUP BY n LIMIT 5", ("n",), None),
        ("SELECT row_number() OVER () FROM src LIMIT 5", ("url",), None),
        ("SELECT src.n FROM src, visits LIMIT 5", ("n",), None),
        ("SELECT n FROM (SELECT n FROM src) x LIMIT 5", ("n",), None),
        ("SELECT unnest(ARRAY[n, n]) FROM src LIMIT 5", ("n",), None),
        ("SELECT n FROM src LIMIT (SELECT 1)", ("n",), None),
    ],
)
def test_what_is_read(world: World, text: str, columns: tuple[str, ...], limit: int | None) -> None:
    (read,) = reads(world, text)
    assert (tuple(name for name, _ in read.columns), read.limit) == (columns, limit)


def test_properties_and_names_go_along(world: World) -> None:
    (read,) = reads(world, "SELECT n FROM public.src WITH ('starting.position' = 'latest') WHERE url = 'it''s'")
    assert read.select == ("""SELECT "url", "n" FROM "postgres"."public"."src" WITH ('starting.position' = 'latest')""")


def test_equal_reads_are_one(world: World) -> None:
    assert len(reads(world, "SELECT a.n FROM src a JOIN src b ON a.n = b.n")) == 1
    both = "SELECT a.n FROM src a JOIN src WITH ('starting.position' = 'latest') b ON a.n = b.n"
    assert [read.name for read in reads(world, both)] == ["mv_stream_0", "mv_stream_1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM src ORDER BY n", [("./home", 1), ("./a", 2), ("./home", None)]),
        ("SELECT count(*), sum(n) FROM src", [(3, 3)]),
        ("SELECT url, count(n) FROM src GROUP BY 1 ORDER BY 1", [("./a", 1), ("./home", 1)]),
        ("SELECT v.visits, s.n FROM visits v JOIN src s USING (url) ORDER BY 1, 2", [(1, 2), (3, 1), (3, None)]),
        ("SELECT src.n FROM src WHERE EXISTS (SELECT 1 FROM src x WHERE x.n = src.n + 1)", [(1,)]),
        ("WITH w AS (SELECT n FROM src) SELECT max(n) FROM w", [(2,)]),
        ("SELECT n / 2 FROM src WHERE n IS NOT NULL ORDER BY 1", [(0,), (1,)]),
    ],
)
def test_answers(world: World, text: str, expected: list[tuple[Any, ...]]) -> None:
    assert answer(world, text) == expected


def test_parameters(world: World) -> None:
    assert answer(world, "SELECT url FROM src WHERE n = $1", (2,)) == [("./a",)]


def test_each_run_has_its_own_rows(world: World) -> None:
    plan = world.plan("SELECT sum(n) FROM src", scope=BOUNDED)
    for number in (5, 7):
        rows = {"mv_stream_0": pa.table({"n": pa.array([number], pa.int32())})}
        assert rows_of(world.snapshot.run(plan, (), tables=rows)) == [(number,)]


def test_explain_says_what_is_read(world: World) -> None:
    lines = world.service.explain(world.plan("SELECT n FROM src LIMIT 2", scope=BOUNDED))
    assert lines[1] == 'Read by Spark, to the present end: SELECT "n" FROM "postgres"."public"."src" LIMIT 2'


_INSTANT = dt.datetime(2024, 5, 1, 8, tzinfo=dt.UTC)
_OWN_FORMS: list[tuple[str, pa.DataType, object, str]] = [
    ("STRUCT(x REAL)", pa.struct([("x", pa.float32())]), {"x": 0.1}, '{"x":0.1}'),
    ("STRUCT(x REAL)", pa.struct([("x", pa.float32())]), {"x": float("nan")}, '{"x":"NaN"}'),
    ("MAP(REAL, INTEGER)", pa.map_(pa.float32(), pa.int32()), [(0.1, 1)], '{"0.1":1}'),
    ("STRUCT(x DOUBLE)", pa.struct([("x", pa.float64())]), {"x": float("inf")}, '{"x":"Infinity"}'),
    ("STRUCT(z TIMESTAMPTZ)", pa.struct([("z", pa.timestamp("us", "UTC"))]), {"z": _INSTANT},
     '{"z":"2024-05-01T08:00:00+00:00"}'),
    ("MAP(TIMESTAMPTZ, INTEGER)", pa.map_(pa.timestamp("us", "UTC"), pa.int32()), [(_INSTANT, 1)],
     '{"2024-05-01T08:00:00+00:00":1}'),
    ("STRUCT(a REAL[])", pa.struct([("a", pa.list_(pa.float32()))]), {"a": [0.1, None]}, '{"a":[0.1,null]}'),
    ("STRUCT(b BLOB)", pa.struct([("b", pa.binary())]), {"b": b"\0"}, '{"b":"\\\\x00"}'),
    ("STRUCT(x REAL)[]", pa.list_(pa.struct([("x", pa.float32())])), [{"x": 0.1}, None], r'{"{\"x\":0.1}",NULL}'),
    ("MAP(DATE, DOUBLE)[]", pa.list_(pa.map_(pa.date32(), pa.float64())), [[(dt.date(2024, 5, 1), float("nan"))], []],
     r'{"{\"2024-05-01\":\"NaN\"}","{}"}'),
    ('STRUCT("REAL" INTEGER)', pa.struct([("REAL", pa.int32())]), {"REAL": 1}, '{"REAL":1}'),
]  # fmt: skip


@pytest.mark.parametrize(("duck", "arrow", "value", "shown"), _OWN_FORMS)
def test_nested_rows_of_a_push_query_have_the_texts_of_a_view(
    world: World, duck: str, arrow: pa.DataType, value: object, shown: str
) -> None:
    """REAL and TIMESTAMPTZ are not the names by which DuckDB prints them: its own documents had them, with ``nan``."""
    shaper = world.service.shaper([("v", duck)])
    shaped = shaper.shape(pa.record_batch({"v": pa.array([value, None], arrow)}))
    (field,) = shaper.fields
    column = shaped.column(0)
    made = encoder(field.type_oid, field.typmod, 0, column.type, "UTC")
    assert [None if cell is None else bytes(cell).decode() for cell in made.cells(column)] == [shown, None]
    shaper.close()


def test_rows_of_a_push_query_are_shaped_as_those_of_a_view(world: World) -> None:
    shaper = world.service.shaper(
        [("b", "TINYINT"), ("s", "STRUCT(x INTEGER, y VARCHAR)"), ("d", "DECIMAL(10, 2)"), ("a", "INTEGER[]")]
    )
    assert [(field.name, field.type_oid) for field in shaper.fields] == [
        ("b", 21),
        ("s", 114),
        ("d", 1700),
        ("a", 1007),
    ]
    batch = pa.record_batch(
        {
            "b": pa.array([1, None], pa.int8()),
            "s": pa.array([{"x": 1, "y": "z"}, None]),
            "d": pa.array([None, None], pa.decimal128(10, 2)),
            "a": pa.array([[1, None], []], pa.list_(pa.int32())),
        }
    )
    shaped = shaper.shape(batch)
    floats = world.service.shaper([("f", "REAL"), ("z", "TIMESTAMPTZ"), ("fs", "REAL[]"), ("zs", "TIMESTAMPTZ[]")])
    assert [field.type_oid for field in floats.fields] == [700, 1184, 1021, 1185]
    floats.close()
    assert [column.to_pylist() for column in shaped.columns] == [
        [1, None], ['{"x":1,"y":"z"}', None], [None, None], [[1, None], []],
    ]  # fmt: skip
    assert shaped.column(0).type == pa.int16()
    shaper.close()
