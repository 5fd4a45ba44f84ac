"""Groups that are forgotten: what is shown, sent and grouped again depends on the records alone, however they come."""

from __future__ import annotations

import dataclasses
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mvserver.compiler.shape import ViewDefinition
from mvserver.sql.dialect import parse_select
from mvserver.streaming.queries.outputs import with_outbox
from mvserver.views.feeds import nodes
from mvserver.views.finishing import layout_of
from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.group_logs import GroupTables
from tests.streaming.windows import (
    RELATION,
    Event,
    WindowedView,
    World,
    expected,
    living,
    random_batches,
    random_events,
    target,
)

S = 1000
SHORT = WindowedView("events", gap_ms=3 * S, delay_ms=2 * S, forgetting=True)
VIEWS = [
    SHORT,
    dataclasses.replace(SHORT, gap_ms=20 * S, delay_ms=0),
    dataclasses.replace(SHORT, gap_ms=1, least=0),
    dataclasses.replace(SHORT, gap_ms=7 * S, delay_ms=5 * S, least=2),
]


def shown(world: World, number: int = 0) -> list[tuple[Any, ...]]:
    with world.database.cursor() as cursor:
        view = world.targets[number].view_id
        return cursor.execute(f'SELECT * FROM "_views"."{view}" ORDER BY ALL NULLS FIRST').fetchall()


def kept(world: World, number: int = 0) -> int:
    return world.writer.count_rows(world.targets[number].state.tables)


def sent(world: World, number: int = 0) -> list[tuple[Any, ...]]:
    """(deleted, row) in the order in which they are sent."""
    outbox = world.targets[number].outbox
    assert outbox is not None
    with world.database.cursor() as cursor:
        rows = cursor.execute(
            f'SELECT _deleted, * EXCLUDE (_deleted, _seq) FROM "_state"."{outbox.table}" ORDER BY _seq'
        ).fetchall()
    return [(row[0], row[1:]) for row in rows]


def a(offset: int, v: int, time_s: float, k: str | None = "a", partition: int = 0) -> Event:
    return Event(partition, offset, k, v, round(time_s * S))


def test_a_group_is_forgotten_and_begins_anew(tmp_path: Path) -> None:
    view = dataclasses.replace(SHORT, gap_ms=10 * S, delay_ms=0)
    world = World(None, tmp_path, [target(view.sql)], 1)
    try:
        world.feed_evaluated([a(0, 1, 0), a(1, 2, 10), a(2, 5, 12, "b"), a(3, 7, 13, None)], [view])
        assert shown(world) == [(None, 1, 1, 7, 7, 7), ("a", 2, 2, 3, 1, 2), ("b", 1, 1, 5, 5, 5)]
        world.feed_evaluated([a(4, 6, 20, "b")], [view])
        assert shown(world) == [(None, 1, 1, 7, 7, 7), ("b", 2, 2, 11, 5, 6)], "nothing of a for 10 s"
        world.feed_evaluated([a(5, 4, 21), a(6, 8, 23, "b")], [view])
        assert shown(world) == [("a", 1, 1, 4, 4, 4), ("b", 3, 3, 19, 5, 8)], "one that comes later begins anew"
        world.feed_evaluated([a(7, 9, 15)], [view])
        assert shown(world) == [("a", 4, 4, 16, 1, 9), ("b", 3, 3, 19, 5, 8)], "one between them makes them one"
        world.feed_evaluated([a(8, 1, 13)], [view])
        assert world.late() == [("0:8", 23 * S)]
        world.feed_evaluated([a(9, 0, 100, "c")], [view])
        assert shown(world) == [("c", 1, 1, 0, 0, 0)]
        assert kept(world) == 1
    finally:
        world.close()


def test_views_show_what_the_records_say(tmp_path: Path) -> None:
    assert _run(None, tmp_path, 3) > 0, "no group was forgotten"


@pytest.mark.spark
def test_keys_that_are_computed_distinct_and_having(spark: Any, tmp_path: Path) -> None:
    ttl = "QUERY WITH ('state.ttl.millis' = 10000)"
    computed = "SELECT upper(k) AS k, v > 3 AS big, avg(v) AS mean, last_value(v) AS last FROM events GROUP BY 1, v > 3"
    queries = (
        f"{computed} {ttl}",
        f"SELECT DISTINCT upper(k) AS k FROM events {ttl}",
        f"SELECT k, count(*) AS n FROM events WHERE v <> 2 GROUP BY k HAVING count(*) > 1 {ttl}",
    )
    world = World(spark, tmp_path, [target(sql, number) for number, sql in enumerate(queries)], 1)
    try:
        world.feed([a(0, 1, 0), a(1, 2, 5, "A"), a(2, 4, 6), a(3, 2, 7, "b")])
        assert shown(world, 0) == [
            ("A", False, Decimal("1.500000"), 2), ("A", True, Decimal("4.000000"), 4),
            ("B", False, Decimal("2.000000"), 2),
        ]  # fmt: skip
        assert shown(world, 1) == [("A",), ("B",)]
        assert shown(world, 2) == [("a", 2)]
        world.feed([a(4, 5, 15.5), a(5, 3, 17)])
        assert shown(world, 0) == [("A", False, Decimal("3.000000"), 3), ("A", True, Decimal("4.500000"), 5)]
        assert shown(world, 1) == [("A",)], "nothing of b for 10 s"
        assert shown(world, 2) == [("a", 4)]
        world.feed([a(6, 2, 30, "b"), a(7, 9, 31)])
        assert shown(world, 1) == [("A",), ("B",)]
        assert shown(world, 2) == [], "what HAVING leaves out does not bring back the group before it"
    finally:
        world.close()


