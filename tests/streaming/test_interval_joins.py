"""The interval join in DuckDB: random rows in random batches and restarts, against a rule that knows no batches."""

from __future__ import annotations

import datetime as dt
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mvserver.streaming.queries.derived import DerivedSource
from spark_sinks.duckdb.batch_plans import BatchCommit, Move, TableMerge, ViewMerge
from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.joins import join_sides
from spark_sinks.duckdb.joins.interval_joins import IntervalTables
from spark_sinks.duckdb.joins.join_sides import Batch, FeedState, Side
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from tests.streaming.joins import END, Row, World, in_turn, marks, stream, table_of

WITHIN = 10
EPOCH = dt.datetime(1970, 1, 1)


def tables(kind: str, *, delay: int = 0, residual: str | None = None, idle_us: int | None = None) -> IntervalTables:
    log = Log("v_1_join_log", ("BIGINT", "BIGINT", "TIMESTAMPTZ"), "log")
    left = Side("v_1_join_left", ("VARCHAR",), ("BIGINT",), kind != "INNER", delay, idle_us)
    right = Side("v_1_join_right", ("VARCHAR",), ("BIGINT",), kind == "FULL", delay, idle_us)
    return IntervalTables(left, right, "v_1_join_marks", log, WITHIN, residual)


def expected(left: Sequence[Row], right: Sequence[Row], kind: str, delay: int) -> Counter[tuple[Any, Any]]:
    """Two rows meet where neither came after the other one's time plus the interval was passed in its partition."""
    before = {id(row): mark for rows in (left, right) for row, mark in zip(rows, marks(rows, delay), strict=True)}
    found: Counter[tuple[Any, Any]] = Counter()
    met: set[int] = set()
    for one in left:
        for other in right:
            if one.key is None or one.key != other.key or one.t is None or other.t is None:
                continue
            if abs(one.t - other.t) > WITHIN:
                continue
            if before[id(one)] <= other.t + WITHIN and before[id(other)] <= one.t + WITHIN:
                found[(one.number, other.number)] += 1
                met |= {id(one), id(other)}
    if kind != "INNER":
        found.update((row.number, None) for row in left if id(row) not in met and row.t != END)
    if kind == "FULL":
        found.update((None, row.number) for row in right if id(row) not in met and row.t != END)
    return found


def too_late(rows: Sequence[Row], delay: int) -> list[Row]:
    """Those whose partition had passed all that they might have met, and by the time that these waited."""
    return [
        row
        for row, mark in zip(rows, marks(rows, delay), strict=True)
        if row.key is not None and row.t is not None and row.t + 2 * WITHIN < mark
    ]


def test_a_row_that_can_meet_nobody_any_more_is_late(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT", delay=5))
    world.commit(0, [Row(1, "a", 100, "0"), Row(2, "a", 75, "0"), Row(3, "a", 74, "0"), Row(4, None, 10, "0")])
    world.commit(0, [Row(5, "a", 0, "1"), Row(6, "a", 1, "0")])
    rows = sorted((row[0], *(each for each in row[1:6])) for row in world.writer.late_rows())
    bounds = [(row[1], row[2], row[5]) for row in rows]
    assert bounds == [("0:3", 74, 95), ("0:6", 1, 95)], "partition 1 was at its beginning, and a NULL meets nobody"
    assert [(row[3], row[4]) for row in rows] == [
        (EPOCH + dt.timedelta(microseconds=t - WITHIN), EPOCH + dt.timedelta(microseconds=t + WITHIN)) for t in (74, 1)
    ]
    assert world.writer.window_progress() == {"q": (None, 2)}
    with world.writer.transaction() as ledger:
        ledger.drop_subscriber("q")
    assert world.writer.late_rows() == []


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "FULL"])
def test_pairs_do_not_depend_on_batches(kind: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("JOIN_SEED", random.randrange(10**6)))
    print(f"JOIN_SEED={seed}")
    chance = random.Random(f"{seed} {kind}")
    for round_ in range(int(os.environ.get("JOIN_ROUNDS", "1"))):
        partitions, delay = chance.choice((1, 3)), chance.choice((0, 4))
        left = stream(chance, 45, partitions, 0)
        right = stream(chance, 45, partitions, 10_000)
        folder = tmp_path / str(round_)
        folder.mkdir()
        world = World(folder, tables(kind, delay=delay), partitions=tuple(map(str, range(partitions))))
        for side, batch in in_turn(chance, (left, right), ahead=0.3):
            world.commit(side, batch)
            if chance.random() < 0.3:
                world.take()
            if chance.random() < 0.05:
                world.restart()
        world.take()
        ends = {row.number for row in (*left, *right) if row.t == END}
        found = Counter(pair for pair in world.read if not ends & set(pair))
        wanted = expected(left, right, kind, delay)
        wanted = Counter({pair: n for pair, n in wanted.items() if not ends & set(pair)})
        assert found == wanted, (list((found - wanted).items())[:5], list((wanted - found).items())[:5])
        assert world.count("v_1_join_left") == world.count("v_1_join_right") == 0, "nobody waits any more"
        late = sorted(row[1] for row in world.writer.late_rows())
        assert late == sorted(
            f"{row.partition}:{row.number}" for row in (*too_late(left, delay), *too_late(right, delay))
        )
        assert world.writer.window_progress().get("q", (None, 0)) == (None, len(late))
        world.writer.close()
        world.database.close()


