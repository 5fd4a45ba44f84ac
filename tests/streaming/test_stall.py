"""What is STALLED stays so until it gets on: not RUNNING between two attempts, and not STALLED behind a commit."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver.streaming.batch.evaluate import Evaluated
from mvserver.streaming.pipeline import filler, stall
from mvserver.streaming.pipeline.attempts import LASTED_S
from mvserver.streaming.pipeline.committer import Committer
from mvserver.streaming.pipeline.evaluated_batch import EvaluatedBatch, Share
from mvserver.streaming.pipeline.filler import Filler
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.source_watch import SourceWatch
from mvserver.streaming.pipeline.stall import Stall
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries.csas import SinkQuery
from mvserver.streaming.spark.batch_watch import BatchOverran
from mvserver.streaming.spark.session import SparkGate
from spark_sinks.base import SourceHealth
from spark_sinks.duckdb.ledger.damage import DamageWatch
from spark_sinks.duckdb.ledger.ledger import LedgerEntry

FULL = "no space left on device"
END = {"at": 9}
NOTHING = cast(Any, None)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(stall, "time", clock)
    return clock


def left(count: int | None) -> Any:
    return lambda: count


def reading(cause: str = FULL) -> Stall:
    made = Stall()
    made.running = True
    made.failed(cause)
    return made


# --- the rule -------------------------------------------------------------------------------------------------------
def test_a_cause_stands_through_all_attempts_until_a_commit(clock: Clock) -> None:
    made = reading()
    for _ in range(5):
        made.running = False
        made.seen_well(left(0))  # nobody has looked whether the next attempt meets it again
        made.running = True
        made.seen_well(left(7))
        clock.now += 3
    assert made.cause == FULL
    made.committed()
    assert made.cause is None


def test_what_an_old_attempt_meets_stands_for_as_long_as_what_a_new_one_meets(clock: Clock) -> None:
    made = Stall()
    made.running = True
    clock.now += 10 * LASTED_S
    made.failed(FULL)
    clock.now += LASTED_S - 1
    made.seen_well(left(7))
    assert made.cause == FULL
    clock.now += 1
    made.seen_well(left(7))  # only the end moves, as that of a log in which others write
    assert made.cause is None


def test_an_attempt_at_work_is_none_that_went_well(clock: Clock) -> None:
    made = reading()
    with made.at_work():
        with made.at_work():
            clock.now += 2 * LASTED_S
        made.seen_well(left(7))
        assert made.cause == FULL
    made.seen_well(left(7))
    assert made.cause is None


def test_an_end_that_is_not_known_is_none_that_was_reached(clock: Clock) -> None:
    made = reading()
    made.seen_well(left(None))
    assert made.cause == FULL
    made.seen_well(left(0))
    assert made.cause is None


def test_a_source_that_was_silent_and_is_back_is_told_at_the_first_look_of_an_attempt(clock: Clock) -> None:
    made = Stall()
    made.silent("no answer")
    made.seen_well(left(7))
    assert (made.cause, made.is_silence) == ("no answer", True)
    made.running = True
    made.seen_well(left(7))
    assert (made.cause, made.is_silence) == (None, False)


def test_what_is_met_behind_a_silence_is_none(clock: Clock) -> None:
    made = Stall()
    made.running = True
    made.silent("no answer")
    made.failed(FULL)
    made.seen_well(left(7))
    assert (made.cause, made.is_silence) == (FULL, False)


def test_what_is_left_is_counted_only_where_something_stands_in_the_way(clock: Clock) -> None:
    def counted() -> int:
        raise AssertionError

    made = Stall()
    made.running = True
    made.seen_well(counted)
    made.silent("no answer")
    made.seen_well(counted)
    made.failed(FULL)
    made.running = False
    made.seen_well(counted)
    assert made.cause == FULL


def test_what_is_met_during_a_look_outlives_it(clock: Clock) -> None:
    made = reading()

    def meets_another() -> int:
        made.failed("another")
        return 0

    made.seen_well(meets_another)
    assert made.cause == "another"


# --- pipelines ------------------------------------------------------------------------------------------------------
class Positions:
    def __init__(self) -> None:
        self.counted = 0
        self.refused: Exception | None = None

    def distance(self, start: Any, end: Any) -> int:
        self.counted += 1
        if self.refused is not None:
            raise self.refused
        return int(end["at"]) - int(start["at"])

    def reached(self, position: Any, target: Any) -> bool:
        return int(position["at"]) >= int(target["at"])


class Reader:
    """A source that is well."""

    held = rounds = logged = schemas = None

    def __init__(self) -> None:
        self.positions = Positions()
        self.answer = SourceHealth("ok", latest=END)
        self.health = SimpleNamespace(look=lambda position: self.answer, explain_failure=lambda error, position: error)

    def confirm(self, position: Any) -> None: ...

    def give_up(self) -> None: ...


class File:
    """The views' file, which may be full."""

    def __init__(self) -> None:
        self.damage, self.full = DamageWatch(), False
        self.commit_lock = threading.RLock()

    def commit(self, commit: Any) -> None:
        if self.full:
            raise OSError(28, FULL)

    @contextmanager
    def transaction(self) -> Any:
        yield SimpleNamespace(set_filled=lambda query_id: None, set_failure=lambda query_id, failure: None)


