"""What windowed views keep: aggregates of every kind, closed windows that go, idle partitions, files as a source."""

from __future__ import annotations

import dataclasses
import json
import random
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from mvserver.streaming.pipeline import evaluator
from mvserver.streaming.pipeline.idleness import Idleness
from mvserver.streaming.queries.outputs import with_outbox
from spark_sinks.file.entity_files import DirectoryFiles
from spark_sinks.file.files import visible_files
from spark_sinks.file.source import FileReader
from tests.streaming.windows import RELATION, Event, World, random_batches, random_events, sessions, target

pytestmark = pytest.mark.spark
S = 1000
_TUMBLE = "TUMBLE(events, SIZE 10 SECONDS)"
_BY = "GROUP BY window_start, window_end"


@contextmanager
def world_of(spark: Any, folder: Path, partitions: int, *targets: Any) -> Iterator[World]:
    world = World(spark, folder, targets, partitions)
    try:
        yield world
    finally:
        world.close()


def at(*times_s: float, partition: int = 0, first: int = 0, k: str | None = "a") -> list[Event]:
    return [Event(partition, first + i, k, i, round(time * S)) for i, time in enumerate(times_s)]


def test_aggregates_of_every_kind(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(11)
    print("seed", 11)
    events = [e for e in random_events(rng, 60, 2, step_ms=S, disorder_ms=6 * S) if e.ts is not None]
    events = [Event(e.partition, e.offset, e.k, e.v, e.ts) for e in events]
    delay = "WITH ('watermark.delay.millis' = 1000000)"
    merged = "avg(v) AS a, stddev_samp(v) AS d, first_value(v) AS f, last_value(v) AS l, bool_or(v > 5) AS b"
    kept = "count(DISTINCT v) AS u, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS m, string_agg(k, '' ) AS j"
    of_sessions = (
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS m, string_agg(v::varchar, ',') AS j, topk(v, 2) AS t, "
        "most_frequent(v, 1) AS o, array_agg(v) AS a2, array_agg(DISTINCT v) AS u"
    )
    tumbling = target(f"SELECT window_start, window_end, {merged}, {kept} FROM {_TUMBLE} {delay} {_BY}")
    grown = target(
        f"SELECT window_start, window_end, k, {merged}, {of_sessions} "
        f"FROM SESSION(events PARTITION BY k, GAP 3 SECONDS) {delay} {_BY}, k",
        1,
    )
    with world_of(spark, tmp_path, 2, tumbling, grown) as world:
        for batch in random_batches(rng, events):
            world.feed(batch)
        windows, islands = world.rows(0), world.rows(1)
    spans = [(e.ts // (10 * S) * 10 * S, e.ts // (10 * S) * 10 * S + 10 * S, e) for e in events if e.ts is not None]
    assert windows == sorted((s, e, *_merged(of), *_kept(of)) for (s, e), of in _groups(spans).items())
    found = sessions([(e.ts, e.ts + 3 * S, e) for e in events if e.ts is not None])
    by_key: dict[Any, list[Event]] = {}
    for start, end, event in found:
        by_key.setdefault((start, end, event.k), []).append(event)
    expected = [(*key, *_merged(of), *_of_session(of)) for key, of in by_key.items()]
    assert islands == sorted(expected, key=lambda row: tuple((value is not None, value) for value in row))


def _groups(spans: list[tuple[int, int, Event]]) -> dict[tuple[int, int], list[Event]]:
    groups: dict[tuple[int, int], list[Event]] = {}
    for start, end, event in spans:
        groups.setdefault((start, end), []).append(event)
    return groups


def _merged(of: list[Event]) -> tuple[Any, ...]:
    known = [e.v for e in of if e.v is not None]
    timed = [(e.ts, e.v) for e in of if e.v is not None]
    average = None if not known else (Decimal(sum(known)) / len(known)).quantize(Decimal("1e-6"), ROUND_HALF_UP)
    deviation = None if len(known) < 2 else pytest.approx(statistics.stdev(known))
    first, last = (pick(timed)[1] if timed else None for pick in (min, max))
    return (average, deviation, first, last, any(v > 5 for v in known) if known else None)


def _kept(of: list[Event]) -> tuple[Any, ...]:
    known = [e.v for e in of if e.v is not None]
    texts = [e.k for e in sorted((e for e in of if e.k is not None), key=lambda e: (e.ts, e.k))]
    return (
        len(set(known)),
        None if not known else pytest.approx(statistics.median(known)),
        "".join(texts) if texts else None,
    )


def _of_session(of: list[Event]) -> tuple[Any, ...]:
    of = sorted(of, key=lambda e: (e.ts, e.v is None, e.v))
    known = [e.v for e in of if e.v is not None]
    often = sorted(set(known), key=lambda v: (-known.count(v), v))
    distinct = [*sorted(set(known)), *([None] if len(known) < len(of) else [])]
    return (
        None if not known else pytest.approx(statistics.median(known)),
        ",".join(map(str, known)) if known else None,
        sorted(known, reverse=True)[:2] if known else None,
        often[:1] if known else None,
        [e.v for e in of],
        distinct,
    )


def test_closed_windows_go_when_they_are_older_than_the_view_keeps_them(spark: Any, tmp_path: Path) -> None:
    sql = f"SELECT window_start, window_end, k, count(*), count(DISTINCT v) AS u FROM {_TUMBLE} {_BY}, k"
    with world_of(spark, tmp_path, 1, target(sql, retention_ms=5 * S)) as world:
        world.feed([*at(1, 2), *at(3, first=2, k=None)])
        assert world.rows() == [(0, 10 * S, None, 1, 1), (0, 10 * S, "a", 2, 2)]
        world.feed(at(14.999, first=3))
        assert len(world.rows()) == 3
        world.feed(at(15, first=4))  # the watermark is the window's end and 5 seconds
        assert world.rows() == [(10 * S, 20 * S, "a", 2, 1)]
        for table in world.targets[0].state.tables:
            with world.database.cursor() as cursor:
                (left,) = cursor.execute(
                    f'SELECT count(*) FROM "_state"."{table}" WHERE epoch_ms(k1) = 10000'
                ).fetchall()
            assert left == (0,)
        world.feed(at(4, first=5))
        assert world.late() == [("0:5", 10 * S)]


def test_an_idle_partition_does_not_hold_the_watermark_back(spark: Any, tmp_path: Path) -> None:
    sql = f"SELECT window_start, window_end, count(*) FROM {_TUMBLE} WITH ('source.idle.timeout.millis' = 5000) {_BY}"
    now = [0.0]
    with world_of(spark, tmp_path, 2, target(f"{sql} EMIT FINAL")) as world:
        (subscriber,) = world.running.all()
        subscriber.idleness = Idleness(5.0, lambda: now[0])
        world.feed(at(3, 21))
        world.running.latest = {"0": 2, "1": 1}
        now[0] = 6.0
        assert world.idle() == []  # there is a record that was not read
        assert world.rows() == []
        world.running.latest = {"0": 2, "1": 0}
        assert world.idle() == ["q0"]
        assert world.rows() == [(0, 10 * S, 1)]
        assert world.idle() == []
        world.feed(at(4, 22, partition=1))  # the first is late, since its window is closed
        assert world.late() == [("1:0", 10 * S)]
        world.feed([*at(35, partition=1, first=2), *at(31, first=2)])
        assert world.rows() == [(0, 10 * S, 1), (20 * S, 30 * S, 2)]


def test_without_a_timeout_a_partition_is_waited_for(spark: Any, tmp_path: Path) -> None:
    with world_of(
        spark, tmp_path, 2, target(f"SELECT window_start, window_end, count(*) FROM {_TUMBLE} {_BY} EMIT FINAL")
    ) as world:
        world.feed(at(3, 21))
        world.running.latest = {"0": 2, "1": 0}
        assert (world.idle(), world.rows()) == ([], [])
        world.feed(at(10, partition=1))
        assert world.rows() == [(0, 10 * S, 1)]


def test_a_projection_has_a_row_for_each_window(spark: Any, tmp_path: Path) -> None:
    sql = "SELECT window_start, window_end, v FROM HOP(events, SIZE 10 SECONDS, ADVANCE BY 5 SECONDS) WHERE v < 2"
    with world_of(spark, tmp_path, 1, target(sql)) as world:
        world.feed([*at(7, 3, 8), Event(0, 3, "a", 1, None)])
        assert world.rows() == [
            (-5 * S, 5 * S, 1),
            (0, 10 * S, 0),
            (0, 10 * S, 1),
            (5 * S, 15 * S, 0),
        ]


def test_a_large_batch_is_judged_record_by_record(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "ROW_MODE_RECORDS_MAX", 5)
    monkeypatch.setattr(evaluator, "SINGLE_TASK_RECORDS_MAX", 5)
    plain = target("SELECT k, count(*) AS n FROM events GROUP BY k")
    windowed = target(f"SELECT window_start, window_end, count(*) AS n FROM {_TUMBLE} {_BY}", 1)
    with world_of(spark, tmp_path, 1, plain, windowed) as world:
        world.feed(at(1, 2, 11, 3, 12, 4, 21, 5))
        with world.database.cursor() as cursor:
            rows = cursor.execute(f'SELECT * FROM "_views"."{plain.view_id}"').fetchall()
        assert rows == [("a", 8)]
        assert world.rows(1) == [(0, 10 * S, 2), (10 * S, 20 * S, 2), (20 * S, 30 * S, 1)]
        assert world.late(1) == [("0:3", 10 * S), ("0:5", 10 * S), ("0:7", 10 * S)]


def test_files_are_one_partition_in_the_order_of_the_journal(spark: Any, tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    for name, times in (("b.json", [1, 21, 2]), ("a.json", [3, 22])):
        lines = [json.dumps({"k": "a", "v": 1, "ts": time * S}) for time in times]
        (directory / name).write_text("\n".join(lines) + "\n")
    reader = FileReader(DirectoryFiles(directory), tmp_path / "work", None)
    by_name = {file.name: file for file in visible_files(directory, directory.resolve())}
    reader._journal.append([by_name["b.json"], by_name["a.json"]])  # found in this order
    windowed = target(f"SELECT window_start, window_end, count(*) AS n FROM {_TUMBLE} {_BY}")
    with world_of(spark, tmp_path, 1, windowed) as world:
        world.reader = world.evaluator._reader = world.committer._reader = reader  # type: ignore[assignment]
        world.feed_frame(reader.batch(spark, {"seq": 0}, {"seq": 2}), {"seq": 0}, {"seq": 2}, 5)
        assert world.rows() == [(0, 10 * S, 1), (20 * S, 30 * S, 2)]
        assert world.late() == [("a.json", 10 * S), ("b.json", 10 * S)]


def test_the_record_s_own_time_is_the_event_time_where_none_is_named(spark: Any, tmp_path: Path) -> None:
    plain = dataclasses.replace(RELATION, timestamp=None)
    sql = f"SELECT window_start, window_end, count(*) AS n FROM TUMBLE(events, SIZE 1 DAY) {_BY}"
    with world_of(spark, tmp_path, 1, target(sql, relation=plain)) as world:
        world.feed([Event(0, 0, "a", 1, None), Event(0, 1, "a", 1, 5)])
        day = 1_700_000_000_000 // 86_400_000 * 86_400_000
        assert world.rows() == [(day, day + 86_400_000, 2)]


def test_event_times_that_no_calendar_has_are_counted_and_move_nothing(spark: Any, tmp_path: Path) -> None:
    sql = f"SELECT window_start, window_end, count(*) AS n FROM {_TUMBLE} {_BY}"
    with world_of(spark, tmp_path, 1, target(sql)) as world:
        world.feed([Event(0, 0, "a", 1, 2**63 - 1), Event(0, 1, "a", 1, -(2**63)), Event(0, 2, "a", 1, 5)])
        assert world.rows() == [(0, 10 * S, 1)]
        assert world.late() == [("0:0", None), ("0:1", None)]
        assert world.writer.window_progress() == {"q0": (5000, 2)}


def test_what_is_sent_on_of_windows(spark: Any, tmp_path: Path) -> None:
    closed = with_outbox(
        target(f"SELECT window_start, window_end, k, count(*) AS n FROM {_TUMBLE} {_BY}, k EMIT FINAL")
    )
    grown = with_outbox(
        target(
            "SELECT window_start, window_end, k, count(*) AS n FROM SESSION(events PARTITION BY k, GAP 3 SECONDS) "
            f"WITH ('watermark.delay.millis' = 60000) {_BY}, k",
            1,
        )
    )
    with world_of(spark, tmp_path, 1, closed, grown) as world:
        world.feed(at(1, 5))
        assert _sent(world, closed) == []
        assert sorted(_sent(world, grown)) == [(False, 1, 4, 1), (False, 5, 8, 1)]
        world.feed(at(12, 3, first=2))  # the second one joins what was two sessions, and comes too late for the window
        assert _sent(world, closed) == [(False, 0, 10, 2)]
        assert sorted(_sent(world, grown)[2:]) == [
            (False, 1, 8, 3),
            (False, 12, 15, 1),
            (True, 1, 4, 1),
            (True, 5, 8, 1),
        ]
        world.feed(at(15, first=4))
        assert _sent(world, closed) == [(False, 0, 10, 2)]


def _sent(world: World, sending: Any) -> list[tuple[Any, ...]]:
    """(deleted, bounds in seconds, n), those of one batch in their order."""
    with world.database.cursor() as cursor:
        return cursor.execute(
            "SELECT _deleted, epoch(window_start)::INTEGER, epoch(window_end)::INTEGER, n "
            f'FROM "_state"."{sending.outbox.table}" ORDER BY _seq'
        ).fetchall()


def test_rows_of_a_projection_go_when_they_are_older_than_the_view_keeps_them(spark: Any, tmp_path: Path) -> None:
    sql = "SELECT NULL::timestamp AS window_start, NULL::timestamp AS window_end, v FROM events WHERE v <> 1"
    with world_of(spark, tmp_path, 1, target(sql, retention_ms=5 * S)) as world:
        world.feed([*at(10, 14, 11), Event(0, 3, "a", 7, None)])
        assert [row[2] for row in world.rows()] == [0, 2, 7]
        world.restart()
        world.feed(at(1, 15, first=4))  # the first is left out by WHERE, the second gone at once
        assert [row[2] for row in world.rows()] == [2, 7]
        world.feed([Event(0, 6, "a", 1, 16 * S), Event(0, 7, "a", 9, 11 * S)])
        assert [row[2] for row in world.rows()] == [7]  # those without event time stay
