"""What a live run makes of its source's end, without Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mvserver.compiler.plans import ErrorHandling
from mvserver.streaming.live import run
from mvserver.streaming.live.choice import BEHIND_LIVE_RECORDS
from mvserver.streaming.live.ended import LaneEnded
from mvserver.streaming.live.run import LiveRun, LiveServices
from mvserver.streaming.pipeline.evaluated_batch import EvaluatedBatch
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from spark_sinks.duckdb.record_columns import PARTITION, PLACE
from spark_sinks.kafka.positions import KafkaPositions, make_position
from tests.streaming.states import target


def position(*offsets: int) -> Any:
    return make_position("t", dict(enumerate(offsets)))


class Run:
    """At 10 and 10 of a topic that is known to be without records up to ``empty``."""

    def __init__(self) -> None:
        self.empty: Any = position(10, 10)
        self.committed: list[EvaluatedBatch] = []
        self.executors_went = False
        live = SimpleNamespace(refusal=None, passed=lambda start, end: self.empty)
        reader: Any = SimpleNamespace(positions=KafkaPositions(), live=live, schemas=None, held=None)
        state = RunningState(reader, None, records_max=1000)  # type: ignore[arg-type]
        self.state = state
        self.view = Subscriber(
            target("SELECT k FROM events", 1), 1, position(10, 10), ErrorHandling.IGNORE_AND_LOG, filled=True
        )
        state.subscribers[self.view.query_id] = self.view
        services = LiveServices(
            pipeline_id="p",
            state=state,
            reader=reader,
            committer=SimpleNamespace(put=self._commit, await_writer=lambda timeout_s: None),  # type: ignore[arg-type]
            ended=lambda: False,
            takes=lambda subscriber, start: True,
            evaluated=lambda seconds: None,
            reached=lambda step: None,
            addresses=("127.0.0.1", "127.0.0.1"),
            gives_up=lambda: self.executors_went,
        )
        self.run = LiveRun(services, 7, position(10, 10), [self.view])

    def _commit(self, batch: EvaluatedBatch) -> None:
        self.committed.append(batch)
        batch.done.set()

    def quiet_for(self, seconds: float) -> None:
        self.run._last_rows -= seconds


def test_a_backlog_that_lasts_ends_the_run_and_one_of_a_moment_does_not() -> None:
    made = Run()
    far, near = position(10 + BEHIND_LIVE_RECORDS + 1, 10), position(20, 10)
    looks = int(2.0 / run.LOOK_S)
    for _ in range(looks):
        made.run._compare(far)
    made.run._compare(near)
    for _ in range(looks):
        made.run._compare(far)
    with pytest.raises(LaneEnded, match=f"fell behind by about {BEHIND_LIVE_RECORDS + 1} records"):
        made.run._compare(far)


def test_partitions_that_were_added_end_the_run() -> None:
    with pytest.raises(LaneEnded, match="partitions were added") as caught:
        Run().run._compare(position(10, 10, 0))
    assert caught.value.at_once


def test_the_end_of_executors_ends_the_runs_that_hold_their_slots() -> None:
    made = Run()
    query: Any = SimpleNamespace(failure=lambda: None)
    made.run._look(query)
    made.executors_went = True
    with pytest.raises(LaneEnded, match="executors have gone whose task slots it needs") as caught:
        made.run._look(query)
    assert caught.value.at_once


def test_the_position_moves_over_what_are_no_records() -> None:
    made = Run()
    made.empty = position(13, 10)
    made.run._compare(position(13, 10))
    assert not made.committed, "rows may be on their way"
    made.quiet_for(run.QUIET_S)
    made.run._compare(position(13, 10))
    (batch,) = made.committed
    assert batch.entry is not None
    assert (batch.entry.start, batch.entry.end, batch.entry.generation) == (position(10, 10), position(13, 10), 7)
    assert [share.end for _, shares in batch.parts for share in shares] == [position(13, 10)]
    assert made.view.claimed == position(13, 10)
    assert made.run._passage.places == {"0": 13, "1": 10}


def test_a_source_that_did_not_answer_in_time_is_asked_again() -> None:
    made = Run()
    made.quiet_for(run.QUIET_S)
    made.empty = None
    made.run._compare(position(13, 10))
    assert not made.committed
    made.empty = position(13, 10)
    made.run._compare(position(13, 10))
    assert [batch.entry.end for batch in made.committed if batch.entry] == [position(13, 10)]


def test_a_source_that_does_not_answer_at_all_ends_the_run() -> None:
    made = Run()
    made.quiet_for(run.SILENT_S)
    made.empty = None
    for _ in range(run.UNANSWERED_MAX + 1):
        made.run._compare(position(13, 10))
    with pytest.raises(LaneEnded, match="no record came"):
        made.run._compare(position(13, 10))


def test_records_that_never_come_end_the_run() -> None:
    made = Run()
    made.quiet_for(run.QUIET_S)
    made.run._compare(position(11, 10))
    assert not made.committed
    made.run._compare(position(11, 10))
    made.quiet_for(run.SILENT_S)
    with pytest.raises(LaneEnded, match="no record came"):
        made.run._compare(position(11, 10))


# --- who waits for records --------------------------------------------------------------------------------------------
class Tasks:
    """In the server's place: each poll brings the next rows, as (partition, place)."""

    def __init__(self, *rows: tuple[str, int] | None) -> None:
        self._coming = list(rows)
        self._there: list[Any] = []
        self.takes = 0

    @property
    def ready(self) -> bool:
        return bool(self._there)

    def poll(self, timeout_s: float) -> None:
        row = self._coming.pop(0) if self._coming else None
        if row is not None:
            self._there.append(pa.record_batch({PARTITION: [row[0]], PLACE: [row[1]]}))

    def take(self) -> list[Any]:
        self.takes += 1
        taken, self._there = self._there, []
        return taken


