"""Views are looked up while a statement waits for threads to end, and no thread is joined while a look would wait."""

from __future__ import annotations

import threading
import time

import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.server import Rooms
from mvserver.streaming.api import QueryState
from mvserver.streaming.pipeline.pipeline import Pipeline

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
