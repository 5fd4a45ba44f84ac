"""GROUPING SETS over windows: a set with a column shows what a view of it alone shows, one without it totals."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from tests.streaming.test_windows import hop, tumble
from tests.streaming.windows import Event, WindowedView, World, expected, random_batches, random_events, target

S = 1000
VIEWS = [
    WindowedView("TUMBLE(events, SIZE 10 SECONDS)", tumble(10 * S), delay_ms=2 * S),
    WindowedView("HOP(events, SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)", hop(10 * S, 5 * S), grace_ms=2 * S, final=True),
    WindowedView("TUMBLE(events, SIZE 7 SECONDS)", tumble(7 * S), least=1, retention_ms=0),
]
_AGGREGATES = "count(*) AS n, count(v) AS c, sum(v) AS s, min(v) AS lo, max(v) AS hi, count(DISTINCT v) AS u"


def _sql(view: WindowedView) -> str:
    _, rest = view.sql.split(" FROM ", 1)
    rest = rest.replace("GROUP BY k, window_start, window_end", "GROUP BY window_start, ROLLUP (k), window_end")
    return f"SELECT window_start, window_end, grouping(k) AS g, k, {_AGGREGATES} FROM {rest}"


@pytest.mark.parametrize("seed", range(2))
def test_sets_over_windows(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    rng = random.Random(seed)
    partitions = rng.choice([1, 2, 3])
    events = random_events(rng, 120, partitions, step_ms=S, disorder_ms=6 * S)
    targets = [
        target(_sql(view), number, grace_ms=view.grace_ms, retention_ms=view.retention_ms)
        for number, view in enumerate(VIEWS)
    ]
    world = World(None, tmp_path, targets, partitions)
    try:
        for batch in random_batches(rng, events):
            if rng.random() < 0.3:
                world.restart()
            world.feed_evaluated(batch, VIEWS)
        for number, view in enumerate(VIEWS):
            rows, late = expected(view, events, partitions)
            totals, _ = expected(view, [dataclasses.replace(event, k=None) for event in events], partitions)
            wanted = [(*row[:2], 0, *row[2:]) for row in rows] + [(*row[:2], 1, *row[2:]) for row in totals]
            found = [row[:-1] for row in world.rows(number)]
            if view.retention_ms is None:
                assert sorted(found, key=repr) == sorted(wanted, key=repr), view
            else:
                assert set(found) < set(wanted)
                assert len(found) > 0
            assert len(world.late(number)) == len(late), "a record is late once for all sets"
            for row in world.rows(number):
                values = {e.v for e in events if e.v is not None and row[0] <= (e.ts or 0) < row[1]}
                assert row[-1] <= len(values)
    finally:
        world.close()


def test_distinct_values_are_those_of_the_set(tmp_path: Path) -> None:
    view = VIEWS[0]
    world = World(None, tmp_path, [target(_sql(view))], 1)
    try:
        for offset, (k, v) in enumerate([("a", 1), ("b", 1), ("a", 2), (None, 1), ("a", 1)]):
            world.feed_evaluated([Event(0, offset, k, v, 1 * S)], [view])
        assert [(row[2], row[3], row[-1]) for row in world.rows()] == [
            (0, None, 1),
            (0, "a", 2),
            (0, "b", 1),
            (1, None, 2),
        ]
    finally:
        world.close()