def test_buffers_and_log_are_trimmed(tmp_path: Path) -> None:
    world = World(tmp_path, tables("INNER"))
    for step in range(20):
        world.commit(0, [Row(step, "a", step * 5, "0")])
        world.commit(1, [Row(1000 + step, "a", step * 5, "0")])
        world.take()
    assert world.count("v_1_join_left") <= 4
    assert world.count("v_1_join_log") <= 5
    assert len(world.read) == 20 + 19 * 2 + 18 * 2  # at 0, 5 and 10 apart


def test_residual_of_an_outer_join_decides_what_matches(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT", residual="({l}.v0 + 1000 = {r}.v0)"))
    world.commit(0, [Row(1, "a", 0, "0"), Row(2, "a", 0, "0")])
    world.commit(1, [Row(1001, "a", 5, "0"), Row(1003, "a", 5, "0"), Row(2009, "z", 100, "0")])
    world.take()
    assert sorted(world.read, key=str) == [(1, 1001), (2, None)]


def test_an_idle_side_does_not_hold_rows_back(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT", idle_us=600_000_000))
    world.commit(0, [Row(1, "a", 0, "0"), Row(2, "b", 50, "0")])
    assert not world.look(1, time.time()), "not for long enough"
    assert world.look(1, time.time() + 700)
    world.look(1, time.time() + 700)
    world.take()
    assert world.read == [(1, None)], "as far as the other side is"
    world.commit(1, [Row(1001, "b", 45, "0")])
    world.take()
    assert world.read == [(1, None), (2, 1001)], "a record wakes it"


@pytest.mark.parametrize("shown", [[], [Row(1000, "z", 0, "0")]], ids=["nothing shown yet", "shown something"])
def test_an_idle_side_is_not_taken_for_idle_by_what_was_known_before(shown: list[Row], tmp_path: Path) -> None:
    """What lies unread of it now, since it is read late or does not answer, is met by all that it may meet."""
    world = World(tmp_path, tables("LEFT", idle_us=600_000_000))
    if shown:
        world.commit(1, shown)
    world.commit(0, [Row(1, "a", 0, "0")])
    later = time.time() + 700
    while world.look(1, later):
        pass
    before = time.time()
    world.commit(0, [Row(2, "b", 100, "0"), Row(3, "c", 200, "0")])
    world.commit(0, [Row(4, "d", 300, "0")])
    assert not world.look(1, before), "it was not asked since"
    world.take()
    assert world.read == []
    world.commit(1, [Row(1002, "b", 100, "0")])
    world.take()
    assert sorted(world.read, key=str) == [(1, None), (2, 1002)]
    while world.look(1, later):
        pass
    world.take()
    assert sorted(world.read, key=str) == [(1, None), (2, 1002), (3, None)]


@pytest.mark.parametrize("kind", ["LEFT", "FULL", "INNER"])
def test_a_partition_that_shows_its_first_record_late_finds_all_that_it_meets(kind: str, tmp_path: Path) -> None:
    """The other partition of its topic was read far ahead before: which of two is read first decides nothing."""
    world = World(tmp_path, tables(kind), partitions=("0", "1"))
    world.commit(0, [Row(1, "a", 100, "0"), Row(2, "b", 101, "1"), Row(3, "c", 102, "0")])
    world.commit(1, [Row(1001, "a", 100, "0"), Row(1002, "z", END, "0")])
    world.take()
    assert world.read == [(1, 1001)]
    world.commit(1, [Row(1003, "b", 103, "1"), Row(1004, "z", END, "1")])
    world.take()
    assert world.read == [(1, 1001), (2, 1003), *([] if kind == "INNER" else [(3, None)])]


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_begins_each_silence_anew(
    hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put back, it kept the joined rows waiting for as long; put forward, it took a partition for silent at once."""
    clock, source = time.time, DerivedSource()
    join = tables("LEFT")
    world = World(tmp_path, join, partitions=("0", "1"))
    world.commit(0, [Row(1, "a", 0, "0"), Row(2, "b", 50, "0")])
    world.commit(1, [Row(1001, None, 40, "0")])
    assert not source.clock_was_set("")
    with world.writer.transaction():  # as by a clock that went otherwise then
        seen = f"seen_at - to_hours({hours})"
        world.writer.execute(f"UPDATE {join_sides.qualified_marks(join)} SET seen_at = {seen}")
    monkeypatch.setattr(time, "time", lambda: clock() + hours * 3600)
    assert source.clock_was_set("")
    assert source.clock_was_set(""), "until it is noted"
    world.writer.execute_for("q", [join_sides.silence_begins_statement(join)])
    source.clock_is_known("")
    assert not source.clock_was_set("")
    assert not world.look(1, clock()), "it is silent since now"
    assert world.look(1, clock() + 60)
    world.take()
    assert world.read == [(1, None)]


def test_a_partition_that_stays_silent_does_not_hold_back_for_ever(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT"), partitions=("0", "1"))
    world.commit(0, [Row(1, "a", 0, "0"), Row(2, "b", 50, "0"), Row(3, "c", 90, "0")])
    world.commit(1, [Row(1001, None, 40, "0")])
    assert not world.look(1, time.time()), "not for long enough"
    first = time.time() + 60
    world.commit(1, [Row(1002, None, 95, "0")])
    world.take()
    assert world.read == []
    assert world.look(1, first), "it had nothing long after the others came to 40"
    world.take()
    assert world.read == [(1, None)], "it still may show what 50 meets"
    assert not world.look(1, time.time()), "but 95 was not that long ago"
    assert world.look(1, time.time() + 60)
    world.take()
    assert world.read == [(1, None), (2, None)]
    world.commit(1, [Row(1003, "c", 85, "1"), Row(1004, "c", 97, "1")])
    world.take()
    assert sorted(world.read, key=str) == [(1, None), (2, None), (3, 1003), (3, 1004)], "90 waited until 100"
    assert world.writer.late_rows() == []


def test_tables_that_are_older_than_silent_partitions_go_on(tmp_path: Path) -> None:
    join = tables("LEFT")
    world = World(tmp_path, join, partitions=("0", "1"))
    world.commit(0, [Row(1, "a", 0, "0"), Row(2, "b", 50, "0")])
    world.commit(1, [Row(1001, None, 20, "0")])
    with world.writer.transaction():
        world.writer.execute(f"DELETE FROM {join_sides.qualified_marks(join)} WHERE stands IS NOT NULL")
    for column in ("stands", "awaited"):
        with world.writer.transaction():
            world.writer.execute(f"ALTER TABLE {join_sides.qualified_marks(join)} DROP COLUMN {column}")
    world.restart()
    with world.writer.transaction():
        for statement in join_sides.wake_statements(join):
            world.writer.execute(statement)
    world.commit(1, [Row(1002, "b", 55, "1"), Row(1003, None, 60, "1")])
    world.commit(1, [Row(1004, None, 100, "0")])
    world.take()
    assert sorted(world.read, key=str) == [(1, None), (2, 1002)]


def test_a_new_partition_stands_where_its_side_does(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT"))
    world.commit(1, [Row(1001, None, 60, "0")])
    world.commit(0, [Row(1, "a", 40, "0"), Row(2, "b", 55, "0")])
    world.partitions = ("0", "1")  # a topic may be given more
    world.commit(1, [Row(1002, None, 100, "0")])
    world.take()
    assert world.read == [(1, None)], "it holds back what comes from then on"
    world.commit(1, [Row(1003, "b", 58, "1"), Row(1004, None, 100, "1")])
    world.take()
    assert world.read == [(1, None), (2, 1003)]


def test_a_partition_that_has_ended_holds_nothing_back(tmp_path: Path) -> None:
    """As a shard of Kinesis does that was split."""
    world = World(tmp_path, tables("LEFT"))
    world.commit(0, [Row(1, "a", 20, "0"), Row(2, "b", 60, "0")])
    world.commit(1, [Row(1001, None, 10, "0"), Row(1002, None, 11, "1")])
    world.shown[1].clear()
    world.commit(1, [Row(1003, None, 100, "1")])
    world.commit(0, [Row(3, "c", 90, "0")])
    world.take()
    assert world.read == [(1, None), (2, None)]


def test_self_join_in_one_transaction(tmp_path: Path) -> None:
    """Both sides take the same records in: every pair once, each row with itself too."""
    world = World(tmp_path, tables("INNER"))
    rows = [Row(1, "a", 0, "0"), Row(2, "a", 5, "0")]
    merges = []
    for side in (0, 1):
        feed = FeedState(world.join, side)
        statements = world.join.feed_statements(side, Batch("mv_batch", "f", "p", ("k", "n", "t", "r"), "q"))
        merges.append(ViewMerge(f"q/{side}", feed, statements=tuple(statements)))
    moves = (Move(("q/0", "q/1"), {"n": 1}),)
    entry = LedgerEntry("p0", 1, 0, {"n": 0}, {"n": 1}, 2)
    assert world.writer.commit(BatchCommit(entry, (TableMerge(table_of(rows), tuple(merges)),), moves=moves))
    world.take()
    assert sorted(world.read) == [(1, 1), (1, 2), (2, 1), (2, 2)]
