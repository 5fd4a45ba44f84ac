"""The join of two changelogs in DuckDB: random changes in random batches, against the rows joined anew after each."""

from __future__ import annotations

import datetime as dt
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver.dialect.errors.duck_errors import translate
from mvserver.serving.engine.database import Database
from spark_sinks.duckdb.batch_plans import BatchCommit, Move, TableMerge, ViewMerge
from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.joins.changelog_joins import ChangelogTables
from spark_sinks.duckdb.joins.join_sides import Batch, FeedState, Side
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.record_columns import PLACE, RANK
from spark_sinks.duckdb.writer import Writer

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))
ROUNDS = int(os.environ.get("MVSERVER_TEST_ROUNDS", "1"))
NOON = dt.datetime(2024, 5, 17, 12, tzinfo=dt.UTC)

Key = tuple[Any, ...]
Table = dict[Key, tuple[Any, Any, int]]
"""By primary key: join key, value and event time."""
Joined = dict[Key, tuple[Any, ...]]


@dataclass(frozen=True)
class Change:
    """``row`` is None for a deletion."""

    key: Key
    row: tuple[Any, Any, int] | None


def tables(kind: str, *, residual: bool = False, by_left: bool = False) -> ChangelogTables:
    """The left side has two columns in its primary key, the right one; each gives its key and a value."""
    left = Side("v_1_join_left", ("VARCHAR",), ("BIGINT", "VARCHAR", "BIGINT"), kind != "INNER",
                primary_types=("BIGINT", "VARCHAR"))  # fmt: skip
    right = Side("v_1_join_right", ("VARCHAR",), ("BIGINT", "BIGINT"), kind == "FULL", primary_types=("BIGINT",))
    # The key's columns first: p0, p1 of the left and p0 of the right side; then both values and the time.
    order = (0, 1, 3, 2, 4, 5)
    types = ("BIGINT", "VARCHAR", "BIGINT", "BIGINT", "BIGINT", "TIMESTAMPTZ")
    log = Log("v_1_join_log", types, "log", key_columns=2 if by_left else 3)
    return ChangelogTables(left, right, log, order, "{l}.v2 < {r}.v1" if residual else None)


@dataclass
class World:
    folder: Path
    join: ChangelogTables
    sides: tuple[Table, Table] = field(default_factory=lambda: ({}, {}))
    result: Joined = field(default_factory=dict)
    batches: int = 0
    read: int = 0

    def __post_init__(self) -> None:
        self.open()
        with self.writer.transaction() as ledger:
            for statement in self.join.create_statements():
                self.writer.execute(statement)
            ledger.begin_generation("p", {"n": 0})
            for side in (0, 1):
                ledger.add_subscriber(f"q/{side}", 1, "p", {"n": 0})
            ledger.begin_generation("log", {"seq": 0})
            ledger.add_subscriber("q", 1, "log", {"seq": 0})

    def open(self) -> None:
        self.database = Database.open(self.folder / "views.duckdb")
        self.writer = Writer(self.database.cursor, translate)

    def close(self) -> None:
        self.writer.close()
        self.database.close()

    def commit(self, *changes: tuple[int, Sequence[Change]]) -> None:
        """One transaction with a batch for each of the sides."""
        merges = [TableMerge(table_of(rows), (self._merge(side),)) for side, rows in changes]
        number = self.batches
        moves = (Move(("q/0", "q/1"), {"n": number + 1}),)
        entry = LedgerEntry("p", 1, number, {"n": number}, {"n": number + 1}, 1)
        batch = BatchCommit(entry, tuple(merges), moves=moves)
        assert self.writer.commit(batch)
        assert not self.writer.commit(batch), "the same batch again is skipped"
        self.batches += 1
        for side, rows in changes:
            for change in rows:
                self.sides[side].pop(change.key, None)
                if change.row is not None:
                    self.sides[side][change.key] = change.row

    def _merge(self, side: int) -> ViewMerge:
        feed = FeedState(self.join, side)
        keys = feed.side.primary_key
        statements = self.join.feed_statements(
            side, Batch("mv_batch", "f", "p", ("k", *keys, "v", "t", "r"), "q", keys)
        )
        return ViewMerge(f"q/{side}", feed, statements=tuple(statements))

    def take(self) -> int:
        """What the log says of the rows becomes part of the result; how many changes that were."""
        log = self.join.log
        with self.database.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'")
            ((_, end),) = cursor.execute(logs.bounds_query(log)).fetchall()
            rows = cursor.execute(logs.read_query(log, log.columns), [self.read, end]).fetchall()
        assert [int(row[0]) for row in rows] == list(range(self.read, end)), "numbers have no gaps"
        for _, _, deleted, *columns in rows:
            key, values = tuple(columns[: log.key_columns]), tuple(columns[log.key_columns or 0 :])
            if deleted:
                assert key in self.result, "what goes was there"
                del self.result[key]
            else:
                assert self.result.get(key) != values, "what comes differs"
                self.result[key] = values
        with self.writer.transaction() as ledger:
            ledger.move_subscribers(["q"], {"seq": end})
        self.read = end
        return len(rows)


