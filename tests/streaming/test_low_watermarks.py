"""What a window over joined or united rows goes by: each row's own mark, and the low watermark of their log.

Random rows in random batches of either side, with restarts: what comes, and how late, is the same however the sources
were cut and whichever was read first, and no row comes whose window the low watermark had closed before, unless the row
is late by its own mark.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from spark_sinks.duckdb.batch_plans import Advance, BatchCommit, Move, TableMerge, ViewMerge
from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.joins.interval_joins import IntervalTables
from spark_sinks.duckdb.joins.join_sides import Batch, FeedState, FeedTables, Side
from spark_sinks.duckdb.joins.temporal_joins import TemporalTables
from spark_sinks.duckdb.joins.unions import UnionTables
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.state.windows import Standing
from tests.streaming.joins import END, Row, World, cut, marks, partition_of, stream, table_of

WITHIN, DELAY, KEPT, PARTITIONS = 10, 3, 20, 2
Seen = tuple[Any, Any, int, int | None]  # left and right number, event time, mark


def tables(kind: str) -> FeedTables:
    types = ("VARCHAR" if kind == "UNION ALL" else "BIGINT", "BIGINT", "TIMESTAMPTZ", "BIGINT")
    log = Log("v_1_join_log", types, "log", marked=True)
    left = Side("v_1_join_left", ("VARCHAR",), ("BIGINT",), kind in ("LEFT", "FULL", "LEFT temporal"), DELAY)
    right = Side("v_1_join_right", ("VARCHAR",), ("BIGINT",), kind == "FULL", DELAY)
    if kind == "UNION ALL":
        sides = (replace(side, key_types=(), types=("VARCHAR", "BIGINT")) for side in (left, right))
        return UnionTables(tuple(replace(side, watched=f"q/{i}") for i, side in enumerate(sides)), log)
    if kind == "LEFT temporal":
        left, right = replace(left, watched="q/0"), replace(right, idle_us=1_000_000)
        return TemporalTables(left, right, "v_1_join_marks", log, KEPT)
    return IntervalTables(left, right, "v_1_join_marks", log, WITHIN)


@dataclass
class MarkedWorld(World):
    """One whose sides' watermarks are kept, and whose log has one."""

    found: list[Seen] = field(default_factory=list)
    low: int | None = None

    def commit(self, side: int, rows: Sequence[Row]) -> None:
        number, feed = self.batches[side], FeedState(self.join, side)
        batch = Batch("mv_batch", "f", "p", ("k", "n", "t", "r"), "q", event="t")
        merge = ViewMerge(f"q/{side}", feed, statements=tuple(self.join.feed_statements(side, batch)))
        advances = ()
        if feed.side.watched is not None:
            advances = (Advance(Standing(feed.side.watched, tuple(map(str, range(PARTITIONS)))), feed),)
        entry = LedgerEntry(f"p{side}", 1, number, {"n": number}, {"n": number + 1}, len(rows))
        moves = (Move((f"q/{side}",), {"n": number + 1}),)
        table = TableMerge(table_of(rows), (merge,))
        assert self.writer.commit(
            BatchCommit(entry, (table,), moves=moves, advances=advances, presences=self.presences(side, rows))
        )
        self.batches[side] += 1

    def take(self) -> None:
        """As a view reads: the rows are judged by the low watermark before them, which then goes on."""
        with self.database.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'")
            first, end = cursor.execute(logs.bounds_query(self.join.log)).fetchall()[0]
            assert first <= self.position
            rows = cursor.execute(logs.read_query(self.join.log, ("l", "r", "t", "m")), [self.position, end]).fetchall()
            found = [(row[2], row[3], round(row[4].timestamp() * 1e6), row[5]) for row in rows if row[4] is not None]
            for _, _, event, mark in found:
                ends_after = max(event, event if mark is None else mark)
                assert self.low is None or self.low <= ends_after, "a window that takes the row was closed"
            ((low,),) = cursor.execute(logs.low_query(self.join.log.low), [end]).fetchall()
            assert self.low is None or low >= self.low, "it does not go back"
            self.low = low
        self.found += found
        with self.writer.transaction() as ledger:
            ledger.move_subscribers(["q"], {"seq": end})


def run(folder: Path, kind: str, sides: tuple[list[Row], list[Row]], chance: random.Random) -> MarkedWorld:
    folder.mkdir()
    world = MarkedWorld(folder, tables(kind), partitions=tuple(map(str, range(PARTITIONS))))
    waiting = [(side, cut(chance, rows)) for side, rows in enumerate(sides)]
    while any(batches for _, batches in waiting):
        side, batches = chance.choice([each for each in waiting if each[1]])
        world.commit(side, batches.pop(0))
        if chance.random() < 0.5:
            world.take()
        if chance.random() < 0.05:
            world.restart()
    world.take()
    world.writer.close()
    world.database.close()
    return world