@pytest.mark.night
@pytest.mark.spark
def test_views_show_what_spark_reads(spark: Any, tmp_path: Path) -> None:
    _run(spark, tmp_path, random.SystemRandom().randrange(2**32))


@pytest.mark.night
@pytest.mark.parametrize("run", range(100))
def test_views_show_what_the_records_say_whatever_they_are(tmp_path: Path, run: int) -> None:
    _run(None, tmp_path, random.SystemRandom().randrange(2**32))


def _run(spark: Any, tmp_path: Path, seed: int) -> int:
    """How many rows were forgotten."""
    print("seed", seed)
    rng = random.Random(seed)
    partitions = rng.choice([1, 2, 3])
    events = random_events(rng, 150, partitions, step_ms=S, disorder_ms=6 * S)
    targets = [with_outbox(target(view.sql, number)) for number, view in enumerate(VIEWS)]
    world = World(spark, tmp_path, targets, partitions)
    read: list[Event] = []
    forgotten = 0
    try:
        for batch in random_batches(rng, events):
            if rng.random() < 0.3:
                world.restart()
            if spark is None:
                world.feed_evaluated(batch, VIEWS)
            else:
                world.feed(batch)
            read += batch
            for number, view in enumerate(VIEWS):
                rows = living(view, read, partitions)
                assert shown(world, number) == rows, view
                assert _topic(sent(world, number)) == [row for row in rows if row[0] is not None], view
        for number, view in enumerate(VIEWS):
            _, late = expected(view, events, partitions)
            assert len(world.late(number)) == len(late)
            forgotten += sum(deleted for deleted, _ in sent(world, number))
    finally:
        world.close()
    return forgotten


def _topic(changes: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What a reader of the topic has in the end."""
    rows: dict[Any, tuple[Any, ...]] = {}
    for deleted, row in changes:
        if deleted:
            del rows[row[0]]
        else:
            assert rows.get(row[0]) != row, "said twice"
            rows[row[0]] = row
    return sorted(rows.values())


def test_what_is_forgotten_is_taken_back_from_views_over_it(tmp_path: Path) -> None:
    _run_nested(tmp_path, 5)


@pytest.mark.night
@pytest.mark.parametrize("run", range(50))
def test_what_is_forgotten_is_taken_back_whatever_it_is(tmp_path: Path, run: int) -> None:
    _run_nested(tmp_path, random.SystemRandom().randrange(2**32))


def _run_nested(tmp_path: Path, seed: int) -> None:
    """Groups of the groups that are there, which go along in the same transaction."""
    print("seed", seed)
    rng = random.Random(seed)
    partitions = rng.choice([1, 2])
    events = random_events(rng, 150, partitions, step_ms=S, disorder_ms=6 * S)
    inner = dataclasses.replace(SHORT, gap_ms=5 * S)
    definition = ViewDefinition(parse_select(inner.sql), lambda parts, position: RELATION, inner.gap_ms or 0)
    view = dataclasses.replace(RELATION, kind="materialized view", name="db.public.v", view=definition)
    outer = target("SELECT n, count(*) AS ks, sum(s) AS s, max(hi) AS hi FROM v GROUP BY n", relation=view)
    (node,) = nodes(outer, outer.state.table, "reader")
    side = node.side_target(outer.query_id, outer.view_id, 0)
    assert isinstance(node.tables, GroupTables)
    assert node.tables.group_log.along is not None
    world = World(None, tmp_path, [side], partitions)
    try:
        with world.writer.transaction():
            for statement in logs.create_statements(node.tables.log):
                world.writer.execute(statement)
            world.writer.create_state(outer.state, layout_of(outer))
        read: list[Event] = []
        for batch in random_batches(rng, events):
            world.feed_evaluated(batch, [inner])
            read += batch
            groups: dict[int, list[tuple[Any, ...]]] = {}
            for row in living(inner, read, partitions):
                groups.setdefault(row[1], []).append(row)
            assert shown(world) == [
                (n, len(rows), _of(sum, rows, 3), _of(max, rows, 5)) for n, rows in sorted(groups.items())
            ]
    finally:
        world.close()


def _of(function: Any, rows: list[tuple[Any, ...]], column: int) -> Any:
    known = [row[column] for row in rows if row[column] is not None]
    return function(known) if known else None
