"""Views are looked up while a statement waits for threads to end, and no thread is joined while a look would wait."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.server import Rooms
from mvserver.streaming.api import QueryState
from mvserver.streaming.pipeline.pipeline import Pipeline
from mvserver.streaming.queries.orphan_clean_up import OrphanCleanUp
from mvserver.streaming.queries.running import RunningQuery
from spark_sinks.duckdb.writer import Writer
from tests.server.kept_directory import opened_rooms

_WITHIN_S = 30.0
_AT_ONCE_S = 0.5  # a look that waits for a statement waits for 1 s


def _query_of(rooms: Rooms, name: str) -> tuple[str, str]:
    """The ids of a view and of its query."""
    (view,) = [each for each in rooms.catalog.relations.all() if each.name == name]
    (query,) = [each for each in rooms.catalog.queries.all() if each.sink_id == view.id]
    return view.id, query.id


def test_other_views_are_looked_up_while_one_ends(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    view_id, query_id = _query_of(rooms, "keyed")
    _, dropped = _query_of(rooms, "joined")
    engine, ending, goes_on = rooms.engine, threading.Event(), threading.Event()
    stop, join = Pipeline.stop, threading.Thread.join
    under_the_table: list[str] = []

    def note(what: str) -> None:
        if engine._queries._table._is_owned():  # type: ignore[attr-defined]
            under_the_table.append(what)

    def hanging_stop(pipeline: Pipeline) -> None:
        note("stop")
        ending.set()
        assert goes_on.wait(30)
        stop(pipeline)

    def noted_join(thread: threading.Thread, timeout: float | None = None) -> None:
        note("join")
        join(thread, timeout)

    with rooms.catalog.transaction():
        rooms.catalog.queries.delete(dropped)
    with monkeypatch.context() as patched:
        patched.setattr(Pipeline, "stop", hanging_stop)
        patched.setattr(threading.Thread, "join", noted_join)
        statement = threading.Thread(target=engine.reconcile)
        statement.start()
        assert ending.wait(30)
        began = time.monotonic()
        assert engine.status(query_id).query_id == query_id
        engine.present_ends([view_id])
        engine.confirmed_at([view_id])
        engine.refuse_empty([view_id])
        assert len(engine.statuses()) == len(rooms.catalog.queries.all())
        engine.pipelines()
        engine.end_push_queries(SqlError(sqlstates.ADMIN_SHUTDOWN, "the server ends"))
        took_s = time.monotonic() - began
        goes_on.set()
        statement.join(30)
    assert not statement.is_alive()
    assert took_s < _AT_ONCE_S
    assert not under_the_table


class HangingStops:
    """Pipelines of a source that does not answer until it is let: they do not end."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.ending, self.goes_on = threading.Event(), threading.Event()
        self.stop = Pipeline.stop
        patched.setattr(Pipeline, "stop", lambda pipeline: self.hang(pipeline))

    def hang(self, pipeline: Pipeline) -> None:
        self.ending.set()
        assert self.goes_on.wait(_WITHIN_S)
        self.stop(pipeline)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_view_over_what_is_ending_is_made_and_other_statements_go_on(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, queries = rooms.engine, rooms.catalog.queries
    over_users = [queries.get(_query_of(rooms, name)[1]) for name in ("changed", "regions", "oldest")]
    made, other = replace(over_users[1], id=str(uuid4())), _query_of(rooms, "keyed")[1]
    with monkeypatch.context() as patched:
        users = HangingStops(patched)
        with rooms.catalog.transaction():
            for query in over_users:
                queries.delete(query.id)
        dropping = threading.Thread(target=engine.reconcile)
        dropping.start()
        assert users.ending.wait(_WITHIN_S)
        with rooms.catalog.transaction():
            queries.add(made)
        making = threading.Thread(target=engine.reconcile)
        making.start()
        _wait(lambda: made.id in engine._awaited)

        def change_others() -> None:
            engine.restart(other)
            engine.reconcile()

        others = threading.Thread(target=change_others)
        others.start()
        others.join(_WITHIN_S / 2)
        waited = others.is_alive()
        with pytest.raises(SqlError, match="is about to begin"):
            engine.restart(made.id)
        assert making.is_alive()
        users.goes_on.set()
        for thread in (dropping, making, others):
            thread.join(_WITHIN_S)
    assert not waited
    assert not making.is_alive()
    found = engine._queries.get(made.id)
    assert found is not None
    assert (found.broken, found.pipeline is not None and found.pipeline.started) == (None, True)
    assert not engine._awaited


def test_what_is_dropped_while_it_waits_for_what_is_ending_is_never_begun(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, queries = rooms.engine, rooms.catalog.queries
    over_users = [queries.get(_query_of(rooms, name)[1]) for name in ("changed", "regions", "oldest")]
    made = replace(over_users[1], id=str(uuid4()))
    with monkeypatch.context() as patched:
        users = HangingStops(patched)
        with rooms.catalog.transaction():
            for query in over_users:
                queries.delete(query.id)
        threads = [threading.Thread(target=engine.reconcile)]
        threads[0].start()
        assert users.ending.wait(_WITHIN_S)
        with rooms.catalog.transaction():
            queries.add(made)
        threads.append(threading.Thread(target=engine.reconcile))
        threads[1].start()
        _wait(lambda: made.id in engine._awaited)
        with rooms.catalog.transaction():
            queries.delete(made.id)
        engine.reconcile()
        assert not engine._awaited
        users.goes_on.set()
        for thread in threads:
            thread.join(_WITHIN_S)
    assert not any(thread.is_alive() for thread in threads)
    assert engine._queries.get(made.id) is None
    assert not any(row.query_id == made.id for row in rooms.writer.ledger_subscribers())


def test_a_query_runs_again_when_what_it_wrote_by_has_ended_and_others_go_on(rooms: Rooms) -> None:
    engine, query_id = rooms.engine, _query_of(rooms, "keyed")[1]

    def wanted(state: str) -> None:
        with rooms.catalog.transaction():
            rooms.catalog.queries.set_desired_state(query_id, state)

    wanted("terminated")
    engine.reconcile()
    answers = threading.Event()
    engine._ended.end(query_id, lambda: _wait(answers.is_set))  # as a sink whose store says nothing
    engine._ended.wait_own(0)
    wanted("running")
    starting = threading.Thread(target=engine.reconcile)
    starting.start()
    _wait(lambda: query_id in engine._awaited)
    other = threading.Thread(target=engine.reconcile)
    other.start()
    other.join(_WITHIN_S / 2)
    assert (other.is_alive(), starting.is_alive()) == (False, True)
    assert engine.status(query_id).state is QueryState.TERMINATED
    wanted("terminated")
    engine.reconcile()
    assert not engine._awaited
    wanted("running")
    other = threading.Thread(target=engine.reconcile)
    other.start()
    _wait(lambda: query_id in engine._awaited)
    answers.set()
    for thread in (starting, other):
        thread.join(_WITHIN_S)
        assert not thread.is_alive()
    assert engine.status(query_id).state is not QueryState.TERMINATED


def _change_store(rooms: Rooms, name: str) -> None:
    with rooms.catalog.transaction():
        store = rooms.catalog.stores.get(name)
        rooms.catalog.stores.update(store.id, store.properties, store.updated_at + 1)


def test_a_query_that_is_terminated_while_it_is_renewed_says_so(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, query_id = rooms.engine, _query_of(rooms, "keyed")[1]
    with monkeypatch.context() as patched:
        hanging = HangingStops(patched)
        _change_store(rooms, "local")
        engine.reconcile()
        assert hanging.ending.wait(_WITHIN_S)
        assert engine.status(query_id).state is QueryState.STALLED
        with rooms.catalog.transaction():
            rooms.catalog.queries.set_desired_state(query_id, "terminated")
        engine.reconcile()
        status = engine.status(query_id)
        assert (status.state, status.error, status.caught_up) == (QueryState.TERMINATED, None, False)
        hanging.goes_on.set()
        _wait(lambda: all(known.ending is None for known in engine._queries.all()))
    assert engine.status(query_id).state is QueryState.TERMINATED
    found = engine._queries.get(query_id)
    assert found is not None
    assert found.subscriber is not None
    assert found.subscriber.terminated


def test_nothing_begins_behind_the_engines_end(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements that waited for their turn meanwhile, and the renewals of a changed store."""
    engine, query_id = rooms.engine, _query_of(rooms, "keyed")[1]
    _, joined = _query_of(rooms, "joined")
    known = engine._queries.get(query_id)
    assert known is not None
    assert known.subscriber is not None
    plan = known.subscriber.target.plan
    with monkeypatch.context() as patched:
        hanging = HangingStops(patched)
        _change_store(rooms, "local")
        engine.reconcile()
        assert hanging.ending.wait(_WITHIN_S)
        stopping = threading.Thread(target=engine.stop)
        stopping.start()
        _wait(lambda: engine._stopped)
        hanging.goes_on.set()
        stopping.join(_WITHIN_S)
        assert not stopping.is_alive()
    begun: list[str] = []
    monkeypatch.setattr(Pipeline, "start", lambda pipeline, position: begun.append(pipeline.id))
    engine._queries.put(RunningQuery(known.query, broken="its store did not answer", store_versions={}))
    for statement in (
        lambda: engine.restart(query_id),
        lambda: engine.refresh(joined),
        lambda: engine.subscribe(plan, '{"before": []}'),
    ):
        with pytest.raises(SqlError) as refused:
            statement()
        assert (refused.value.sqlstate, refused.value.message) == (
            sqlstates.ADMIN_SHUTDOWN,
            "the server is shutting down",
        )
    engine.reconcile()
    assert engine._take_up(known)  # there is nothing left to do
    assert begun == []


def _lose_a_file(rooms: Rooms, folder: Path) -> str:
    """Of one source of the join, after all is read."""
    running = rooms.engine._queries.get(_query_of(rooms, "joined")[1])
    assert running is not None
    payments: Any = running.feeds[1].pipeline.reader
    payments._journal.append(payments._files.look())
    (gone, *_) = sorted(each for each in (folder / "data" / "files" / "payments").iterdir() if each.is_file())
    gone.unlink()
    return gone.name


def _assert_rebuilt_without(rooms: Rooms, gone: str) -> None:
    """From what the sources still have."""
    query_id = _query_of(rooms, "joined")[1]
    found = rooms.engine._queries.get(query_id)
    assert found is not None
    assert found.broken is None
    assert found.subscriber is not None
    assert found.subscriber.note == f"rebuilt without 1 files that are gone or changed: {gone}"
    assert [feed.subscriber.unverified for feed in found.feeds] == [False, False]
    assert [feed.subscriber.position.get("without", []) for feed in found.feeds] == [[], [gone]]
    assert list(json.loads(rooms.catalog.queries.get(query_id).start_position)) == ["sources"]


def test_a_view_over_a_join_whose_refresh_has_failed_is_built_by_restart(
    rooms: Rooms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As REFRESH would have done it, also where one of the sources has lost something."""
    engine, (_, query_id) = rooms.engine, _query_of(rooms, "joined")
    gone = _lose_a_file(rooms, tmp_path)
    with monkeypatch.context() as patched:

        def fail(clean_up: OrphanCleanUp, known: RunningQuery) -> None:
            clean_up._leave_sources(known)
            raise SqlError("58030", "the disk is full")

        patched.setattr(OrphanCleanUp, "drop", fail)
        with pytest.raises(SqlError, match="the disk is full"):
            engine.refresh(query_id)
    assert engine.status(query_id).state is QueryState.FAILED
    engine.restart(query_id)
    _assert_rebuilt_without(rooms, gone)


@pytest.mark.parametrize("step", ["drop_state", "create_state"])
def test_a_refresh_that_failed_is_carried_out_by_the_next_server(
    folder: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise SqlError("58030", "the disk is full")

    with opened_rooms(folder, monkeypatch) as rooms:
        gone = _lose_a_file(rooms, folder)
        with monkeypatch.context() as patched:
            patched.setattr(Writer, step, fail)
            with pytest.raises(SqlError, match="the disk is full"):
                rooms.engine.refresh(_query_of(rooms, "joined")[1])
    with opened_rooms(folder, monkeypatch) as rooms:
        _assert_rebuilt_without(rooms, gone)


def test_who_asks_for_a_view_that_is_being_made_waits_for_it(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = rooms.engine
    _, query_id = _query_of(rooms, "keyed")
    found = engine._queries.pop(query_id)
    begun = threading.Event()

    def make() -> None:
        with engine._queries.changing():
            begun.set()
            time.sleep(0.2)
            engine._queries.put(found)

    maker = threading.Thread(target=make)
    maker.start()
    begun.wait(10)
    assert engine.status(query_id).state is not QueryState.TERMINATED
    maker.join()
