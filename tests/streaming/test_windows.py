"""Views over windows: what they show depends on the records alone, however these come in batches."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.streaming.windows import Event, WindowedView, World, expected, random_batches, random_events, target

S = 1000


def tumble(size: int) -> Any:
    return lambda ts: [(ts // size * size, ts // size * size + size)]


def hop(size: int, advance: int) -> Any:
    def windows(ts: int) -> list[tuple[int, int]]:
        first = math.floor((ts - size) / advance) * advance
        return [(s, s + size) for s in range(first, ts + 1, advance) if s <= ts < s + size]

    return windows


def cumulate(size: int, step: int) -> Any:
    def windows(ts: int) -> list[tuple[int, int]]:
        start = ts // size * size
        return [(start, end) for end in range(start + step, start + size + 1, step) if ts < end]

    return windows


VIEWS = [
    WindowedView("TUMBLE(events, SIZE 10 SECONDS)", tumble(10 * S)),
    WindowedView("TUMBLE(events, SIZE 10 SECONDS)", tumble(10 * S), delay_ms=4 * S, final=True),
    WindowedView("TUMBLE(events, SIZE 7 SECONDS)", tumble(7 * S), grace_ms=6 * S, least=2),
    WindowedView("HOP(events, SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)", hop(10 * S, 5 * S), delay_ms=2 * S),
    WindowedView("HOP(events, SIZE 10 SECONDS, ADVANCE BY 4 SECONDS)", hop(10 * S, 4 * S), final=True, grace_ms=3 * S),
    WindowedView("CUMULATE(events, SIZE 12 SECONDS, STEP 4 SECONDS)", cumulate(12 * S, 4 * S)),
    WindowedView("SESSION(events PARTITION BY k, GAP 3 SECONDS)", gap_ms=3 * S, delay_ms=2 * S),
    WindowedView("SESSION(events PARTITION BY k, GAP 2 SECONDS)", gap_ms=2 * S, grace_ms=4 * S, final=True, least=0),
]


@pytest.mark.parametrize("seed", range(2))
def test_views_show_what_the_records_say(tmp_path: Path, seed: int) -> None:
    _run(None, tmp_path, seed)


@pytest.mark.spark
def test_views_show_what_spark_reads(spark: Any, tmp_path: Path) -> None:
    _run(spark, tmp_path, 1)


@pytest.mark.night
@pytest.mark.parametrize("run", range(200))
def test_views_show_what_the_records_say_whatever_they_are(tmp_path: Path, run: int) -> None:
    _run(None, tmp_path, random.SystemRandom().randrange(2**32))


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.parametrize("run", range(10))
def test_views_show_what_spark_reads_whatever_it_is(spark: Any, tmp_path: Path, run: int) -> None:
    _run(spark, tmp_path, random.SystemRandom().randrange(2**32))


def _feed(world: World, batch: list[Event]) -> None:
    if world.spark is None:
        world.feed_evaluated(batch, VIEWS)
    else:
        world.feed(batch)


def _run(spark: Any, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    print("seed", seed)
    partitions = rng.choice([1, 2, 3])
    events = random_events(rng, 150, partitions, step_ms=S, disorder_ms=6 * S)
    targets = [target(view.sql, number, grace_ms=view.grace_ms) for number, view in enumerate(VIEWS)]
    world = World(spark, tmp_path, targets, partitions)
    shown: dict[int, set[Any]] = {}
    try:
        for batch in random_batches(rng, events):
            if rng.random() < 0.2:
                world.restart()
            if rng.random() < 0.15:
                _die_in_commit(world, batch, rng)
            _feed(world, batch)
            for number, view in enumerate(VIEWS):
                if view.final:
                    now = set(world.rows(number))
                    assert shown.get(number, set()) <= now, "what was shown has changed"
                    shown[number] = now
        for number, view in enumerate(VIEWS):
            rows, late = expected(view, events, partitions)
            assert world.rows(number) == rows, view
            assert sorted(world.late(number), key=lambda row: (row[0], row[1] is not None, row[1])) == late, view
    finally:
        world.close()
    assert any(late for _, late in (expected(view, events, partitions) for view in VIEWS))


def _die_in_commit(world: World, batch: list[Event], rng: random.Random) -> None:
    """Everything is undone, and part of the batch comes again as another one."""

    def die(step: str) -> None:
        if step == died_at:
            raise RuntimeError("killed")

    died_at = rng.choice(["after rows", "after ledger"])
    world.reached = die
    with pytest.raises(RuntimeError):
        _feed(world, batch)
    world.restart()