def _gathered(made: Run, tasks: Tasks, *pause_s: float) -> list[tuple[str, int]]:
    """``pause_s``: what is left of the pause at each look; the last one stays."""
    left = list(pause_s)
    return _gathered_within(made, tasks, lambda now: left.pop(0) if len(left) > 1 else left[0])


def _is_over(now: float) -> float:
    """A pause that has just ended."""
    return 60.0 if now < time.monotonic() - run.PATIENCE_S / 2 else 0.0


def _gathered_within(made: Run, tasks: Tasks, left_s: Callable[[float], float]) -> list[tuple[str, int]]:
    pause: Any = SimpleNamespace(left_s=left_s)
    made.run._pause = pause
    tasks.poll(0)
    server: Any = tasks
    return [(row[PARTITION], row[PLACE]) for batch in made.run._gather(server) for row in batch.to_pylist()]


def test_a_pause_ends_when_what_somebody_waits_for_has_come() -> None:
    made, tasks = Run(), Tasks(("0", 10), ("1", 10), None, ("0", 11), ("0", 12))
    with made.state.awaiting(position(12, 10)):
        assert _gathered(made, tasks, 60.0) == [("0", 10), ("1", 10), ("0", 11), ("0", 12)]
    assert tasks.takes == 4
    assert not made.state.awaited


def test_the_least_that_is_awaited_ends_a_pause() -> None:
    made, tasks = Run(), Tasks(("0", 10))
    with made.state.awaiting(position(99, 10)), made.state.awaiting(position(11, 10)):
        assert _gathered(made, tasks, 60.0) == [("0", 10)]


def test_nobody_who_waits_for_what_is_committed_ends_a_pause() -> None:
    made, tasks = Run(), Tasks(("0", 10), ("0", 11))
    with made.state.awaiting(position(10, 10)):
        assert _gathered(made, tasks, 0.001, 0.0) == [("0", 10), ("0", 11)]
    assert tasks.takes == 1


def test_a_pause_that_is_over_waits_for_nothing() -> None:
    made, tasks = Run(), Tasks(("0", 10))
    with made.state.awaiting(position(99, 10)):
        assert _gathered(made, tasks, 0.001, 0.0) == [("0", 10)]


def test_a_pause_that_is_over_is_longer_for_what_somebody_waits_for() -> None:
    made, tasks = Run(), Tasks(("0", 10), None, ("0", 11))
    assert _gathered_within(made, tasks, _is_over) == [("0", 10)]
    made, tasks = Run(), Tasks(("0", 10), None, ("0", 11))
    with made.state.awaiting(position(12, 10)):
        assert _gathered_within(made, tasks, _is_over) == [("0", 10), ("0", 11)]


def test_a_pause_that_is_over_is_longer_for_who_does_not_know_yet_what_to_wait_for() -> None:
    made, tasks = Run(), Tasks(("0", 10))
    gathered: list[Any] = []
    thread = threading.Thread(target=lambda: gathered.extend(_gathered_within(made, tasks, _is_over)))
    with made.state.awaiting(None):
        thread.start()
        with made.state.awaiting(position(11, 10)):
            thread.join(30.0)
    assert gathered == [("0", 10)]


def test_who_begins_to_wait_within_a_pause_ends_it() -> None:
    made, tasks = Run(), Tasks(("0", 10))
    gathered: list[Any] = []
    thread = threading.Thread(target=lambda: gathered.extend(_gathered(made, tasks, 60.0)))
    thread.start()
    with made.state.awaiting(position(11, 10)):
        thread.join(30.0)
    assert gathered == [("0", 10)]