def view(query_id: str, at: int) -> Subscriber:
    plan = SimpleNamespace(scan=SimpleNamespace(relation_id="r"))
    target: Any = SimpleNamespace(query_id=query_id, state=None, plan=plan)
    return Subscriber(target, 1, {"at": at}, NOTHING, filled=at == END["at"])


class World:
    """A pipeline that stands at its source's end, with a view that is there and one that is filled."""

    def __init__(self) -> None:
        self.reader, self.file, self.stopping = Reader(), File(), threading.Event()
        self.state = RunningState(cast(Any, self.reader), cast(Any, self.file), records_max=10)
        self.live, self.filled = view("live", END["at"]), view("filled", 0)
        self.state.subscribers = {each.query_id: each for each in (self.live, self.filled)}
        self.state.position = self.state.next = END
        self.state.running = True
        self.watch = SourceWatch(self.state, cast(Any, self.reader), interval_s=1.0, stopping=self.stopping)
        self.committer = Committer(self.state, cast(Any, self.reader), cast(Any, self.file), lambda ids: None)
        self.filler = Filler(
            self.state, cast(Any, self.reader), NOTHING, self.committer, session=NOTHING, gate=NOTHING,
            end_of_look=lambda number: END, stopping=self.stopping,
        )  # fmt: skip

    def look(self) -> str | None:
        self.watch._look(1, cast(Any, self.state.position))
        return self.state.stalled

    def commit(self, batch: EvaluatedBatch) -> None:
        thread = threading.Thread(target=self.committer.loop)
        thread.start()
        self.committer.put(batch)
        self.committer.finish()
        thread.join()

    def round_of(self, end: int) -> EvaluatedBatch:
        share = Share(self.filled, self.filled.position, {"at": end}, end)
        return EvaluatedBatch(None, [(Evaluated((), (), {}, 0, None), [share])])

    def live_batch(self) -> EvaluatedBatch:
        share = Share(self.live, self.live.position, {"at": 12}, 3)
        entry = LedgerEntry("p", 1, 1, self.live.position, {"at": 12}, 3)
        return EvaluatedBatch(entry, [(Evaluated((), (), {}, 0, None), [share])])


