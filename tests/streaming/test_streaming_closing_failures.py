"""An expression over closed windows that fails when the watermark shows them: the query that wants it fails, alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streaming_windows import Event, WindowedView, World, target
from test_streaming_windows import tumble

from mvserver.streaming.idleness import Idleness
from mvserver.streaming.push_states import pushed

S = 1000
GOOD = WindowedView("TUMBLE(events, SIZE 10 SECONDS)", tumble(10 * S), final=True)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A push query whose division fails where a window's values come to 0, and a view beside it."""
    idle = GOOD.sql.replace("'watermark", "'source.idle.timeout.millis' = 5000, 'watermark")
    failing = idle.replace("sum(v) AS s", "10 / sum(v) AS s")
    assert failing != idle != GOOD.sql
    world = World(None, tmp_path, [pushed(target(failing, 0)), target(idle, 1)], 2)
    yield world
    world.close()


def feed(world: World, *events: Event) -> None:
    world.feed_evaluated(events, [GOOD, GOOD])


def outbox(world: World) -> list[int]:
    with world.database.cursor() as cursor:
        return [
            row[0]
            for row in cursor.execute(f'SELECT c5 FROM "_state"."{world.targets[0].state.table}_outbox"').fetchall()
        ]


def test_when_a_batch_closes_the_window(world: World) -> None:
    feed(world, Event(0, 0, "a", 5, 1 * S), Event(1, 0, "a", 5, 2 * S), Event(0, 1, "b", 0, 12 * S))
    feed(world, Event(0, 2, "b", 0, 30 * S), Event(1, 1, "b", 0, 11 * S))
    assert outbox(world) == [1]
    world.failing = frozenset({"q0"})
    feed(world, Event(1, 2, "a", 1, 21 * S))  # shows the window of b
    assert world.roster.subscribers["q0"].failure == "22012: division by zero"
    assert world.roster.error is None
    feed(world, Event(1, 3, "a", 1, 40 * S))
    assert [row[:4] for row in world.rows(1)] == [
        (0, 10 * S, "a", 2),
        (10 * S, 20 * S, "b", 2),
        (20 * S, 30 * S, "a", 1),
    ]
    assert outbox(world) == [1]


def test_when_a_partition_becomes_idle(world: World) -> None:
    now = [0.0]
    for subscriber in world.roster.all():
        subscriber.idleness = Idleness(5.0, lambda: now[0])
    feed(world, Event(0, 0, "a", 0, 1 * S), Event(0, 1, "a", 0, 30 * S))
    world.roster.latest, now[0] = {"0": 2, "1": 0}, 6.0
    assert world.idle() == ["q1"]
    assert world.roster.subscribers["q0"].failure == "22012: division by zero"
    assert [row[:4] for row in world.rows(1)] == [(0, 10 * S, "a", 1)]
    assert (world.idle(), outbox(world)) == ([], [])
