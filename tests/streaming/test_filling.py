"""Filling goes on after whatever went wrong between its rounds, and says so meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.pipeline import filler, pipeline
from mvserver.streaming.pipeline.committer import Committer
from mvserver.streaming.pipeline.filler import Filler
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.batch_watch import BatchOverran
from mvserver.streaming.spark.session import SparkGate
from spark_sinks.duckdb.ledger.damage import DamageWatch

WITHIN_S = 10.0


class Full:
    """A DuckDB file on a disk that is full at the first try."""

    def __init__(self) -> None:
        self.refused = threading.Event()
        self.filled: list[str] = []
        self.damage = DamageWatch()

    def transaction(self) -> Any:
        return self

    def __enter__(self) -> Any:
        if not self.refused.is_set():
            self.refused.set()
            raise OSError("no space left on device")
        return SimpleNamespace(set_filled=self.filled.append)

    def __exit__(self, *_: Any) -> None:
        pass


def test_a_view_is_filled_once_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filler, "_RETRY_S", 0.05)
    positions = SimpleNamespace(
        reached=lambda position, target: position["at"] >= target["at"], distance=lambda start, end: 0
    )
    reader: Any = SimpleNamespace(positions=positions)
    writer, stopping = Full(), threading.Event()
    state = RunningState(reader, cast(Any, writer), records_max=1)
    view = Subscriber(cast(Any, SimpleNamespace(query_id="q")), 1, {"at": 3}, cast(Any, None))
    state.subscribers, state.latest = {"q": view}, {"at": 3}
    nothing = cast(Any, None)
    thread = threading.Thread(
        target=Filler(
            state, reader, nothing, nothing, session=nothing, gate=nothing, end_of_look=lambda number: state.latest,
            stopping=stopping,
        ).loop
    )  # fmt: skip
    thread.start()
    try:
        assert writer.refused.wait(WITHIN_S)
        assert state.wait(lambda: view.filled, WITHIN_S)
        assert (writer.filled, state.stalled) == (["q"], "no space left on device")
    finally:
        stopping.set()
        with state.lock:
            state.changed.notify_all()
        thread.join(WITHIN_S)
    assert not thread.is_alive()


class Failures:
    """What the ledger is told of queries that failed."""

    def __init__(self) -> None:
        self.recorded: dict[str, str | None] = {}
        self.damage = DamageWatch()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        yield SimpleNamespace(set_failure=self.recorded.__setitem__)


def test_a_history_that_is_gone_is_a_failure_that_outlives_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filler, "_RETRY_S", 0.05)
    gone = SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, 'file "a" of directory d is gone')

    reader: Any = SimpleNamespace(health=SimpleNamespace(explain_failure=lambda error, position: error))
    writer = Failures()
    state = RunningState(reader, cast(Any, writer), records_max=1)
    views = {
        name: Subscriber(cast(Any, SimpleNamespace(query_id=name)), 1, {"at": 0}, cast(Any, None)) for name in "pq"
    }
    state.subscribers = dict(views)
    nothing = cast(Any, None)
    filling = Filler(
        state,
        reader,
        nothing,
        nothing,
        session=nothing,
        gate=nothing,
        end_of_look=nothing,
        stopping=threading.Event(),
    )
    filling._fill_failed(list(views.values()), gone)
    assert writer.recorded == {"p": str(gone), "q": str(gone)}
    assert [view.failure for view in views.values()] == [str(gone)] * 2
    assert state.stalled is None


def test_a_source_that_does_not_answer_fails_no_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filler, "_RETRY_S", 0.05)
    reader: Any = SimpleNamespace(health=SimpleNamespace(explain_failure=lambda error, position: error))
    writer = Failures()
    state = RunningState(reader, cast(Any, writer), records_max=1)
    view = Subscriber(cast(Any, SimpleNamespace(query_id="q")), 1, {"at": 0}, cast(Any, None))
    state.subscribers = {"q": view}
    nothing = cast(Any, None)
    filling = Filler(
        state,
        reader,
        nothing,
        nothing,
        session=nothing,
        gate=nothing,
        end_of_look=nothing,
        stopping=threading.Event(),
    )
    filling._fill_failed([view], OSError("no route to host"))
    assert (view.failure, writer.recorded, state.stalled) == (None, {}, "no route to host")


def test_a_view_is_not_read_along_with_a_batch_that_was_made_small() -> None:
    """Else what it lacks would be evaluated in one piece for ever, however small the batch."""
    positions = SimpleNamespace(distance=lambda start, end: end["at"] - start["at"])
    reader: Any = SimpleNamespace(positions=positions)
    state = RunningState(reader, cast(Any, Failures()), records_max=600_000)
    view = Subscriber(cast(Any, SimpleNamespace(query_id="q")), 1, {"at": 3}, cast(Any, None))
    assert state.joins(view, {"at": 20_000})
    assert state.shrink_batches(BatchOverran(620_000, 60))
    assert not state.joins(view, {"at": 20_000})
    assert state.joins(view, {"at": 103})


def test_what_is_read_together_begins_with_the_earliest() -> None:
    positions: Any = SimpleNamespace(reached=lambda position, target: position["at"] >= target["at"])
    assert pipeline._least(positions, [{"at": 7}, {"at": 9}, {"at": 3}, {"at": 5}]) == {"at": 3}


def test_a_view_is_not_read_along_where_spark_may_end_of_what_it_lacks() -> None:
    """The batch would be refused for all, or be the one to blame."""
    positions = SimpleNamespace(distance=lambda start, end: end["at"] - start["at"])
    reader: Any = SimpleNamespace(positions=positions)
    suspect = [False]
    state = RunningState(reader, cast(Any, Failures()), records_max=600_000, is_suspect=lambda: suspect[0])
    view = Subscriber(cast(Any, SimpleNamespace(query_id="q")), 1, {"at": 3}, cast(Any, None))
    assert state.joins(view, {"at": 20_000})
    suspect[0] = True
    assert not state.joins(view, {"at": 20_000})


def test_a_round_that_is_given_up_with_its_generation_is_not_waited_for() -> None:
    """The next generation begins before the round looks whether the last one has ended."""
    positions = SimpleNamespace(
        distance=lambda start, end: end["at"] - start["at"], limit=lambda start, end, records: end,
        advance=lambda start, end: end,
    )  # fmt: skip
    reader: Any = SimpleNamespace(positions=positions, rounds=None, batch=lambda *_: None)
    state, stopping = RunningState(reader, cast(Any, Failures()), records_max=10), threading.Event()
    view = Subscriber(cast(Any, SimpleNamespace(query_id="q")), 1, {"at": 0}, cast(Any, None))
    state.subscribers, state.position = {"q": view}, {"at": 3}
    committer = Committer(state, reader, cast(Any, None), lambda query_ids: None)
    state.error = OSError("a commit failed")
    put = committer.put

    def put_and_begin_anew(batch: Any) -> None:
        put(batch)
        committer.settle()
        state.error = None

    committer.put = put_and_begin_anew  # type: ignore[method-assign]
    session = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    filling = Filler(
        state, reader, cast(Any, SimpleNamespace(evaluate=lambda frame, shares, records, tasks_max: (None, shares))),
        committer, session=lambda given_up: cast(Any, session), gate=SparkGate(), end_of_look=lambda number: None,
        stopping=stopping,
    )  # fmt: skip
    thread = threading.Thread(target=filling._fill_round, args=([view],))
    thread.start()
    try:
        thread.join(WITHIN_S)
        assert not thread.is_alive()
    finally:
        stopping.set()
        thread.join(WITHIN_S)
