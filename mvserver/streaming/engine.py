"""The streaming engine: what the catalog says should run, runs.

Handlers write the catalog first and then call :meth:`Engine.reconcile`, which compares the queries of the catalog with
those that run and acts on the difference: states are made or dropped in DuckDB at once, pipelines start when Spark is
up. The same comparison at start is the recovery.
"""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from catalog.model import Query, Relation, Store
from catalog.store import Catalog
from mvserver import sqlstates
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.streaming.api import PipelineStatus, PresentEnds, QueryState, QueryStatus
from mvserver.streaming.check import check_plan
from mvserver.streaming.csas import SinkQuery, SinkServices, TransactionalSink
from mvserver.streaming.freshness import KeptView, SourceEnds
from mvserver.streaming.pipeline import HEALTH_INTERVAL_S, Pipeline, PipelineServices
from mvserver.streaming.session_starter import SessionStarter
from mvserver.streaming.spark import SparkGate, SparkOptions
from mvserver.streaming.status import (
    pipeline_status,
    sink_pipeline_status,
    unavailable,
    view_status,
    wait_filled,
)
from mvserver.streaming.subscribers import Subscriber
from mvserver.streaming.targets import build_target
from spark_sinks.base import SourceReader, StoreClient
from spark_sinks.duckdb.ledger import SubscriberRow
from spark_sinks.duckdb.state import main_table
from spark_sinks.duckdb.writer import Writer

_log = logging.getLogger(__name__)
_NAMESPACE = uuid.UUID("6a1f9f0e-5a0c-4b7e-9a52-0d2a5b1c6e11")  # of pipeline ids, which are derived


class Stores(Protocol):
    """How the engine reaches stores."""

    def client(self, store: Store) -> StoreClient: ...

    def reader(self, store: Store, stream: Relation, plan: ContinuousPlan, work: Path) -> SourceReader: ...

    def sink(self, store: Store, stream: Relation, query_id: str) -> Callable[[], TransactionalSink]:
        """How the query's sink is opened, anew at each start."""


@dataclass(frozen=True)
class EngineServices:
    catalog: Catalog
    compile_query: Callable[[Query], ContinuousPlan]
    stores: Stores
    writer: Writer
    spark: SparkOptions
    data_directory: Path
    records_per_trigger: int
    views_changed: Callable[[Sequence[str]], None] = lambda view_ids: None
    reached: Callable[[str], None] = lambda step: None
    health_interval_s: float = HEALTH_INTERVAL_S


@dataclass
class _Running:
    """A continuous query as it runs; ``pipeline`` is None where it could not even be set up."""

    query: Query
    pipeline: Pipeline | None = None
    subscriber: Subscriber | None = None
    sink: SinkQuery | None = None
    broken: str | None = None
    store_versions: tuple[float, ...] = ()


