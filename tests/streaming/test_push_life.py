"""The push queries of a server: how many, what ends them, and that a pipeline made for them goes with the last one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver import limits
from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.pipeline import Pipeline
from mvserver.streaming.push.push import PushQueries
from mvserver.streaming.push.push_rows import PushRows
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from tests.streaming.states import target, writer_in

WITHIN_S = 10.0


class FakePipeline:
    def __init__(self, pipeline_id: str) -> None:
        self.id = pipeline_id
        self.members: dict[str, Any] = {}
        self.may_stop = threading.Event()
        self.stopped = threading.Event()

    def add(self, subscriber: Any) -> None:
        self.members[subscriber.query_id] = subscriber

    def remove(self, query_id: str) -> None:
        self.members.pop(query_id, None)

    @property
    def subscribers(self) -> list[Any]:
        return list(self.members.values())

    def stop(self) -> None:
        assert self.may_stop.wait(WITHIN_S)
        self.stopped.set()


class World:
    def __init__(self, folder: Path, writer: Any) -> None:
        self.relation = SimpleNamespace(id="r1", schema_id="s", name="clicks", kind="stream")
        self.store = SimpleNamespace(id="s1", name="k", updated_at=1.0)
        self.relations, self.stores = {"r1": self.relation}, {"s1": self.store}
        catalog = SimpleNamespace(
            relations=SimpleNamespace(
                by_id=self.relations.get, find=lambda *_: next(iter(self.relations.values()), None)
            ),
            stores=SimpleNamespace(by_id=self.stores.get),
        )
        self.writer, self.folder = writer, folder
        self.pipeline = FakePipeline("p9")
        (folder / "p9").mkdir()
        with writer.transaction() as ledger:
            ledger.begin_generation("p9", {"at": 3})
        self.pipelines: dict[str, Any] = {"p9": self.pipeline}
        self.pushes = PushQueries(threading.RLock(), cast(Any, catalog), writer, folder, self.pipelines)

    def open(self) -> PushRows:
        self.pushes.check_room()
        source = cast(Any, (SimpleNamespace(**vars(self.store)), self.relation))
        return self.pushes.open(target("SELECT k FROM events").plan, {"at": 3}, source, cast(Pipeline, self.pipeline))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with writer_in(tmp_path) as (_, writer):
        made = World(tmp_path, writer)
        yield made
        made.pipeline.may_stop.set()


def error_of(rows: PushRows) -> tuple[str, str]:
    with pytest.raises(SqlError) as caught:
        rows.take()
    return caught.value.sqlstate, caught.value.message


def test_a_subscriber_that_is_not_kept(world: World) -> None:
    world.open()
    (subscriber,) = world.pipeline.subscribers
    assert (subscriber.kept, subscriber.filled, subscriber.policy) == (False, True, ErrorHandling.IGNORE)
    assert world.writer.ledger_subscribers() == []


def test_the_pipeline_ends_with_the_last_query_and_nobody_waits_for_that(world: World) -> None:
    first, second = world.open(), world.open()
    first.close()
    assert "p9" in world.pipelines
    second.close()
    assert (world.pipeline.subscribers, world.pipelines) == ([], {})
    assert not world.pipeline.stopped.is_set()
    waiter = threading.Thread(target=world.pushes.wait_ended, args=("p9",))
    waiter.start()
    waiter.join(0.05)
    assert waiter.is_alive()  # who needs the same source waits until it is free
    world.pipeline.may_stop.set()
    waiter.join(WITHIN_S)
    assert not waiter.is_alive()
    assert world.writer.pipeline_position("p9") is None
    assert not (world.folder / "p9").exists()
    world.pushes.wait_ended("p9")


def test_a_pipeline_with_views_stays(world: World) -> None:
    world.pipeline.members["view"] = object()
    world.open().close()
    assert world.pipelines == {"p9": world.pipeline}
    assert world.writer.pipeline_position("p9") == {"at": 3}


def test_how_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUSH_QUERIES_MAX", 2)
    first, _ = world.open(), world.open()
    with pytest.raises(SqlError) as caught:
        world.open()
    assert (caught.value.sqlstate, caught.value.message) == (
        "53400",
        "the server runs at most 2 push queries at a time",
    )
    first.close()
    world.open()


def test_a_dropped_stream_and_a_changed_store_end_it(world: World) -> None:
    rows = world.open()
    world.pushes.reconcile()
    assert not rows.wait(0.0)
    world.store.updated_at = 2.0
    world.pushes.reconcile()
    assert error_of(rows) == ("55000", 'store "k" was changed')
    rows.close()  # its client comes later
    world.pipelines["p9"] = world.pipeline
    rows = world.open()
    del world.relations["r1"]
    world.pushes.reconcile()
    assert error_of(rows) == ("42P01", 'stream "clicks" was dropped')
    assert world.pipeline.subscribers == []


def test_a_replaced_stream_ends_it(world: World) -> None:
    rows = world.open()
    world.relations["r2"] = world.relations.pop("r1")
    world.pushes.reconcile()
    assert error_of(rows) == ("55000", 'stream "clicks" was replaced')


def test_shutdown_ends_all_and_begins_none(world: World) -> None:
    rows = [world.open(), world.open()]
    world.pushes.end_all(SqlError("57P01", "terminating connection due to administrator command"))
    assert [error_of(each)[0] for each in rows] == ["57P01", "57P01"]
    with pytest.raises(SqlError, match="57P01"):
        world.open()


def test_a_crash_leaves_a_pipeline_that_the_next_start_finds(world: World) -> None:
    with world.writer.transaction() as ledger:
        ledger.begin_generation("p1", {"at": 0})
        ledger.add_subscriber("q", 1, "p1", {"at": 0})
        ledger.advance(LedgerEntry("p9", 1, 0, {"at": 3}, {"at": 4}, 1))
    with world.writer.transaction() as ledger:
        assert set(ledger.unused_pipelines()) - {"p"} == {"p9"}
        ledger.drop_pipeline("p9")
    assert world.writer.pipeline_position("p9") is None
