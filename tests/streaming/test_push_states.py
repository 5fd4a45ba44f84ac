"""Push queries with a state: what is made for one, what ends it, and that nothing of it is left."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver import limits
from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import ContinuousPlan, ErrorHandling
from mvserver.errors import SqlError
from mvserver.sql.dialect import parse_select
from mvserver.streaming.pipeline.held_history import EndedReaders
from mvserver.streaming.pipeline.pipeline import PipelineServices
from mvserver.streaming.push.push_outbox import OutboxRows
from mvserver.streaming.push.push_states import PushStates
from mvserver.streaming.queries.derived import DerivedSources
from mvserver.streaming.queries.held_histories import HeldHistories
from mvserver.streaming.queries.orphan_clean_up import OrphanCleanUp
from mvserver.streaming.spark.session import SparkGate
from mvserver.views.finishing import layout_of
from spark_sinks.duckdb.joins.interval_joins import IntervalTables
from tests.streaming.states import RELATION, writer_in

WITHIN_S = 10.0
GROUPS = "SELECT k, count(*) AS c FROM events GROUP BY k"
JOIN = "SELECT a.k FROM events AS a JOIN events AS b WITHIN 5 SECONDS ON a.k = b.k"


class FakePipeline:
    """One whose batches are not read."""

    def __init__(self) -> None:
        self.id = "source"
        self.reader = SimpleNamespace(adopt=lambda position, fresh: position)
        self.members: dict[str, Any] = {}

    def add(self, subscriber: Any) -> None:
        self.members[subscriber.query_id] = subscriber

    def remove(self, query_id: str) -> None:
        self.members.pop(query_id, None)

    def fail(self, subscriber: Any, error: SqlError) -> None:
        subscriber.fail(error)

    def ask_end(self) -> int:
        return 1

    def confirmed_at(self, subscriber: Any) -> float:
        return time.time()


class Sources:
    """``streaming.queries.source_pipelines.SourcePipelines`` over one entity."""

    def __init__(self, pipelines: dict[str, Any]) -> None:
        self.pipeline = FakePipeline()
        self._pipelines = pipelines

    def of_source(self, store: Any, stream: Any, plan: Any) -> tuple[Any, bool]:
        return self.pipeline, True

    def of_scan(self, scan: Any) -> tuple[Any, bool]:
        return self.pipeline, True

    def begin(self, pipeline: Any, start: Any, *, fresh: bool) -> Any:
        return pipeline.reader.adopt(start, fresh=fresh)

    def start(self, pipeline: Any) -> None:
        pass

    def leave(self, pipeline: Any, relation_id: str) -> None:
        self._pipelines.pop(pipeline.id, None)

    def is_in_use(self, pipeline_id: str) -> bool:
        return pipeline_id == "source"


class World:
    def __init__(self, folder: Path, writer: Any) -> None:
        self.relation = SimpleNamespace(id="r1", schema_id="s", name="events", kind="stream", store_id="s1")
        self.store = SimpleNamespace(id="s1", name="k", updated_at=1.0)
        self.relations, self.stores = {"r1": self.relation}, {"s1": self.store}
        catalog = SimpleNamespace(
            relations=SimpleNamespace(
                by_id=self.relations.get, find=lambda *_: next(iter(self.relations.values()), None)
            ),
            stores=SimpleNamespace(by_id=self.stores.get),
        )
        services = cast(
            Any,
            SimpleNamespace(
                catalog=catalog,
                writer=writer,
                work_directory=folder,
                stored=lambda relation_id: (SimpleNamespace(**vars(self.store)), self.relation),
                relation=self.relations.__getitem__,
            ),
        )
        pipeline_services = PipelineServices(
            writer, SparkGate(), cast(Any, lambda given_up: None), folder, 1_000, lambda query_ids: None
        )
        self.writer = writer
        self.pipelines: dict[str, Any] = {}
        self.sources = cast(Any, Sources(self.pipelines))
        histories = HeldHistories(services)
        ended = EndedReaders(writer, histories.left)
        self.sweeping = OrphanCleanUp(services, self.sources, histories, ended)
        derived = DerivedSources(pipeline_services, self.pipelines, self.sources.of_scan)
        self.states = PushStates(threading.RLock(), services, self.sources, derived, self.sweeping)

    def open(self, sql: str) -> OutboxRows:
        plan = plan_of(sql)
        start: Any = {"at": 3} if plan.scan.derived is None else {"sources": [{"at": 3}, {"at": 3}]}
        return self.states.open(plan, json.dumps(start))

    @property
    def members(self) -> list[Any]:
        return list(self.sources.pipeline.members.values())

    @property
    def left(self) -> list[str]:
        """What there is in DuckDB."""
        writer = self.writer
        rows = [row.query_id for row in writer.ledger_subscribers()]
        return [*writer.state_tables(), *writer.view_ids(), *rows]


def plan_of(sql: str) -> ContinuousPlan:
    return compile_select(parse_select(sql), lambda parts, position: RELATION, default_starting="earliest")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with writer_in(tmp_path) as (_, writer):
        yield World(tmp_path, writer)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def error_of(rows: OutboxRows) -> tuple[str, str]:
    with pytest.raises(SqlError) as caught:
        rows.take()
    return caught.value.sqlstate, caught.value.message


@pytest.mark.parametrize(("sql", "members", "pipelines"), [(GROUPS, 1, 0), (JOIN, 2, 1)])
def test_it_runs_as_a_view_does_and_goes_with_its_client(world: World, sql: str, members: int, pipelines: int) -> None:
    rows = world.open(sql)
    assert (len(world.members), len(world.pipelines)) == (members, pipelines)
    assert {each.policy for each in world.members} == {ErrorHandling.IGNORE}
    (query_id,) = world.states.queries
    assert all(name.startswith(query_id) for name in world.left)
    world.sweeping.sweep(world.states.queries)
    assert f"{query_id}_1_outbox" in world.left
    rows.close()
    until(lambda: world.left == [])
    assert (world.members, world.pipelines, len(world.states)) == ([], {}, 0)
    until(lambda: world.states.queries == {})


def test_what_a_crash_leaves_is_swept(world: World) -> None:
    world.open(GROUPS)
    world.open(JOIN)
    assert world.left != []
    world.sweeping.sweep({})  # as at a start: nobody claims it
    assert world.left == []


def test_how_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUSH_STATES_MAX", 1)
    first = world.open(GROUPS)
    with pytest.raises(SqlError, match="53400: the server runs at most 1 push queries with aggregates"):
        world.open(JOIN)
    first.close()
    until(lambda: world.left == [])
    until(lambda: world.states.queries == {})
    world.open(JOIN)


def test_what_ends_it(world: World) -> None:
    rows = world.open(GROUPS)
    world.states.reconcile()
    assert not rows.wait(0.0)
    world.store.updated_at = 2.0
    world.states.reconcile()
    assert error_of(rows) == ("55000", 'store "k" was changed')
    assert world.members == []
    rows = world.open(JOIN)
    del world.relations["r1"]
    world.states.reconcile()
    assert error_of(rows) == ("42P01", 'stream "events" was dropped')
    world.relations["r1"] = world.relation
    rows = world.open(JOIN)
    world.members[0].fail(SqlError("22012", "division by zero"))
    assert error_of(rows) == ("22012", "division by zero")
    rows = world.open(GROUPS)
    world.states.end_all(SqlError("57P01", "terminating connection due to administrator command"))
    assert error_of(rows)[0] == "57P01"


def test_a_state_that_becomes_too_large_ends_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUSH_STATE_ROWS_MAX", 2)
    monkeypatch.setattr("mvserver.streaming.push.push_states._MEASURED_EVERY_S", 0.0)
    rows = world.open(GROUPS)
    (member,) = world.members
    with world.writer.transaction():
        world.writer.execute(
            f'INSERT INTO "_state"."{member.target.state.table}" SELECT i::VARCHAR, 1 FROM range(3) AS r(i)'
        )
    world.states.committed(["another"])
    assert world.members == [member]
    world.states.committed([member.query_id])
    assert error_of(rows)[0] == "53400"
    assert world.members == []


def test_a_commit_does_not_mind_that_its_client_has_gone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables may go between the commit and the look at them."""
    monkeypatch.setattr("mvserver.streaming.push.push_states._MEASURED_EVERY_S", 0.0)
    world.open(GROUPS)
    (member,) = world.members
    with world.writer.transaction():
        world.writer.drop_state(layout_of(member.target).tables, member.target.view_id)
    world.states.committed([member.query_id])
    assert world.members == [member]


