"""What queries over windows write to a changelog: the topic is what the records say, however they came in batches, and
rows that age out of the query's state stay in it."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest

from mvserver.streaming.pipeline.idleness import Idleness
from mvserver.streaming.queries.outputs import with_outbox
from spark_sinks.duckdb.changes.outbox import Outbox
from tests.streaming.test_windows import cumulate, hop, tumble
from tests.streaming.windows import Event, WindowedView, World, expected, random_batches, random_events, target

S = 1000
TUMBLED = WindowedView("TUMBLE(events, SIZE 10 SECONDS)", tumble(10 * S), delay_ms=2 * S)
GROWN = WindowedView("SESSION(events PARTITION BY k, GAP 3 SECONDS)", gap_ms=3 * S, delay_ms=2 * S)
QUERIES = [
    TUMBLED,
    dataclasses.replace(TUMBLED, final=True, least=2),
    dataclasses.replace(TUMBLED, retention_ms=0),
    dataclasses.replace(TUMBLED, final=True, grace_ms=3 * S, retention_ms=3 * S),
    WindowedView("HOP(events, SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)", hop(10 * S, 5 * S), final=True),
    WindowedView("CUMULATE(events, SIZE 12 SECONDS, STEP 4 SECONDS)", cumulate(12 * S, 4 * S), retention_ms=30 * S),
    GROWN,
    dataclasses.replace(GROWN, retention_ms=3 * S),
    dataclasses.replace(GROWN, final=True, grace_ms=1 * S, retention_ms=4 * S),
]


def _sending(query: WindowedView, number: int) -> Any:
    return with_outbox(target(query.sql, number, grace_ms=query.grace_ms, retention_ms=query.retention_ms))


def _sent(world: World, number: int) -> list[tuple[Any, ...]]:
    """(deleted, row) in the order in which they are sent."""
    outbox = world.targets[number].outbox
    assert outbox is not None
    with world.database.cursor() as cursor:
        found = cursor.execute(
            "SELECT _deleted, epoch_ms(window_start), epoch_ms(window_end), k, n, c, s, lo, hi "
            f'FROM "_state"."{outbox.table}" ORDER BY _seq'
        ).fetchall()
    return [(row[0], row[1:]) for row in found]


def _topic(sent: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What a reader of the topic has in the end."""
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for deleted, row in sent:
        if deleted:
            assert row[:3] in rows, "only what is there goes"
            del rows[row[:3]]
        else:
            assert rows.get(row[:3]) != row, "said twice"
            rows[row[:3]] = row
    return sorted(rows.values())


def test_topics_have_what_the_records_say(tmp_path: Path) -> None:
    _run(tmp_path, 0)


@pytest.mark.night
@pytest.mark.parametrize("run", range(100))
def test_topics_have_what_the_records_say_whatever_they_are(tmp_path: Path, run: int) -> None:
    _run(tmp_path, random.SystemRandom().randrange(2**32))


def _run(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    rng = random.Random(seed)
    partitions = rng.choice([1, 2, 3])
    events = random_events(rng, 150, partitions, step_ms=S, disorder_ms=6 * S)
    world = World(None, tmp_path, [_sending(query, number) for number, query in enumerate(QUERIES)], partitions)
    try:
        for batch in random_batches(rng, events):
            if rng.random() < 0.3:
                world.restart()
            world.feed_evaluated(batch, QUERIES)
        for number, query in enumerate(QUERIES):
            rows, late = expected(query, events, partitions)
            keyed = [row for row in rows if row[2] is not None]
            sent = _sent(world, number)
            assert _topic(sent) == sorted(keyed), query
            if query.final:
                assert len(sent) == len(keyed), "a closed window is said once"
            if query.windows is not None:
                assert not any(deleted for deleted, _ in sent), "windows do not go"
            assert len(world.late(number)) == len(late)
        kept = [len(world.rows(number)) for number in range(len(QUERIES))]
        assert kept[2] < kept[0]
        assert kept[7] < kept[6]
    finally:
        world.close()


def test_only_what_may_have_changed_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[tuple[str, bool]] = []
    shown = Outbox.shown

    def spied(outbox: Outbox, *, changed_only: bool) -> str:
        looks.append((outbox.query_id, changed_only))
        return shown(outbox, changed_only=changed_only)

    monkeypatch.setattr(Outbox, "shown", spied)
    queries = [GROWN, dataclasses.replace(GROWN, final=True)]
    world = World(None, tmp_path, [_sending(query, number) for number, query in enumerate(queries)], 1)
    try:
        world.feed_evaluated([Event(0, 0, "a", 1, 1 * S), Event(0, 1, "b", 5, 2 * S)], queries)
        assert looks == [("q0", True), ("q1", True)], "the closed ones when the watermark moves"
        world.feed_evaluated([Event(0, 2, "a", 1, 3 * S)], queries)
        assert [row for _, row in _sent(world, 0)][-2:] == [
            (1 * S, 6 * S, "a", 2, 2, 2, 1, 1), (1 * S, 4 * S, "a", 1, 1, 1, 1, 1),
        ]  # fmt: skip
        assert all(changed_only for _, changed_only in looks)
    finally:
        world.close()


def test_a_window_that_is_closed_and_too_old_at_once_is_written(tmp_path: Path) -> None:
    query = dataclasses.replace(TUMBLED, delay_ms=0, final=True, retention_ms=0)
    world = World(None, tmp_path, [_sending(query, 0)], 1)
    try:
        world.feed_evaluated([Event(0, 0, "a", 1, 1 * S), Event(0, 1, "a", 5, 100 * S)], [query])
        assert world.rows() == []
        assert _sent(world, 0) == [(False, (0, 10 * S, "a", 1, 1, 1, 1, 1))]
    finally:
        world.close()


def test_a_partition_becomes_idle_after_a_restart_too(tmp_path: Path) -> None:
    """Nothing comes any more: no batch says that the clock has begun anew."""
    query = dataclasses.replace(TUMBLED, delay_ms=0, final=True)
    sending = with_outbox(target(query.sql.replace("'watermark", "'source.idle.timeout.millis' = 5000, 'watermark")))
    world, now = World(None, tmp_path, [sending], 2), [0.0]
    try:
        world.feed_evaluated([Event(0, 0, "a", 1, 1 * S), Event(0, 1, "a", 5, 100 * S)], [query])
        world.restart()
        (subscriber,) = world.running.all()
        subscriber.idleness = Idleness(5.0, lambda: now[0])
        world.running.latest = {"0": 2, "1": 0}
        assert (world.idle(), world.rows()) == ([], [])
        now[0] = 6.0
        assert world.idle() == ["q0"]
        assert [row[:4] for row in world.rows()] == [(0, 10 * S, "a", 1)]
        assert _sent(world, 0) == [(False, (0, 10 * S, "a", 1, 1, 1, 1, 1))]
        assert world.idle() == []
    finally:
        world.close()
