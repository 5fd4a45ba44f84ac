"""Windows that are aggregated again: what is closed is forgotten, and still counts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mvserver.views.feeds import nodes
from mvserver.views.finishing import layout_of
from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.changelog import RetractedState
from spark_sinks.duckdb.changes.group_logs import GroupTables
from tests.streaming.test_windows import hop, tumble
from tests.streaming.windows import Event, WindowedView, World, expected, random_batches, random_events, target

S = 1000
INNER = [
    WindowedView("TUMBLE(events, SIZE 10 SECONDS)", tumble(10 * S), delay_ms=2 * S),
    WindowedView("HOP(events, SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)", hop(10 * S, 5 * S)),
    WindowedView("SESSION(events PARTITION BY k, GAP 3 SECONDS)", gap_ms=3 * S, delay_ms=1 * S),
]
Row = tuple[Any, ...]  # window_start, window_end, k, n, c, s, lo, hi


def _known(rows: Sequence[Row], column: int) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def _sums(rows: Sequence[Row]) -> Row:
    n, s = _known(rows, 3), _known(rows, 5)
    return len(rows), sum(n) if n else None, sum(s) if s else None


def _extremes(rows: Sequence[Row]) -> Row:
    n, hi = _known(rows, 3), _known(rows, 7)
    return (
        min(n, default=None),
        max(hi, default=None),
        len(rows),
        any(each > 1 for each in n) if n else None,
        None if not n else pytest.approx(sum(n) / len(n)),
    )


SUMS = "count(*) AS a, sum(n) AS b, sum(s) AS c"
EXTREMES = "min(n) AS a, max(hi) AS b, count(*) AS c, bool_or(n > 1) AS d, avg(n::double precision) AS e"
OUTER: list[tuple[str, int | None, Callable[[Sequence[Row]], Row], bool]] = [
    (f"SELECT k, {SUMS} FROM w GROUP BY k", 2, _sums, True),
    (f"SELECT k, {EXTREMES} FROM w GROUP BY k", 2, _extremes, True),
    (f"SELECT {SUMS} FROM w WHERE n > 1", None, _sums, True),
    (f"SELECT {EXTREMES} FROM w WHERE n > 1", None, _extremes, True),
    (f"SELECT k, {EXTREMES}, count(DISTINCT n) AS f FROM w GROUP BY k", 2,
     lambda rows: (*_extremes(rows), len(set(_known(rows, 3)))), False),
]  # fmt: skip


def test_closed_windows_are_forgotten_and_count(tmp_path: Path) -> None:
    _run(tmp_path / "world", INNER[0], 7, 60)


@pytest.mark.night
@pytest.mark.parametrize("run", range(50))
def test_closed_windows_are_forgotten_and_count_whatever_they_are(tmp_path: Path, run: int) -> None:
    _run(tmp_path / "world", INNER[run % len(INNER)], random.SystemRandom().randrange(2**32), 200)


def _run(folder: Path, inner: WindowedView, seed: int, records: int) -> None:
    print("seed", seed, inner)
    folder.mkdir()
    rng = random.Random(seed)
    partitions = rng.choice([1, 2])
    events = random_events(rng, records, partitions, step_ms=S, disorder_ms=6 * S)
    outers = [target(f"WITH w AS ({inner.sql}) {sql}", number) for number, (sql, *_) in enumerate(OUTER)]
    below = [node for outer in outers for node in nodes(outer, outer.state.table, "reader")]
    sides = [node.side_target(outer.query_id, outer.view_id, 0) for outer, node in zip(outers, below, strict=True)]
    world = World(None, folder, sides, partitions)
    try:
        with world.writer.transaction():
            for outer, node in zip(outers, below, strict=True):
                assert isinstance(node.tables, GroupTables)
                for statement in logs.create_statements(node.tables.log):
                    world.writer.execute(statement)
                world.writer.create_state(outer.state, layout_of(outer))
        read: list[Event] = []
        for batch in random_batches(rng, events):
            world.feed_evaluated(batch, [inner] * len(OUTER))
            read += batch
            rows, late = expected(inner, read, partitions)
            for number, (sql, by, aggregated, _) in enumerate(OUTER):
                assert _shown(world, number) == _grouped(rows, by, aggregated), sql
                assert len(world.late(number)) == len(late)
        windows = len(expected(inner, events, partitions)[0])
        for outer, side, (_, by, _, settles) in zip(outers, sides, OUTER, strict=True):
            assert isinstance(outer.state, RetractedState)
            assert outer.state.settles == settles
            assert world.writer.count_rows(side.state.tables) < windows / 2
            contributions = world.writer.count_rows(outer.state.rows.tables)
            assert contributions < windows / 2 if settles or by is None else contributions == windows
    finally:
        world.close()


def _grouped(rows: Sequence[Row], by: int | None, aggregated: Callable[[Sequence[Row]], Row]) -> list[Row]:
    """By k, or of the windows with several records."""
    if by is None:
        return [aggregated([row for row in rows if row[3] > 1])]
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[by], []).append(row)
    found = [(key, *aggregated(of)) for key, of in groups.items()]
    return sorted(found, key=lambda row: (row[0] is not None, row[0]))


def _shown(world: World, number: int) -> list[Row]:
    with world.database.cursor() as cursor:
        view = world.targets[number].view_id
        return cursor.execute(f'SELECT * FROM "_views"."{view}" ORDER BY ALL NULLS FIRST').fetchall()