def table_of(changes: Sequence[Change]) -> pa.Table:
    rows = [change.row or (None, None, None) for change in changes]
    texts = {"p1": pa.array([change.key[1] if len(change.key) > 1 else None for change in changes], pa.string())}
    return pa.table(
        {
            "f": [True] * len(changes),
            "p": [change.row is not None for change in changes],
            "p0": pa.array([change.key[0] for change in changes], pa.int64()),
            **texts,
            "k": pa.array([row[0] for row in rows], pa.string()),
            "v": pa.array([row[1] for row in rows], pa.int64()),
            "t": pa.array([row[2] for row in rows], pa.int64()),
            "r": pa.array([NOON] * len(changes), pa.timestamp("us", "UTC")),
            RANK: pa.array([0] * len(changes), pa.int64()),
            PLACE: pa.array(range(len(changes)), pa.int64()),
        }
    )


def joined(kind: str, left: Table, right: Table, *, residual: bool, by_left: bool) -> Joined:
    found: list[tuple[Any, ...]] = []
    met: set[Key] = set()
    for key, (k, v, t) in left.items():
        partners = [
            (other, (ov, ot))
            for other, (ok, ov, ot) in right.items()
            if k is not None and k == ok and (not residual or (v is not None and ov is not None and v < ov))
        ]
        found += [(*key, *other, v, ov, max(t, ot)) for other, (ov, ot) in partners]
        met |= {other for other, _ in partners}
        if not partners and kind != "INNER":
            found.append((*key, None, v, None, t))
    if kind == "FULL":
        found += [(None, None, *key, None, v, t) for key, (_, v, t) in right.items() if key not in met]
    rows = [(*row[:5], dt.datetime.fromtimestamp(row[5] / 1e6, dt.UTC)) for row in found]
    width = 2 if by_left else 3
    result = {row[:width]: row[width:] for row in rows}
    assert len(result) == len(rows)
    return result


def some_changes(chance: random.Random, side: int, table: Table, join_keys: Sequence[Any]) -> list[Change]:
    """Also several of one key in a batch, records that change nothing, and deletions of what is not there."""
    changes = []
    for _ in range(chance.choice((1, 2, 5, 20))):
        key: Key = (chance.choice((1, 2, 3, 4, None)), chance.choice("xy")) if side == 0 else (chance.randint(1, 8),)
        if chance.random() < 0.3:
            changes.append(Change(key, None))
        elif key in table and chance.random() < 0.2:
            changes.append(Change(key, table[key]))
        else:
            row = (chance.choice(join_keys), chance.choice((None, 1, 2, 3)), chance.randint(0, 3))
            changes.append(Change(key, row))
    return changes


@pytest.mark.parametrize("residual", [False, True], ids=["", "residual"])
@pytest.mark.parametrize("kind", ["INNER", "LEFT", "FULL"])
def test_joined_rows_follow_random_changes(kind: str, residual: bool, tmp_path: Path) -> None:
    for round_ in range(ROUNDS):
        print("seed", SEED + round_, "(MVSERVER_TEST_SEED)")
        chance = random.Random(f"{SEED + round_} {kind} {residual}")
        (tmp_path / str(round_)).mkdir()
        world = World(tmp_path / str(round_), tables(kind, residual=residual))
        changed = 0
        for _ in range(16):
            sides = chance.choice(((0,), (1,), (0, 1)))
            world.commit(*[(s, some_changes(chance, s, world.sides[s], ("a", "b", "c", "", None))) for s in sides])
            if chance.random() < 0.1:
                world.close()
                world.open()
            if chance.random() < 0.7:
                changed += world.take()
                assert world.result == joined(kind, *world.sides, residual=residual, by_left=False)
        assert changed > 0
        world.close()


