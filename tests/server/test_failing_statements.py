"""Statements that fail in the file of the views: a view keeps its rows, a query goes on or says why not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.server import Rooms
from mvserver.streaming.api import QueryState
from spark_sinks.duckdb.writer import Writer

FULL = duckdb.IOException("IO Error: Could not write file: No space left on device")
AWAY = SqlError(sqlstates.CONNECTION_FAILURE, 'could not connect to store "local"')


def running(rooms: Rooms, name: str) -> Any:
    (view,) = [each for each in rooms.catalog.relations.all() if each.name == name]
    (query,) = [each for each in rooms.catalog.queries.all() if each.sink_id == view.id]
    return rooms.engine._queries.get(query.id)  # type: ignore[attr-defined]


def rows(rooms: Rooms, known: Any) -> list[tuple[Any, ...]]:
    with rooms.writer.read_cursor() as cursor:
        return sorted(cursor.execute(f'SELECT * FROM "_views"."{known.query.sink_id}"').fetchall(), key=repr)


@pytest.mark.parametrize(("name", "cause"), [("keyed", FULL), ("keyed", AWAY), ("joined", AWAY)])
def test_the_view_stays_as_it_was(rooms: Rooms, name: str, cause: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    known = running(rooms, name)
    before, version = rows(rooms, known), known.query.definition_version
    assert before
    with monkeypatch.context() as patched:
        failing(cause, known, patched)
        with pytest.raises(type(cause)):
            rooms.engine.refresh(known.query.id)
    for _ in range(2):
        known = running(rooms, name)
        members = [known.subscriber, *(feed.subscriber for feed in known.feeds)]
        pipelines = [known.pipeline, *(feed.pipeline for feed in known.feeds)]
        assert all(member in pipeline.subscribers for member, pipeline in zip(members, pipelines, strict=True))
        assert rows(rooms, known) == before
        assert rooms.catalog.queries.get(known.query.id).definition_version == version
        rooms.engine.reconcile()  # as any other statement does
    rooms.engine.refresh(known.query.id)
    assert rows(rooms, running(rooms, name)) == []


def test_an_error_behind_the_commit_leaves_the_new_view(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    known = running(rooms, "keyed")
    version, transaction = known.query.definition_version, Writer.transaction

    @contextmanager
    def failing_behind(writer: Writer) -> Iterator[Any]:
        with transaction(writer) as ledger:
            yield ledger
        raise FULL

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "transaction", failing_behind)
        with pytest.raises(duckdb.IOException):
            rooms.engine.refresh(known.query.id)
    known = running(rooms, "keyed")
    assert known.subscriber in known.pipeline.subscribers
    assert (known.subscriber.version, known.query.definition_version) == (version + 1, version + 1)
    assert rows(rooms, known) == []


@pytest.mark.parametrize("step", ["drop_state", "create_state"])
def test_a_join_that_cannot_be_built_says_why_and_is_built_by_restart(
    rooms: Rooms, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = running(rooms, "joined")

    def fail(*_: Any) -> Any:
        raise FULL

    with monkeypatch.context() as patched:
        patched.setattr(Writer, step, fail)
        with pytest.raises(duckdb.IOException):
            rooms.engine.refresh(known.query.id)
    status = rooms.engine.status(known.query.id)
    assert (status.state, "No space left" in (status.error or "")) == (QueryState.FAILED, True)
    rooms.engine.restart(known.query.id)
    assert running(rooms, "joined").subscriber in running(rooms, "joined").pipeline.subscribers


def failing(cause: Exception, known: Any, patched: pytest.MonkeyPatch) -> None:
    """The views' file, or what the view reads."""

    def fail(*_: Any) -> Any:
        raise cause

    if cause is FULL:
        patched.setattr(Writer, "create_state", fail)
        return
    for pipeline in {known.pipeline, *(feed.pipeline for feed in known.feeds)}:
        patched.setattr(pipeline.reader.health, "remaining", fail)


def test_what_read_for_a_view_that_could_not_be_dropped_goes_with_the_next_statement(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody would ever stop it, and a source would keep its history for it."""
    over_users = [running(rooms, name) for name in ("changed", "regions", "oldest")]
    (pipeline_id,) = {known.pipeline.id for known in over_users}
    with rooms.catalog.transaction():
        for known in over_users:
            rooms.catalog.queries.delete(known.query.id)

    def fail(*_: Any) -> Any:
        raise FULL

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "drop_state", fail)
        for _ in over_users:
            with pytest.raises(duckdb.IOException):
                rooms.engine.reconcile()
    rooms.engine.reconcile()
    assert pipeline_id not in {each.id for each in rooms.engine._sources.all()}  # type: ignore[attr-defined]
    rooms.engine.reconcile()
    assert rooms.writer.pipeline_position(pipeline_id) is None