def test_nothing_of_its_last_batch_is_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is committed while it is taken away."""
    rows = world.open(GROUPS)
    pipeline, remove = world.sources.pipeline, world.sources.pipeline.remove

    def last_batch(query_id: str) -> None:
        with world.writer.transaction():
            world.writer.execute(f"INSERT OR REPLACE INTO \"_ledger\".windows VALUES ('{query_id}', 1, 2)")
        remove(query_id)

    monkeypatch.setattr(pipeline, "remove", last_batch)
    rows.close()
    until(lambda: world.states.queries == {})
    assert (world.left, world.writer.window_progress()) == ([], {})


def test_a_joins_condition_that_fails_when_a_side_becomes_idle_ends_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing comes any more: a look lets the rows go that waited, and meets the error that a batch would."""
    rows = world.open(JOIN.replace("events AS b", "events AS b WITH ('source.idle.timeout.millis' = 1)"))
    (log,) = world.pipelines.values()
    failing = ["SELECT error('mvserver:22012:division by zero')"]
    monkeypatch.setattr(IntervalTables, "close_statements", lambda tables: failing)
    assert not rows.wait(0.0)

    def ended() -> bool:
        log.reader._look()
        return rows.wait(0.0)

    until(ended)
    assert error_of(rows) == ("22012", "division by zero")