def test_rows_told_apart_by_the_left_key_are_replaced_in_place(tmp_path: Path) -> None:
    """Where a left row meets one right row at most, as ON right.primary_key = left.column has it."""
    print("seed", SEED)
    chance = random.Random(SEED)
    world = World(tmp_path, tables("LEFT", by_left=True))
    for _ in range(14):
        changes = some_changes(chance, 0, world.sides[0], [str(n) for n in range(1, 9)])
        rights = some_changes(chance, 1, world.sides[1], ("",))
        for number, change in enumerate(rights):
            if change.row is not None:
                rights[number] = Change(change.key, (str(change.key[0]), *change.row[1:]))
        world.commit((0, changes), (1, rights))
        world.take()
        assert world.result == joined("LEFT", *world.sides, residual=False, by_left=True)
    world.close()


def test_a_partner_that_takes_the_place_of_another_is_one_change(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT"))
    world.commit((0, [Change((1, "x"), ("a", 5, 0))]))
    assert world.take() == 1
    assert world.result == {(1, "x", None): (5, None, dt.datetime(1970, 1, 1, tzinfo=dt.UTC))}
    world.commit((1, [Change((7,), ("a", 6, 0)), Change((8,), ("a", 6, 0))]))
    assert world.take() == 3, "the row alone goes, two pairs come"
    world.commit((1, [Change((7,), None)]))
    assert world.take() == 1, "the other pair stays as it is"
    world.commit((1, [Change((8,), ("a", 6, 0)), Change((9,), ("b", 6, 0)), Change((9,), None)]))
    assert world.take() == 0, "what comes and goes in a batch is no change, nor is the same row again"
    world.commit((1, [Change((8,), ("b", 6, 0))]), (0, [Change((1, "x"), ("a", 6, 0))]))
    world.take()
    assert set(world.result) == {(1, "x", None)}
    world.close()


def test_a_self_join_sees_both_sides_change_at_once(tmp_path: Path) -> None:
    """One source feeds both sides in one transaction."""
    join = ChangelogTables(
        Side("v_1_join_left", ("VARCHAR",), ("BIGINT", "BIGINT"), False, primary_types=("BIGINT",)),
        Side("v_1_join_right", ("VARCHAR",), ("BIGINT", "BIGINT"), False, primary_types=("BIGINT",)),
        Log("v_1_join_log", ("BIGINT", "BIGINT", "BIGINT", "BIGINT", "TIMESTAMPTZ"), "log", key_columns=2),
        (0, 2, 1, 3, 4),
    )
    print("seed", SEED)
    chance = random.Random(SEED)
    world = World(tmp_path, join)
    for _ in range(12):
        changes = some_changes(chance, 1, world.sides[1], ("a", "b", None))
        world.commit((0, changes), (1, changes))
        world.take()
        rows = world.sides[1].items()
        pairs = {(a[0], b[0]): (v, w) for a, (k, v, _) in rows for b, (m, w, _) in rows if k is not None and k == m}
        assert {key: row[:2] for key, row in world.result.items()} == pairs
    world.close()


@pytest.mark.night
def test_a_batch_costs_what_it_changes_and_not_what_there_is(tmp_path: Path) -> None:
    """1,000 changes of a side of a million rows: scans of key columns, and no more; the bound is far above what they
    take, and far below what the joined rows of all would."""
    world = World(tmp_path, tables("FULL"))
    with world.writer.transaction():
        for side, keys in (("left", "i, 'x'"), ("right", "i")):
            columns = f"i + 1, {keys}, 'k' || (i * 7919 % 1000000), {keys}, i, i, now()"
            world.writer.execute(f'INSERT INTO "_state".v_1_join_{side} SELECT {columns} FROM range(1000000) q(i)')
    chance = random.Random(SEED)
    for side in (0, 1, 0, 1):
        numbers = chance.sample(range(1_000_000), 1_000)
        changes = [
            Change((n,) if side else (n, "x"), None if n % 10 == 0 else (f"k{chance.randrange(1_000_000)}", n, n))
            for n in numbers
        ]
        began = time.process_time()
        world.commit((side, changes))
        spent = time.process_time() - began
        print(f"side {side}: {spent:.3f} s of processor time")
        assert spent < 1.0
    world.close()