@pytest.fixture
def world(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(filler, "_RETRY_S", 0.0)
    return World()


def test_a_view_that_cannot_be_filled_is_stalled_until_it_is_filled_further(world: World, clock: Clock) -> None:
    """However long the pipeline has read, and although it has all that there is."""
    clock.now += 10 * LASTED_S
    world.filler._fill_failed([world.filled], OSError(FULL))
    clock.now += 10 * LASTED_S
    assert world.look() == world.look() == FULL
    world.commit(world.round_of(4))
    assert (world.filled.position, world.look()) == ({"at": 4}, None)


def test_a_round_that_cannot_be_committed_stalls_its_views(world: World) -> None:
    """It ends the generation, whose own part has nothing left to read."""
    world.file.full = True
    world.commit(world.round_of(4))
    error, world.state.error = world.state.error, None
    world.state.met(str(error))
    assert world.look() == world.look() == f"[Errno 28] {FULL}"
    assert world.state.stall.cause is None
    world.file.full = False
    world.commit(world.round_of(4))
    assert world.look() is None


def test_a_live_commit_says_nothing_of_a_view_that_is_filled(world: World) -> None:
    world.filler._fill_failed([world.filled], OSError(FULL))
    world.state.met("another")
    assert world.look() == FULL
    world.commit(world.live_batch())
    assert (world.live.position, world.live.stalled, world.state.stalled) == ({"at": 12}, None, FULL)


def test_a_round_that_is_made_smaller_is_no_cause_of_the_pipeline(world: World) -> None:
    assert world.state.shrink_batches(BatchOverran(620_000, 60), [world.filled])
    assert (world.state.stall.cause, world.filled.stalled) == (None, str(BatchOverran(620_000, 60)))


def test_nothing_stalls_where_nothing_is_left_to_be_filled(world: World) -> None:
    world.filler._fill_failed([world.filled], OSError(FULL))
    world.filled.terminated = True
    assert world.state.stalled is None
    world.filled.terminated = False
    assert world.filler._next_round() == [world.filled]
    assert world.state.stalled == FULL
    world.filled.busy, world.filled.position, world.filled.claimed = False, END, END
    world.state.running = False
    assert (world.filler._next_round(), world.state.stalled) == ([], FULL)
    world.state.running = True
    assert (world.filler._next_round(), world.state.stalled) == ([], None)


def test_a_long_batch_is_told_of_those_who_wait_for_it(tmp_path: Any) -> None:
    file = cast(Any, File())
    services = PipelineServices(
        writer=file, gate=SparkGate(), session=NOTHING, work_directory=tmp_path, records_per_trigger=10,
        committed=lambda ids: None,
    )  # fmt: skip
    pipeline = Pipeline("p", cast(Any, Reader()), services)
    live, filled = view("live", 9), view("filled", 0)
    pipeline._state.subscribers = {each.query_id: each for each in (live, filled)}
    filled.busy = True  # as in a round
    pipeline._noticed("a round takes long", [Share(filled, {"at": 0}, {"at": 4}, 4)])
    assert (pipeline._state.stall.cause, filled.stalled, pipeline.stalled) == (None, *["a round takes long"] * 2)
    assert (pipeline.stalled_of(filled), pipeline.stalled_of(live)) == ("a round takes long", None)
    pipeline._noticed("a batch takes long", [Share(live, {"at": 9}, {"at": 12}, 3)])
    assert (live.stalled, pipeline.stalled) == (None, "a batch takes long")


def test_a_source_that_cannot_count_is_confirmed_all_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    number = world.watch.ask()
    assert world.look() is None
    assert world.reader.positions.counted == 0, "nothing stands in the way"
    world.state.met(FULL)
    world.reader.positions.refused = OSError("the journal cannot be read")
    with pytest.raises(OSError, match="journal"):
        world.watch._look(number, END)
    assert world.watch.answer(number) == END
    assert world.state.stalled == FULL


# --- queries that write ---------------------------------------------------------------------------------------------
class Writing:
    """A query that has written up to 1 of 9, and whose sink is full."""

    def __init__(self) -> None:
        self.reader, self.query = Reader(), object.__new__(SinkQuery)
        query = self.query
        query._stopping, query._failure, query._stall = threading.Event(), None, Stall()
        query._position, query._latest, query._query = {"at": 1}, None, cast(Any, SimpleNamespace(id="q"))
        query._reader = cast(Any, self.reader)
        query._set_running(True)

    def look(self) -> str | None:
        self.query._look({"at": 1})
        return self.query._stall.cause


def test_a_silence_that_ended_an_attempt_at_writing_is_over_with_the_silence(clock: Clock) -> None:
    writing = Writing()
    writing.reader.answer = SourceHealth("stalled", "no answer")
    writing.query._note(OSError("it ended"))
    assert writing.query._stall.cause == "no answer"
    writing.reader.answer = SourceHealth("ok", latest=END)
    assert writing.look() is None


def test_a_write_that_takes_long_is_none_that_went_well(clock: Clock) -> None:
    writing = Writing()
    writing.query._note(OSError(FULL))
    with writing.query._stall.at_work():
        clock.now += 2 * LASTED_S
        assert writing.look() == FULL
    writing.reader.answer = SourceHealth("ok")
    writing.query._note(OSError(FULL))
    assert writing.look() == FULL, "where the source ends is not known"


def test_a_query_that_writes_counts_what_is_left_only_where_it_is_stalled(clock: Clock) -> None:
    writing = Writing()
    assert (writing.look(), writing.reader.positions.counted) == (None, 0)
    writing.query._note(OSError(FULL))
    assert (writing.look(), writing.reader.positions.counted) == (FULL, 1)


def test_a_batch_is_at_work_until_it_is_written(clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    writing, seen = Writing(), []
    query = writing.query
    guard = SimpleNamespace(records_max=lambda query_id, wanted: wanted, is_current=lambda session: True)
    query._services = cast(Any, SimpleNamespace(guard=guard, work_directory=tmp_path))
    query._size, query._epoch, query._generation, query._written_at = cast(Any, SimpleNamespace(records_max=1)), 0, 0, 0
    sink = SimpleNamespace(committed_position=lambda expected: {"at": 1}, close=lambda: None, renew=lambda at: None)
    query._form = cast(Any, SimpleNamespace(open=lambda given_up: sink, pace=SimpleNamespace(interval_s=0)))
    query._stall.failed(FULL)

    def write(*_: Any) -> int:
        clock.now += 2 * LASTED_S
        seen.append(writing.look())
        return 1

    monkeypatch.setattr(query, "_write", write)
    monkeypatch.setattr("mvserver.streaming.queries.csas.run_batches", lambda *_, on_batch, **__: on_batch(NOTHING, 1))
    query._run_generation_in(NOTHING)
    assert seen == [FULL]
    assert writing.look() is None, "it is not at work any more, and has gone on for long"
