"""Views of equal keys in one table: the same rows as one query over all records gives, whoever comes, fails or goes."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from mvserver.dialect.errors.duck_errors import translate
from mvserver.serving.engine.database import Database
from spark_sinks.duckdb.batch_plans import BatchCommit, TableMerge, ViewMerge
from spark_sinks.duckdb.batch_table import BATCH
from spark_sinks.duckdb.changes.capture import AFTER, BEFORE
from spark_sinks.duckdb.layout import ViewLayout
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.state import shared_states
from spark_sinks.duckdb.state.roll_ups import MeasureInput, RollUp
from spark_sinks.duckdb.state.state import Measure, State, StateMeasure, UpsertState, source_text
from spark_sinks.duckdb.writer import MergeError, Writer
from tests.streaming.states import writer_in

Row = tuple[str | None, int | None, int | None, float | None]
SCHEMA = pa.schema([("a", pa.string()), ("b", pa.int32()), ("i", pa.int32()), ("x", pa.float64())])
FLAGS = {"f0": "true", "f1": "coalesce(i > 3, false)", "f2": "coalesce(b = 1 OR x < 0, false)"}
MEASURES = {
    "count(i)": (StateMeasure(Measure.COUNT, "BIGINT"), "i"),
    "sum(i)": (StateMeasure(Measure.SUM, "HUGEINT"), "i"),
    "min(x)": (StateMeasure(Measure.MIN, "DOUBLE"), "x"),
    "max(i)": (StateMeasure(Measure.MAX, "INTEGER"), "i"),
    "var_pop(x)": (StateMeasure(Measure.MOMENTS, "DOUBLE"), "x"),
}
KEY_TYPES = {"a": "VARCHAR", "b": "INTEGER"}


@dataclass
class View:
    """``fails_at``: the value of i at which its merge fails."""

    name: str
    keys: tuple[str, ...]
    calls: tuple[str, ...]
    flag: str = "f0"
    records: list[Row] = field(default_factory=list)
    fails_at: int | None = None

    @property
    def state(self) -> UpsertState:
        kinds = tuple(MEASURES[call][0] for call in self.calls)
        return UpsertState(f"{self.name}_1", tuple(KEY_TYPES[key] for key in self.keys), kinds)

    def roll_ups(self, *, partial: bool, nulls: bool) -> tuple[RollUp, ...]:
        inputs = []
        for call in self.calls:
            measure, argument = MEASURES[call]
            columns = tuple(f"{self.flag}_{argument}_{name}" for name in _PARTIAL[measure.kind])
            inputs.append(MeasureInput(partial=columns) if partial else MeasureInput(f"{self.flag}_{argument}"))
        passing, count = (f"{self.flag}_n > 0", f"{self.flag}_n") if partial else (self.flag, None)
        if self.fails_at is not None:
            passing = f"CASE WHEN i = {self.fails_at} THEN 'it is' ELSE 'true' END::BOOLEAN AND {passing}"
        parts = (False, True) if nulls and self.keys else (None,)
        return tuple(RollUp(self.state, BATCH, self.keys, tuple(inputs), passing, count, each) for each in parts)

    def recomputed(self) -> list[tuple[Any, ...]]:
        """By one query over all of its records."""
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in self.records], SCHEMA)
        with duckdb.connect() as cursor:
            cursor.register("records", table)
            keys = ", ".join(self.keys)
            calls = "".join(f", {call}" for call in self.calls)
            grouped = f"SELECT {keys}, count(*){calls} FROM records WHERE {FLAGS[self.flag]} GROUP BY {keys}"
            return cursor.execute(f"{grouped} ORDER BY {keys}").fetchall()


_PARTIAL = {
    Measure.COUNT: ("count",),
    Measure.SUM: ("sum",),
    Measure.MIN: ("min",),
    Measure.MAX: ("max",),
    Measure.MOMENTS: ("count", "mean", "m2"),
}


class World:
    def __init__(self, database: Database, writer: Writer) -> None:
        self.database, self.writer = database, writer
        self.views: list[View] = []
        self.batches = 0

    def add(self, *views: View) -> None:
        with self.writer.transaction():
            for view in views:
                state = view.state
                layout = ViewLayout(view.name, state.table, state.stored_columns, (), f"FROM {source_text(state)}")
                self.writer.create_state(state, layout)
        self.views += views

    def drop(self, *views: View) -> None:
        with self.writer.transaction():
            for view in views:
                self.writer.drop_state(view.state.tables, view.name)
        self.views = [view for view in self.views if view not in views]

    def commit(
        self, rows: Sequence[Row], *, partial: bool = False, only: Sequence[View] | None = None, **more: Any
    ) -> None:
        views = self.views if only is None else only
        table = _batch(rows, partial=partial)
        merges = tuple(self._merge(view, table, partial=partial, **more) for view in views)
        number = self.batches
        entry = LedgerEntry("p", 1, number, {"at": number}, {"at": number + 1}, len(rows))
        assert self.writer.commit(BatchCommit(entry, (TableMerge(table, merges),)))
        self.batches += 1
        for view in views:
            view.records += rows

    def _merge(self, view: View, table: pa.Table, *, partial: bool, keeper: Any = None) -> ViewMerge:
        nulls = any(table.column(key).null_count for key in view.keys)
        return ViewMerge(view.name, view.state, roll_ups=view.roll_ups(partial=partial, nulls=nulls), keeper=keeper)

    def rows(self, view: View) -> list[tuple[Any, ...]]:
        finished = [
            f"m{i}_m2 / nullif(m{i}_n, 0)" if call.startswith("var_pop") else f"m{i}"
            for i, call in enumerate(view.calls)
        ]
        with self.database.cursor() as cursor:
            names = [*view.state.keys, "n", *finished]
            order = ", ".join(view.state.keys)
            return cursor.execute(f'SELECT {", ".join(names)} FROM "_views"."{view.name}" ORDER BY {order}').fetchall()

    def check(self) -> None:
        for view in self.views:
            found, expected = self.rows(view), view.recomputed()
            assert len(found) == len(expected), view
            for one, other in zip(found, expected, strict=True):
                assert one == tuple(
                    pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value for value in other
                ), view

    def shared_tables(self) -> dict[str, int]:
        """With the number of states that are in each."""
        with self.database.cursor() as cursor:
            tables = cursor.execute(
                "SELECT table_name FROM duckdb_tables() WHERE schema_name = '_state' "
                "AND starts_with(table_name, 'shared_') AND NOT ends_with(table_name, '_nulls')"
            ).fetchall()
            places = shared_states.places(cursor)
        return {table: sum(place.table == table for place in places.values()) for (table,) in tables}


def _batch(rows: Sequence[Row], *, partial: bool) -> pa.Table:
    """As Spark sends it: a row for each record, or partial aggregates, several of a key."""
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    with duckdb.connect() as cursor:
        cursor.register("records", table)
        arguments = [f"CASE WHEN {flag} THEN {c} END AS {name}_{c}" for name, flag in FLAGS.items() for c in "ix"]
        flags = [f"{flag} AS {name}" for name, flag in FLAGS.items()]
        evaluated = f"SELECT a, b, i, {', '.join([*flags, *arguments])}, row_number() OVER () % 2 AS half FROM records"
        if not partial:
            return cursor.sql(evaluated).to_arrow_table()
        columns = [f"count(*) FILTER (WHERE {name}) AS {name}_n" for name in FLAGS]
        for argument in (f"{name}_{c}" for name in FLAGS for c in "ix"):
            columns += [f"{call}({argument}) AS {argument}_{call}" for call in ("count", "sum", "min", "max")]
            columns.append(f"avg({argument}) AS {argument}_mean")
            columns.append(f"var_pop({argument}) * count({argument}) AS {argument}_m2")
        return cursor.sql(f"SELECT a, b, {', '.join(columns)} FROM ({evaluated}) GROUP BY a, b, half").to_arrow_table()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """In which two views are many."""
    monkeypatch.setattr(shared_states, "SHARED_FROM_VIEWS", 2)
    with writer_in(tmp_path) as (database, writer):
        yield World(database, writer)


def _records(rng: random.Random, number: int, *, nulls: bool) -> list[Row]:
    def here() -> bool:
        return not nulls or rng.random() > 0.2

    return [
        (
            rng.choice("uvwxyz") if here() else None,
            rng.randrange(4) if here() else None,
            rng.randrange(10) if here() else None,
            rng.uniform(-5, 5) if here() else None,
        )
        for _ in range(number)
    ]


def _random_view(rng: random.Random, name: str) -> View:
    calls = tuple(rng.sample(list(MEASURES), rng.randrange(len(MEASURES) + 1)))
    return View(name, rng.choice([("a",), ("b",), ("a", "b")]), calls, rng.choice(list(FLAGS)))


@pytest.mark.parametrize("turn", range(4))
def test_any_views_agree_with_one_query_over_all_records(world: World, turn: int) -> None:
    seed = random.randrange(10**6)
    print(f"turn {turn}, seed {seed}")
    rng = random.Random(seed)
    world.add(*(_random_view(rng, f"v{i}") for i in range(8)))
    for step in range(14):
        rows = _records(rng, rng.randrange(1, 40), nulls=rng.random() < 0.6)
        world.commit(rows, partial=rng.random() < 0.4)
        world.check()
        if step % 3 == 1:
            new = _random_view(rng, f"w{step}")
            world.add(new)
            for _ in range(rng.randrange(3)):  # it is filled by itself, in a table of its own
                world.commit(_records(rng, 5, nulls=True), only=[new])
        if step % 4 == 3:
            world.drop(*rng.sample(world.views, 2))
            world.check()
        if step == 7:
            world.commit(_records(rng, 20, nulls=True), only=world.views[::2])  # others do not take part
    assert sum(world.shared_tables().values()) >= 2
    world.drop(*world.views)
    assert world.shared_tables() == {}
    assert world.writer.state_tables() == []


def test_views_share_by_their_keys(world: World) -> None:
    by_a = [View(f"a{i}", ("a",), ("sum(i)",)) for i in range(3)]
    by_both = [View(f"ab{i}", ("a", "b"), ("max(i)",)) for i in range(2)]
    alone = View("b", ("b",), ("max(i)",))
    world.add(*by_a, *by_both, alone)
    world.commit([("u", 1, 5, 0.5)])
    assert sorted(world.shared_tables().values()) == [2, 3]
    assert set(world.writer.state_tables()) == {table for view in world.views for table in view.state.tables}
    assert world.writer.has_tables(by_a[0].state.tables)
    world.check()


def test_few_views_have_tables_of_their_own(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        world = World(database, writer)
        world.add(*(View(f"v{i}", ("a",), ("sum(i)",)) for i in range(shared_states.SHARED_FROM_VIEWS - 1)))
        world.commit([("u", 1, 5, 0.5)])
        assert world.shared_tables() == {}
        world.add(View("one_more", ("a",), ("max(i)",)))
        world.commit([("u", 1, 5, 0.5)])
        assert list(world.shared_tables().values()) == [shared_states.SHARED_FROM_VIEWS]
        world.check()


def test_a_table_has_so_many_members(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_states, "_MEMBERS_MAX", 3)
    world.add(*(View(f"v{i}", ("a",), ("sum(i)",)) for i in range(7)))
    world.commit([("u", 1, 5, 0.5), (None, 1, 2, 0.5)])
    assert sorted(world.shared_tables().values()) == [1, 3, 3]
    world.check()
    world.drop(world.views[0])
    world.add(View("late", ("a",), ("max(i)",)))
    world.commit([("v", 1, 5, 0.5)])
    assert sum(world.shared_tables().values()) == 7
    world.check()


def test_a_large_state_stays_apart(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_states, "_ROWS_MAX", 4)
    large, *small = (View(f"v{i}", ("a",), ("sum(i)",)) for i in range(3))
    world.add(large, *small)
    world.commit([(key, 1, 5, 0.5) for key in "abcde"], only=[large])
    world.commit([("u", 1, 5, 0.5)])
    assert list(world.shared_tables().values()) == [2]
    world.check()


def test_moving_goes_on_with_the_next_batch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_states, "_ROWS_MAX", 4)
    views = [View(f"v{i}", ("a",), ("sum(i)",)) for i in range(4)]
    world.add(*views)
    for view in views:
        world.commit([(key, 1, 5, 0.5) for key in "abc"], only=[view])
    moved = []
    for _ in range(3):
        world.commit([("a", 1, 5, 0.5)])
        moved.append(sum(world.shared_tables().values()))
        world.check()
    assert moved == [2, 4, 4]


def test_another_server_finds_them(world: World) -> None:
    world.add(*(View(f"v{i}", ("a", "b"), ("sum(i)", "var_pop(x)"), flag) for i, flag in enumerate(FLAGS)))
    world.commit([("u", 1, 5, 0.5), ("v", None, 2, -0.5)])
    world.writer = Writer(world.database.cursor, translate)
    world.commit([("u", 1, 7, 1.5), ("w", 1, 2, None)])
    assert list(world.shared_tables().values()) == [3]
    world.check()
    world.drop(world.views[1])
    world.check()
    world.writer.close()


def test_whose_merge_fails_is_named_and_nothing_changes(world: World) -> None:
    views = [View(f"v{i}", ("a",), ("sum(i)",)) for i in range(3)]
    world.add(*views)
    world.commit([("u", 1, 5, 0.5)])
    views[1].fails_at = 13
    world.commit([("u", 1, 6, 0.5)])
    with pytest.raises(MergeError) as failed:
        world.commit([("u", 1, 7, 0.5), ("v", 1, 13, 0.5)])
    assert failed.value.query_id == "v1"
    world.check()
    world.commit([("u", 1, 7, 0.5), ("v", 1, 13, 0.5)], only=[views[0], views[2]])
    world.check()
    views[1].fails_at = None
    world.commit([("v", 1, 9, 0.5)], only=[views[1]])  # it catches up by itself
    world.commit([("u", 1, 7, 0.5)])
    world.check()


@pytest.mark.parametrize("step", ["before begin", "after rows", "after ledger"])
def test_a_batch_that_ends_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setattr(shared_states, "SHARED_FROM_VIEWS", 2)
    ending: list[str] = []

    def reached(name: str) -> None:
        if name in ending:
            raise RuntimeError(name)

    with writer_in(tmp_path) as (database, writer):
        writer.close()
        world = World(database, Writer(database.cursor, translate, reached))
        world.add(*(View(f"v{i}", ("a",), ("sum(i)",)) for i in range(2)))
        ending.append(step)
        with pytest.raises(RuntimeError, match=step):
            world.commit([("u", 1, 5, 0.5)])
        world.check()
        ending.clear()
        world.commit([("u", 1, 5, 0.5)])
        world.check()
        ending.append(step)
        with pytest.raises(RuntimeError, match=step):
            world.commit([("u", 1, 5, 0.5)])
        world.check()
        world.writer.close()


def test_states_that_cannot_be_moved_stay_as_they_are(world: World, caplog: pytest.LogCaptureFixture) -> None:
    views = [View(f"v{i}", ("a",), ("sum(i)",)) for i in range(2)]
    world.add(*views)
    with world.writer.transaction():  # what cannot be moved: a text among numbers
        world.writer.execute('DROP TABLE "_state"."v1_1"')
        world.writer.execute('CREATE TABLE "_state"."v1_1" (k0 VARCHAR, n BIGINT, m0 VARCHAR)')
        world.writer.execute("INSERT INTO \"_state\".\"v1_1\" VALUES ('z', 1, 'no number')")
    world.commit([("u", 1, 5, 0.5)], only=[views[0]])
    rows = world.rows(views[0])
    with pytest.raises(MergeError) as failed:
        world.commit([("u", 1, 5, 0.5)])
    assert failed.value.query_id == "v1"
    assert world.shared_tables() == {}
    assert "keep tables of their own" in caplog.text
    assert world.rows(views[0]) == rows


def test_a_reader_keeps_what_it_saw(world: World) -> None:
    view, other = (View(f"v{i}", ("a",), ("sum(i)",)) for i in range(2))
    world.add(view, other)
    world.commit([("u", 1, 5, 0.5)], only=[view])
    select = 'SELECT k0, n, m0 FROM "_views"."v0" ORDER BY ALL'
    with world.database.cursor() as reader:
        reader.execute("BEGIN TRANSACTION")
        before = reader.execute(select).fetchall()
        world.commit([("u", 1, 5, 0.5), ("v", 1, 5, 0.5)])
        assert list(world.shared_tables().values()) == [2]
        assert reader.execute(select).fetchall() == before == [("u", 1, 5)]
        reader.execute("COMMIT")
        assert reader.execute(select).fetchall() == [("u", 2, 10), ("v", 1, 5)]
        world.drop(other)
        assert reader.execute(select).fetchall() == [("u", 2, 10), ("v", 1, 5)]


def test_a_key_is_looked_up_by_the_index(world: World) -> None:
    view, other = View("v0", ("a",), ("sum(i)",), "f1"), View("v1", ("a",), ())
    world.add(view, other)
    world.commit([(f"k{i}", 1, i % 10, 0.5) for i in range(5_000)])
    with world.database.cursor() as cursor:
        looked_up = 'SELECT * FROM "_state"."v0_1" WHERE k0 = \'k4321\''
        ((_, plan),) = cursor.execute(f"EXPLAIN ANALYZE {looked_up}").fetchall()
        assert "Index Scan" in plan
        assert cursor.execute(f"SELECT count(*) FROM ({looked_up})").fetchall() == [(0,)]  # its i is 1: not counted
        assert cursor.execute(looked_up.replace("4321", "4324")).fetchall() == [("k4324", 1, 4)]


class _Keeper:
    """Counts the rows before and after."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.kept: list[tuple[int, int]] = []

    @property
    def others(self) -> Sequence[State]:
        return ()

    def shown(self, *, changed_only: bool) -> str:
        return f'SELECT * FROM "_views"."{self._view.name}"'

    def keep(
        self, cursor: duckdb.DuckDBPyConnection, register: Callable[[str, pa.Table], None], newest: dt.datetime | None
    ) -> None:
        counts = (cursor.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in (BEFORE, AFTER))
        before, after = counts
        self.kept.append((before, after))


def test_who_is_told_of_changes_merges_by_itself(world: World) -> None:
    views = [View(f"v{i}", ("a",), ("sum(i)",)) for i in range(2)]
    world.add(*views)
    world.commit([("u", 1, 5, 0.5)])
    keeper = _Keeper(views[0])
    world.commit([("u", 1, 5, 0.5), ("v", 1, 1, 0.5)], only=[views[0]], keeper=keeper)
    assert keeper.kept == [(1, 2)]
    world.check()


def test_sizes_are_told_of_each_view(world: World) -> None:
    world.add(View("v0", ("a",), ("sum(i)",), "f1"), View("v1", ("a",), ()))
    world.commit([(f"k{i}", 1, i % 10, 0.5) for i in range(5_000)])
    with world.database.cursor() as cursor:
        cursor.execute("CHECKPOINT")
    sizes = world.writer.view_sizes()
    assert {name: size.rows for name, size in sizes.items()} == {"v0": 3_000, "v1": 5_000}
    assert all(size.stored_bytes > 0 for size in sizes.values())
