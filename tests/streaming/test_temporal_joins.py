"""The temporal join in DuckDB: random rows and versions in random batches, against a rule that knows no batches."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.joins.join_sides import Side
from spark_sinks.duckdb.joins.temporal_joins import TemporalTables
from tests.streaming.joins import BEGIN, END, KEYS, Row, World, in_turn, marks, partition_of

KEPT = 20
NEVER = float("-inf")


def tables(kind: str, *, delay: int = 0, residual: str | None = None, by_key: bool = True) -> TemporalTables:
    log = Log("v_1_join_log", ("BIGINT", "BIGINT", "TIMESTAMPTZ"), "log")
    left = Side("v_1_join_left", ("VARCHAR",), ("BIGINT",), kind == "LEFT")
    primary = () if by_key else ("VARCHAR",)
    right = Side("v_1_join_right", ("VARCHAR",), ("BIGINT",), False, delay, 1_000_000, primary)
    return TemporalTables(left, right, "v_1_join_marks", log, KEPT, residual)


def stream(
    chance: random.Random, count: int, partitions: int, start: int, *, versions: bool, by_key: bool = True
) -> list[Row]:
    """Records that are up to some times late; those of a changelog have the partition of their primary key."""
    rows, now = [], BEGIN
    for number in range(start, start + count):
        now += chance.choice((0, 1, 2, 5))
        t = None if chance.random() < 0.03 else max(BEGIN, now - chance.choice((0, 0, 0, 1, 3, 9, 45)))
        key = None if chance.random() < 0.05 else chance.choice(KEYS)
        primary = None if by_key else chance.choice("uvwxyz")
        partition = str(chance.randrange(partitions))
        if versions and primary is not None:
            partition = str(ord(primary) % partitions)
        elif versions and key is not None:
            partition = partition_of(key, partitions)
        deleted = versions and chance.random() < 0.15
        if deleted and not by_key:
            key = None  # a deletion has nothing but its primary key
        rows.append(Row(number, key, t, partition, deleted, primary))
    return rows + [Row(start + count + p, None, END, str(p)) for p in range(partitions)]


def expected(left: Sequence[Row], right: Sequence[Row], kind: str, delay: int) -> Counter[tuple[Any, Any]]:
    versions = []
    for number, (row, mark) in enumerate(zip(right, marks(right, delay), strict=True)):
        time_ = row.t if row.t is not None else mark + delay
        versions.append((time_, number, max(time_, mark), row))
    found: Counter[tuple[Any, Any]] = Counter()
    for row, mark in zip(left, marks(left, 0), strict=True):
        met: list[int | None] = []
        if row.key is not None and row.t is not None:
            seen = max(row.t, mark - KEPT)
            latest: dict[str | None, tuple[Any, ...]] = {}
            for version in sorted((v for v in versions if v[2] <= seen), key=lambda v: v[:2]):
                latest[version[3].primary or version[3].key] = version
            met = [v[3].number for v in latest.values() if v[3].key == row.key and not v[3].deleted]
        if not met and kind == "LEFT":
            met = [None]
        for number in met:
            found[(row.number, number)] += 1
    return found


@pytest.mark.parametrize("by_key", [True, False], ids=["by its primary key", "by something else"])
@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
def test_versions_do_not_depend_on_batches(kind: str, by_key: bool, tmp_path: Path) -> None:
    seed = int(os.environ.get("JOIN_SEED", random.randrange(10**6)))
    print(f"JOIN_SEED={seed}")
    chance = random.Random(f"{seed} {kind}")
    for round_ in range(int(os.environ.get("JOIN_ROUNDS", "1"))):
        partitions, delay = chance.choice((1, 2)), chance.choice((0, 4))
        left = stream(chance, 45, partitions, 0, versions=False)
        right = stream(chance, 45, partitions, 10_000, versions=True, by_key=by_key)
        folder = tmp_path / str(round_)
        folder.mkdir()
        world = World(folder, tables(kind, delay=delay, by_key=by_key), partitions=tuple(map(str, range(partitions))))
        for side, batch in in_turn(chance, (left, right), ahead=0.3):
            world.commit(side, batch)
            if chance.random() < 0.3:
                world.take()
            if chance.random() < 0.05:
                world.restart()
            if chance.random() < 0.05:
                as_before(world)
        world.take()
        ends = {row.number for row in left if row.t == END}
        found = Counter(pair for pair in world.read if pair[0] not in ends)
        wanted = Counter({p: n for p, n in expected(left, right, kind, delay).items() if p[0] not in ends})
        assert found == wanted, (list((found - wanted).items())[:5], list((wanted - found).items())[:5])
        world.writer.close()
        world.database.close()


def as_before(world: World) -> None:
    """All versions in one table, as they were in files of before; then they are divided again."""
    last, past = "v_1_join_right", "v_1_join_right_past"
    with world.writer.transaction():
        world.writer.execute(f'INSERT INTO "_state"."{last}" SELECT * EXCLUDE h FROM "_state"."{past}"')
        world.writer.execute(f'DROP TABLE "_state"."{past}"')
    assert isinstance(world.join, TemporalTables)
    statements = world.join.upgrade_statements(world.writer.state_tables())
    assert statements
    with world.writer.transaction():
        for statement in statements:
            world.writer.execute(statement)
    assert not world.join.upgrade_statements(world.writer.state_tables())


def test_versions_that_nobody_can_see_go(tmp_path: Path) -> None:
    world = World(tmp_path, tables("INNER"))
    for step in range(20):
        world.commit(1, [Row(1000 + step, "a", step * 10, "0")])
        world.commit(0, [Row(step, "a", step * 10, "0")])
    assert world.count("v_1_join_right") == 1, "the last version"
    assert world.count("v_1_join_right_past") <= 5
    assert world.count("v_1_join_left") == 1, "the last row waits for the changelog to pass its time"


def test_versions_of_other_keys_go_too(tmp_path: Path) -> None:
    """A row that has had many keys has the versions alone that somebody may still see."""
    world = World(tmp_path, tables("INNER", by_key=False))
    for step in range(20):
        world.commit(1, [Row(1000 + step, f"k{step}", step * 10, "0", primary="u")])
        world.commit(0, [Row(step, f"k{step}", step * 10, "0")])
    assert world.count("v_1_join_right") == 1
    assert world.count("v_1_join_right_past") <= 5
    world.take()
    assert world.read == [(step, 1000 + step) for step in range(19)]


def test_an_idle_changelog_lets_all_rows_go(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT"))
    world.commit(0, [Row(1, "a", 100, "0"), Row(2, "b", 200, "0")])
    world.commit(1, [Row(1001, "a", 50, "0")])
    world.take()
    assert world.read == []
    assert world.look(1, time.time() + 2)
    world.take()
    assert sorted(world.read) == [(1, 1001), (2, None)]


def test_versions_of_a_partition_that_shows_its_first_one_late_are_seen(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT"), partitions=("0", "1"))
    world.commit(0, [Row(1, "a", 100, "0"), Row(2, "b", 101, "1"), Row(3, "c", 102, "0")])
    world.commit(1, [Row(1001, "a", 90, "0"), Row(1002, None, END, "0")])
    world.take()
    assert world.read == []
    world.commit(1, [Row(1003, "b", 95, "1"), Row(1004, None, END, "1")])
    world.take()
    assert sorted(world.read) == [(1, 1001), (2, 1003), (3, None)]


def test_partitions_that_have_all_ended_stand_until_others_go_on_for_them(tmp_path: Path) -> None:
    """As the only shard of a stream that was split, whose children are not told yet."""
    world = World(tmp_path, tables("LEFT"), partitions=("0",))
    world.commit(1, [Row(1001, "a", 50, "0")])
    world.partitions = ()
    world.shown[1].clear()
    world.commit(1, [])
    world.commit(0, [Row(1, "a", 100, "0")])
    world.take()
    assert world.read == []
    world.partitions = ("1", "2")
    world.commit(1, [Row(1002, "a", 80, "1"), Row(1003, None, END, "1")])
    world.take()
    assert world.read == [], "the other child has shown nothing"
    world.commit(1, [Row(1004, None, END, "2")])
    world.take()
    assert world.read == [(1, 1002)]


def test_an_idle_partition_does_not_let_those_beside_it_pass_what_it_is_about_to_show(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT"), partitions=("0", "1"))
    world.commit(1, [Row(1001, "a", 50, "0"), Row(1002, "b", 60, "1")])
    assert world.look(1, time.time() + 2)
    world.commit(1, [Row(1003, "a", 300, "0")])
    world.commit(0, [Row(1, "a", 100, "0"), Row(2, "b", 200, "0")])
    world.take()
    assert world.read == [], "a version of b may lie unread"
    world.commit(1, [Row(1004, "b", 150, "1")])
    world.take()
    assert world.read == [(1, 1001)]
    world.commit(1, [Row(1005, None, 300, "1")])
    world.take()
    assert world.read == [(1, 1001), (2, 1004)]


def test_a_condition_of_a_left_join_decides_what_matches(tmp_path: Path) -> None:
    world = World(tmp_path, tables("LEFT", residual="({l}.v0 + 1000 = {r}.v0)"))
    world.commit(1, [Row(1001, "a", 0, "0"), Row(1002, "b", 0, "0"), Row(1003, None, END, "0")])
    world.commit(0, [Row(1, "a", 10, "0"), Row(7, "b", 10, "0")])
    world.take()
    assert sorted(world.read, key=str) == [(1, 1001), (7, None)]