class Engine:
    def __init__(self, services: EngineServices) -> None:
        self._services = services
        self._lock = threading.RLock()
        self._running: dict[str, _Running] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._starter = SessionStarter(services.spark)
        self._gate = SparkGate()
        self._work = services.data_directory / "sources"
        self._pipeline_services = PipelineServices(
            writer=services.writer,
            gate=self._gate,
            session=self._starter.session,
            work_directory=self._work,
            records_per_trigger=services.records_per_trigger,
            committed=self._committed,
            reached=services.reached,
            health_interval_s=services.health_interval_s,
        )

    # --- life -------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Takes up what the catalog says; Spark starts in the background."""
        self._starter.start()
        self.reconcile()

    def stop(self) -> None:
        """No new batches, what was evaluated is committed, Spark ends."""
        with self._lock:
            pipelines = list(self._pipelines.values())
            sinks = [r.sink for r in self._running.values() if r.sink is not None]
        stops = [*(pipeline.stop for pipeline in pipelines), *(sink.stop for sink in sinks)]
        threads = [threading.Thread(target=stop) for stop in stops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._starter.stop()

    # --- StreamingEngine --------------------------------------------------------------------------------------------
    def reconcile(self) -> None:
        with self._lock:
            wanted = {query.id: query for query in self._services.catalog.queries.all()}
            for query_id in [q for q in self._running if q not in wanted]:
                self._drop(self._running.pop(query_id))
            rows = {row.query_id: row for row in self._services.writer.ledger_subscribers()}
            for query in wanted.values():
                known = self._running.get(query.id)
                if known is None:
                    self._running[query.id] = self._adopt(query, rows.get(query.id))
                elif self._store_changed(query, known):
                    self._renew(query)
                elif query.desired_state == "terminated" and known.query.desired_state != "terminated":
                    self._terminate(known)
                elif query.desired_state == "running" and known.query.desired_state == "terminated":
                    self._run_again(known, skip_rejected=False)
                self._running[query.id].query = query
            self._sweep(wanted)

    def restart(self, query_id: str, *, skip_rejected: bool = False) -> None:
        with self._lock:
            known = self._known(query_id)
            if known.query.desired_state == "terminated":
                with self._services.catalog.transaction():
                    self._services.catalog.queries.set_desired_state(query_id, "running")
            query = self._services.catalog.queries.get(query_id)
            if known.pipeline is None and known.sink is None:
                row = next((r for r in self._services.writer.ledger_subscribers() if r.query_id == query_id), None)
                self._running[query_id] = self._adopt(query, row)
                return
            self._run_again(known, skip_rejected=skip_rejected)
            known.query = query

    def refresh(self, query_id: str) -> None:
        """A new definition version with an empty state, read again from what the source still has."""
        with self._lock:
            known = self._known(query_id)
            if known.subscriber is None or known.pipeline is None:
                raise SqlError(
                    sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "the view's query could not be set up",
                    detail=known.broken,
                    hint=f"Mend the cause, then RESTART QUERY {query_id}.",
                )
            reader = known.pipeline.reader
            first = reader.adopt(json.loads(known.query.start_position), fresh=False)
            position, note = reader.remaining(first)
            version = known.query.definition_version + 1
            with self._services.catalog.transaction():
                self._services.catalog.queries.set_start(query_id, known.query.start_position, version)
            query = self._services.catalog.queries.get(query_id)
            known.pipeline.remove(query_id)
            old = known.subscriber.target
            target = build_target(query_id, old.view_id, version, old.plan)
            with self._services.writer.transaction() as ledger:
                self._services.writer.create_state(target.state, target.view_statement)
                self._services.writer.drop_state(old.state.tables, None)
                ledger.add_subscriber(query_id, version, known.pipeline.id, position, note)
            subscriber = Subscriber(target, version, position, target.plan.scan.error_handling, note=note)
            known.query, known.subscriber = query, subscriber
            known.pipeline.add(subscriber)

    def status(self, query_id: str) -> QueryStatus:
        with self._lock:
            known = self._running.get(query_id)
            if known is None:
                raise SqlError(sqlstates.UNDEFINED_OBJECT, f'query "{query_id}" does not exist')
            return self._status(known)

    def statuses(self) -> Sequence[QueryStatus]:
        with self._lock:
            return [self._status(known) for known in self._running.values()]

    def resolve_position(self, store: Store, entity: str, starting: str) -> str:
        return json.dumps(self._services.stores.client(store).position(entity, starting), sort_keys=True)

    def wait_until_ready(self, timeout_s: float) -> None:
        self._starter.wait(timeout_s)

    def wait_while_filling(self, view_ids: Sequence[str], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        for view_id in view_ids:
            known = self._of_view(view_id)
            if known is not None:
                if known.subscriber is None or known.pipeline is None:
                    raise unavailable(known.query.id, known.broken or "its query could not be set up")
                wait_filled(known.query.id, known.subscriber, known.pipeline, deadline)

    def present_ends(self, view_ids: Sequence[str]) -> PresentEnds:
        return SourceEnds([partial(self._kept, view_id) for view_id in view_ids])

    def confirmed_at(self, view_ids: Sequence[str]) -> float | None:
        kept = [found for found in map(self._kept, view_ids) if found is not None]
        moments = [view.confirmed_at() for view in kept]
        known = [moment for moment in moments if moment is not None]
        return min(known, default=None) if len(known) == len(moments) else None

    def pipelines(self) -> Sequence[PipelineStatus]:
        """What reads the sources now; a query that could not be set up reads nothing."""
        with self._lock:
            running, spark = list(self._running.values()), self._starter.problem_or_none()
        found: dict[str, PipelineStatus] = {}
        for known in running:
            source_id = known.query.source_ids[0]
            if known.sink is not None:
                status = known.sink.status()
                found[known.query.id] = sink_pipeline_status(status, source_id, known.sink.generation)
            elif known.pipeline is not None and known.pipeline.id not in found:
                found[known.pipeline.id] = pipeline_status(known.pipeline, source_id, spark)
        return list(found.values())

    def check_plan(self, plan: object) -> None:
        check_plan(self._starter.session(), plan)

    # --- changed stores -----------------------------------------------------------------------------------------------
    def _store_changed(self, query: Query, known: _Running) -> bool:
        return known.store_versions != self._store_versions(query)

    def _store_versions(self, query: Query) -> tuple[float, ...]:
        """When the stores of its source and sink were last changed: their properties are in every connection."""
        ids = [self._relation(relation_id).store_id for relation_id in (*query.source_ids, query.sink_id)]
        stores = [self._services.catalog.stores.by_id(store_id) for store_id in ids if store_id is not None]
        return tuple(store.updated_at for store in stores if store is not None)

    def _renew(self, query: Query) -> None:
        """Stops what reads through the old properties and takes it up again; the ledger makes that exact."""
        old = self._running[query.id]
        if old.sink is not None:
            old.sink.stop()
        if old.pipeline is not None and self._pipelines.get(old.pipeline.id) is old.pipeline:
            del self._pipelines[old.pipeline.id]
            old.pipeline.stop()
        row = next((r for r in self._services.writer.ledger_subscribers() if r.query_id == query.id), None)
        self._running[query.id] = self._adopt(query, row)

    # --- one query --------------------------------------------------------------------------------------------------
    def _adopt(self, query: Query, row: SubscriberRow | None) -> _Running:
        running = _Running(query)
        try:
            running.store_versions = self._store_versions(query)
            if query.kind == "materialized_view":
                self._adopt_view(running, row)
            else:
                self._adopt_sink(running)
        except SqlError as error:
            _log.warning("query %s cannot be set up: %s", query.id, error)
            running.broken = str(error)
        return running

    def _adopt_view(self, running: _Running, row: SubscriberRow | None) -> None:
        query = running.query
        plan = self._services.compile_query(query)
        view = self._relation(query.sink_id)
        target = build_target(query.id, view.id, query.definition_version, plan)
        pipeline, fresh = self._pipeline(query, plan)
        writer = self._services.writer
        if row is not None and row.version == query.definition_version and writer.has_state(target.state):
            subscriber = Subscriber(
                target, row.version, row.position, plan.scan.error_handling,
                filled=row.filled, failure=row.failure, note=row.note, epoch=row.epoch,
            )  # fmt: skip
            with writer.transaction():
                writer.execute(target.view_statement)  # its text may have changed with the version of the server
        else:
            position = pipeline.reader.adopt(json.loads(query.start_position), fresh=fresh)
            with writer.transaction() as ledger:
                writer.create_state(target.state, target.view_statement)
                ledger.add_subscriber(query.id, query.definition_version, pipeline.id, position)
            # Either new, or its state was lost: then the source must still have all that it was made of.
            subscriber = Subscriber(
                target, query.definition_version, position, plan.scan.error_handling, unverified=True
            )
        subscriber.terminated = query.desired_state == "terminated"
        running.pipeline, running.subscriber = pipeline, subscriber
        pipeline.add(subscriber)
        if fresh or not pipeline.started:
            known = writer.pipeline_position(pipeline.id)
            pipeline.start(known)

    def _adopt_sink(self, running: _Running) -> None:
        query = running.query
        plan = self._services.compile_query(query)
        store, stream = self._source(query)
        sink_stream = self._relation(query.sink_id)
        sink_store = self._services.catalog.stores.by_id(sink_stream.store_id or "")
        if sink_store is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'stream "{sink_stream.name}" has no store')
        services = SinkServices(
            session=self._starter.session,
            gate=self._gate,
            writer=self._services.writer,
            work_directory=self._work,
            records_per_trigger=self._services.records_per_trigger,
            reached=self._services.reached,
            health_interval_s=self._services.health_interval_s,
        )
        work = self._work / query.id
        reader = self._services.stores.reader(store, stream, plan, work)
        sink = self._services.stores.sink(sink_store, sink_stream, query.id)
        running.sink = SinkQuery(query, plan, reader, sink, services)
        if query.desired_state != "terminated":
            running.sink.start()

    def _pipeline(self, query: Query, plan: ContinuousPlan) -> tuple[Pipeline, bool]:
        """The pipeline of the query's source, and whether nothing has been read by it yet."""
        store, stream = self._source(query)
        entity = stream.entity or ""
        # A Parquet file is typed by its reader: each relation over it needs a scan of its own.
        own = stream.id if plan.scan.value_format == "parquet" else ""
        pipeline_id = str(uuid.uuid5(_NAMESPACE, f"{store.id}/{entity}/{own}"))
        found = self._pipelines.get(pipeline_id)
        if found is not None:
            return found, False
        reader = self._services.stores.reader(store, stream, plan, self._work / pipeline_id)
        pipeline = Pipeline(pipeline_id, reader, self._pipeline_services)
        self._pipelines[pipeline_id] = pipeline
        return pipeline, self._services.writer.pipeline_position(pipeline_id) is None

    def _drop(self, known: _Running) -> None:
        if known.sink is not None:
            known.sink.stop()
            shutil.rmtree(self._work / known.query.id, ignore_errors=True)
        with self._services.writer.transaction() as ledger:
            ledger.drop_subscriber(known.query.id)
        if known.subscriber is None or known.pipeline is None:
            return
        pipeline = known.pipeline
        pipeline.remove(known.query.id)
        with self._services.writer.transaction():
            self._services.writer.drop_state(known.subscriber.target.state.tables, known.subscriber.target.view_id)
        relation_id = known.subscriber.target.plan.scan.relation_id
        left = pipeline.subscribers
        if not left:
            pipeline.stop()
            del self._pipelines[pipeline.id]
            shutil.rmtree(self._work / pipeline.id, ignore_errors=True)
        with self._services.writer.transaction() as ledger:
            if not left:
                ledger.drop_pipeline(pipeline.id)
            if all(s.target.plan.scan.relation_id != relation_id for s in left):
                ledger.drop_rejected(relation_id)

    def _terminate(self, known: _Running) -> None:
        if known.sink is not None:
            known.sink.stop()
        if known.pipeline is not None:
            known.pipeline.terminate(known.query.id)

    def _run_again(self, known: _Running, *, skip_rejected: bool) -> None:
        if known.sink is not None:
            known.sink.stop()
            known.sink.start()
        if known.pipeline is not None:
            known.pipeline.restart_subscriber(known.query.id, skip_rejected=skip_rejected)

    def _sweep(self, wanted: Mapping[str, Query]) -> None:
        """What a statement that was cut off left behind: states of views that the catalog does not have."""
        writer = self._services.writer
        versions = {f"{q.sink_id}_{q.definition_version}" for q in wanted.values() if q.kind == "materialized_view"}
        sinks = {q.sink_id for q in wanted.values()}
        tables = [t for t in writer.state_tables() if main_table(t) not in versions]
        views = [v for v in writer.view_ids() if v not in sinks]
        if tables or views:
            with writer.transaction():
                for view_id in views:
                    writer.drop_state((), view_id)
                writer.drop_state(tables, None)
        rows = [r.query_id for r in writer.ledger_subscribers() if r.query_id not in wanted]
        if rows:
            with writer.transaction() as ledger:
                for query_id in rows:
                    ledger.drop_subscriber(query_id)

    # --- look-ups ---------------------------------------------------------------------------------------------------
    def _known(self, query_id: str) -> _Running:
        known = self._running.get(query_id)
        if known is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'query "{query_id}" does not exist')
        return known

    def _of_view(self, view_id: str) -> _Running | None:
        with self._lock:
            return next((r for r in self._running.values() if r.query.sink_id == view_id), None)

    def _kept(self, view_id: str) -> KeptView | None:
        known = self._of_view(view_id)
        if known is None:
            return None
        return KeptView(
            lambda: self._relation(view_id).name, known.query, known.pipeline, known.subscriber, known.broken
        )

    def _relation(self, relation_id: str) -> Relation:
        found = self._services.catalog.relations.by_id(relation_id)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_TABLE, f"relation {relation_id} does not exist")
        return found

    def _source(self, query: Query) -> tuple[Store, Relation]:
        stream = self._relation(query.source_ids[0])
        store = self._services.catalog.stores.by_id(stream.store_id or "")
        if store is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'stream "{stream.name}" has no store')
        return store, stream

    def _committed(self, query_ids: Sequence[str]) -> None:
        self._services.views_changed(query_ids)

    # --- status -----------------------------------------------------------------------------------------------------
    def _status(self, known: _Running) -> QueryStatus:
        if known.sink is not None:
            return known.sink.status()
        if known.subscriber is None or known.pipeline is None:
            return QueryStatus(known.query.id, QueryState.FAILED, error=known.broken)
        return view_status(known.query.id, known.subscriber, known.pipeline, self._starter.problem_or_none())
