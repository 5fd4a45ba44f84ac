"""A stream joined with groups in DuckDB: random records in random batches, against a rule that knows no batches."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.joins.group_versions import GroupsMade, GroupVersionTables
from spark_sinks.duckdb.joins.join_sides import Side
from spark_sinks.duckdb.state.state import Measure, StateMeasure
from tests.streaming.joins import END, Row, World, in_turn, marks
from tests.streaming.test_temporal_joins import KEPT, stream

MEASURES: dict[str, tuple[StateMeasure, Callable[[list[int]], int]]] = {
    "sum": (StateMeasure(Measure.SUM, "BIGINT"), sum),
    "count": (StateMeasure(Measure.COUNT, "BIGINT"), len),
    "min": (StateMeasure(Measure.MIN, "BIGINT"), min),
    "max": (StateMeasure(Measure.MAX, "BIGINT"), max),
}


def tables(
    kind: str, measure: str = "sum", *, delay: int = 0, replaced: bool = False, having: str | None = None
) -> GroupVersionTables:
    log = Log("v_1_join_log", ("BIGINT", "BIGINT", "TIMESTAMPTZ"), "log")
    left = Side("v_1_join_left", ("VARCHAR",), ("BIGINT",), kind == "LEFT")
    primary = ("VARCHAR",) if replaced else ()
    right = Side("v_1_join_right", ("VARCHAR",), ("BIGINT",), False, delay, 1_000_000, primary)
    made = GroupsMade(("BIGINT",), (MEASURES[measure][0],), ("v0",), (), (("k0", "k0"), ("a0", "sm0")), ("a0",), having)
    return GroupVersionTables(left, right, "v_1_join_marks", log, KEPT, made=made)


def expected(
    left: Sequence[Row], right: Sequence[Row], kind: str, delay: int, of: Callable[[list[int]], int]
) -> Counter[tuple[Any, Any]]:
    """Each row of the left side, and what the right one comes to that was read up to its time."""
    read = []
    for row, mark in zip(right, marks(right, delay), strict=True):
        read.append((max(row.t if row.t is not None else mark + delay, mark), row.number, row))
    read.sort(key=lambda each: each[:2])
    found: Counter[tuple[Any, Any]] = Counter()
    for row, mark in zip(left, marks(left, 0), strict=True):
        values: list[int] = []
        if row.key is not None and row.t is not None:
            seen = max(row.t, mark - KEPT)
            rows: dict[Any, Row] = {}
            for moment, number, each in read:
                if moment <= seen:
                    rows[number if each.primary is None else each.primary] = each
            values = [each.number for each in rows.values() if each.key == row.key and not each.deleted]
        if values or kind == "LEFT":
            found[(row.number, of(values) if values else None)] += 1
    return found


CASES = [("sum", False), ("min", False), ("max", False), ("sum", True), ("count", True)]


@pytest.mark.parametrize(("measure", "replaced"), CASES, ids=[f"{m} {'table' if r else 'stream'}" for m, r in CASES])
@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
def test_groups_do_not_depend_on_batches(kind: str, measure: str, replaced: bool, tmp_path: Path) -> None:
    seed = int(os.environ.get("JOIN_SEED", random.randrange(10**6)))
    print(f"JOIN_SEED={seed}")
    chance = random.Random(f"{seed} {kind} {measure} {replaced}")
    for round_ in range(int(os.environ.get("JOIN_ROUNDS", "1"))):
        partitions, delay = chance.choice((1, 2)), chance.choice((0, 4))
        left = stream(chance, 45, partitions, 0, versions=False)
        right = stream(chance, 45, partitions, 10_000, versions=replaced, by_key=not replaced)
        folder = tmp_path / str(round_)
        folder.mkdir()
        made = tables(kind, measure, delay=delay, replaced=replaced)
        world = World(folder, made, partitions=tuple(map(str, range(partitions))))
        for side, batch in in_turn(chance, (left, right), ahead=0.3):
            world.commit(side, batch)
            if chance.random() < 0.3:
                world.take()
            if chance.random() < 0.05:
                world.restart()
        world.take()
        ends = {row.number for row in left if row.t == END}
        found = Counter(pair for pair in world.read if pair[0] not in ends)
        rule = expected(left, right, kind, delay, MEASURES[measure][1])
        wanted = Counter({pair: n for pair, n in rule.items() if pair[0] not in ends})
        assert found == wanted, (list((found - wanted).items())[:5], list((wanted - found).items())[:5])
        world.writer.close()
        world.database.close()


def test_versions_that_nobody_can_see_go(tmp_path: Path) -> None:
    world = World(tmp_path, tables("INNER"))
    for step in range(20):
        world.commit(1, [Row(1, "a", step * 10, "0")])
        world.commit(0, [Row(step, "a", step * 10, "0")])
    assert world.count("v_1_join_right") <= 6
    assert world.count("v_1_join_right_new") == 1, "what the mark has not passed waits"
    world.take()
    assert world.read == [(step, step + 1) for step in range(19)]


def test_an_idle_source_lets_all_go_and_goes_on_behind_it(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT"))
    world.commit(0, [Row(1, "a", 100, "0"), Row(2, "b", 200, "0")])
    world.commit(1, [Row(5, "a", 50, "0"), Row(7, "a", 300, "0")])
    world.take()
    assert world.read == [(1, 5), (2, None)], "the mark is at 300"
    assert world.look(1, time.time() + 2)
    world.commit(0, [Row(3, "a", 290, "0"), Row(4, "a", 310, "0")])
    world.take()
    assert world.read[2:] == [(3, 5), (4, 12)]
    world.commit(1, [Row(11, "a", 305, "0"), Row(13, "a", 400, "0")])
    world.commit(0, [Row(6, "a", 350, "0")])
    world.take()
    assert world.read[4:] == [(6, 23)]


def test_what_having_leaves_out_is_no_row(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT", having="a0 > 10"))
    world.commit(1, [Row(7, "a", 0, "0"), Row(8, "a", 10, "0"), Row(9, None, END, "0")])
    world.commit(0, [Row(1, "a", 5, "0"), Row(2, "a", 15, "0")])
    world.take()
    assert sorted(world.read) == [(1, None), (2, 15)]


def test_a_group_without_rows_is_gone(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT", replaced=True))
    world.commit(1, [
        Row(7, "a", 0, "0", primary="u"), Row(8, "a", 10, "0", primary="v"), Row(9, "b", 20, "0", primary="u"),
        Row(10, None, 30, "0", deleted=True, primary="v"), Row(11, "a", END, "0", primary="w"),
    ])  # fmt: skip
    world.commit(0, [Row(number, "a", t, "0") for number, t in enumerate((0, 10, 20, 30, 40))])
    world.commit(0, [Row(5, "b", 40, "0")])
    world.take()
    assert sorted(world.read, key=str) == [(0, 7), (1, 15), (2, 8), (3, None), (4, None), (5, 9)]


def test_groups_of_which_nothing_is_read(tmp_path: Path) -> None:
    """They decide which rows of the stream are there."""
    log = Log("v_1_join_log", ("BIGINT", "TIMESTAMPTZ"), "log")
    left = Side("v_1_join_left", ("VARCHAR",), ("BIGINT",), False)
    right = Side("v_1_join_right", ("VARCHAR",), (), False, 0, 1_000_000)
    made = GroupsMade((), (), (), (), (("k0", "k0"), ("a0", "sn")), (), "a0 > 1")
    world = World(tmp_path, GroupVersionTables(left, right, "v_1_join_marks", log, KEPT, made=made), bare=(1,))
    world.commit(1, [Row(7, "a", 0, "0"), Row(8, "a", 10, "0"), Row(9, None, END, "0")])
    world.commit(0, [Row(1, "a", 5, "0"), Row(2, "a", 15, "0")])
    assert world.count("v_1_join_log") == 1