def own_marks(rows: Sequence[Row]) -> dict[int, int]:
    """The watermark of its partition at each row, itself included."""
    return {
        row.number: int(max(mark, float("-inf") if row.t is None else row.t - DELAY))
        for row, mark in zip(rows, marks(rows, DELAY), strict=True)
        if mark != float("-inf") or row.t is not None
    }


@pytest.mark.parametrize("kind", ["UNION ALL", "LEFT temporal", "INNER", "LEFT", "FULL"])
def test_rows_and_their_lateness_do_not_depend_on_batches(tmp_path: Path, kind: str) -> None:
    seed = int(os.environ.get("MV_JOIN_SEED", time.time_ns() % 1_000_000_000))
    print(f"seed {seed} (MV_JOIN_SEED)")
    chance = random.Random(seed)
    sides = stream(chance, 60, PARTITIONS, 0), stream(chance, 60, PARTITIONS, 1_000)
    if kind == "LEFT temporal":  # which of two versions of one time is the later one, the order in its partition says
        sides = (
            sides[0],
            [row if row.key is None else replace(row, partition=partition_of(row.key, PARTITIONS)) for row in sides[1]],
        )
    worlds = [run(tmp_path / str(turn), kind, sides, chance) for turn in range(2)]
    one, other = (Counter(row for row in world.found if row[2] < END) for world in worlds)
    assert one == other
    assert [world.low for world in worlds] == [END - DELAY - (WITHIN if kind in ("INNER", "LEFT", "FULL") else 0)] * 2
    left, right = (own_marks(rows) for rows in sides)
    if kind == "UNION ALL":  # the log's first columns are key and number there
        assert one == Counter(
            (row.key, row.number, row.t, marked[row.number])
            for rows, marked in zip(sides, (left, right), strict=True)
            for row in rows
            if row.t is not None and row.t < END
        )
    elif kind == "LEFT temporal":
        assert {(row[0], row[3]) for row in one} <= set(left.items())
        assert one.total() == sum(row.t is not None and row.t < END for row in sides[0])
    else:
        assert all(row[3] is None or row[3] <= row[2] for row in one if None not in row[:2]), "a pair is never late"
        assert any(row[3] is not None and row[3] > row[2] for row in one) or kind == "INNER"


def test_the_log_waits_for_a_row_of_the_stream_that_waits_for_its_changelog(tmp_path: Path) -> None:
    world = MarkedWorld(tmp_path, tables("LEFT temporal"))
    world.commit(1, [Row(100, "a", 5, "0"), Row(101, "b", 5, "1")])
    world.commit(0, [Row(1, "a", 10, "0"), Row(2, "a", 40, "1"), Row(3, "a", 50, "0")])
    world.take()
    assert (world.found, world.low) == ([], 10), "row 1 is still to come, at 10"
    world.commit(1, [Row(102, "b", 30, "0"), Row(103, "b", 45, "1")])
    world.take()
    assert world.found == [(1, 100, 10, 7)], "the changelog is at 27: 30 less its delay"
    assert world.low == 37, "the partition that is behind is at 40, less its delay"


def test_a_union_waits_for_the_partition_that_is_behind(tmp_path: Path) -> None:
    world = MarkedWorld(tmp_path, tables("UNION ALL"))
    world.commit(0, [Row(1, "a", 10, "0"), Row(2, "a", 40, "1")])
    world.take()
    assert world.low is None, "nothing is known of the other side"
    world.commit(1, [Row(11, "b", 100, "0")])
    world.take()
    assert world.low is None, "nor of its second partition"
    world.commit(1, [Row(12, "b", 20, "1")])
    world.commit(1, [Row(13, "b", 90, "0")])
    world.take()
    assert world.low == 7
    assert sorted(world.found) == [
        ("a", 1, 10, 7), ("a", 2, 40, 37), ("b", 11, 100, 97), ("b", 12, 20, 17), ("b", 13, 90, 97)
    ]  # fmt: skip


def test_a_join_closes_windows_when_no_pair_can_come_any_more(tmp_path: Path) -> None:
    world = MarkedWorld(tmp_path, tables("LEFT"))
    world.commit(0, [Row(1, "a", 10, "0"), Row(2, "b", 30, "0")])
    world.take()
    assert world.low is None
    world.commit(1, [Row(11, "a", 16, "0"), Row(12, "a", 45, "0")])
    world.take()
    assert world.found == [(1, 11, 16, None), (2, None, 30, -3)], "2 waited till 40; 1 had none before it"
    assert world.low == 30 - DELAY - WITHIN
