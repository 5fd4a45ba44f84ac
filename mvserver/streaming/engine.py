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

import pyarrow as pa

from catalog.model import Query, Relation, Store
from catalog.store import Catalog
from mvserver import sqlstates
from mvserver.compiler.plans import ContinuousPlan, Projection, Scan
from mvserver.errors import SqlError
from mvserver.streaming.api import LiveRows, PipelineStatus, PresentEnds, QueryState, QueryStatus
from mvserver.streaming.bounded import BoundedReads
from mvserver.streaming.check import check_plan
from mvserver.streaming.csas import SinkQuery, SinkServices, TransactionalSink
from mvserver.streaming.derived import DerivedSource, DerivedSources
from mvserver.streaming.feeds import query_of
from mvserver.streaming.freshness import KeptView, SourceEnds
from mvserver.streaming.outputs import (
    OutputSubscriber,
    keeps_rows,
    output_status,
    relay_of,
    sending,
    view_id_of,
    with_outbox,
)
from mvserver.streaming.pipeline import HEALTH_INTERVAL_S, Pipeline, PipelineServices
from mvserver.streaming.push import PushQueries
from mvserver.streaming.relay import Relay
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
from mvserver.streaming.targets import Target, build_target
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
    derived: DerivedSource | None = None  # what is below it, where its scan is a join
    relay: Relay | None = None  # of a query that writes to a changelog

    def members(self) -> Sequence[Subscriber | SinkQuery]:
        """All of it that may fail."""
        feeds = () if self.derived is None else tuple(feed.subscriber for feed in self.derived.feeds)
        own = (self.subscriber, self.sink)
        return [member for member in (*own, *feeds) if member is not None]


class Engine:
    def __init__(self, services: EngineServices) -> None:
        self._services = services
        self._lock = threading.RLock()
        self._running: dict[str, _Running] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._starter = SessionStarter(services.spark)
        self._gate = SparkGate()
        self._work = services.data_directory / "sources"
        self._bounded = BoundedReads(self._starter.session, self._gate, self._work)
        self._pushes = PushQueries(self._lock, services.catalog, services.writer, self._work, self._pipelines)
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
        self._derived = DerivedSources(self._pipeline_services, self._pipelines, self._scan_pipeline)

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
            relays = [r.relay for r in self._running.values() if r.relay is not None]
        stops = [*(each.stop for each in pipelines), *(each.stop for each in sinks), *(each.stop for each in relays)]
        threads = [threading.Thread(target=stop) for stop in stops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._starter.stop()

    # --- StreamingEngine --------------------------------------------------------------------------------------------
    def reconcile(self) -> None:
        with self._lock:
            self._pushes.reconcile()
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
            self._group_applications()
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
                self._group_applications()
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
            if known.derived is not None:
                self._refresh_derived(known)
                return
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

    def _refresh_derived(self, known: _Running) -> None:
        version = known.query.definition_version + 1
        with self._services.catalog.transaction():
            self._services.catalog.queries.set_start(known.query.id, known.query.start_position, version)
        self._drop(known)
        renewed = _Running(self._services.catalog.queries.get(known.query.id), store_versions=known.store_versions)
        self._running[known.query.id] = renewed
        self._adopt_derived(renewed, self._services.compile_query(renewed.query), rebuilt=True)

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

    def subscribe(self, plan: ContinuousPlan, start_position: str) -> LiveRows:
        with self._lock:
            self._pushes.check_room()
            store, stream = self._read_by(plan.scan.relation_id)
            pipeline, fresh = self._pipeline(store, stream, plan)
            position = pipeline.reader.adopt(json.loads(start_position), fresh=fresh)
            rows = self._pushes.open(plan, position, (store, stream), pipeline)
            self._start(pipeline)
            return rows

    def read_bounded(self, plan: Projection, rows_max: int | None, stopped: Callable[[], bool]) -> pa.Table:
        store, stream = self._read_by(plan.scan.relation_id)
        entity = stream.entity or ""
        start = self.resolve_position(store, entity, plan.scan.starting_position)
        end = self.resolve_position(store, entity, "latest")
        make_reader = partial(self._services.stores.reader, store, stream, plan)
        return self._bounded.read(plan, (start, end), make_reader, rows_max, stopped)

    def end_push_queries(self, error: SqlError) -> None:
        self._pushes.end_all(error)

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
            elif known.derived is not None:
                for pipeline in known.derived.pipelines:
                    found[pipeline.id] = pipeline_status(pipeline, known.query.sink_id, spark)
                for feed in known.derived.leaves:
                    source_id = feed.subscriber.target.plan.scan.relation_id
                    found[feed.pipeline.id] = pipeline_status(feed.pipeline, source_id, spark)
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
        if old.relay is not None:
            old.relay.stop()
        if old.derived is not None:
            self._stop_derived(old, self._store_versions(query))
        elif old.pipeline is not None and self._pipelines.get(old.pipeline.id) is old.pipeline:
            del self._pipelines[old.pipeline.id]
            old.pipeline.stop()
        row = next((r for r in self._services.writer.ledger_subscribers() if r.query_id == query.id), None)
        self._running[query.id] = self._adopt(query, row)

    def _stop_derived(self, old: _Running, versions: Sequence[float]) -> None:
        """Stops its own pipelines, and those of the sources whose stores have changed; the others lose their sides."""
        assert old.derived is not None  # noqa: S101 - asked for one that has it
        stopped = list(old.derived.pipelines)
        for feed, before, now in zip(old.derived.leaves, old.store_versions, versions, strict=False):
            if before != now:
                stopped.append(feed.pipeline)
            else:
                feed.pipeline.remove(feed.subscriber.query_id)
        for pipeline in stopped:
            if self._pipelines.get(pipeline.id) is pipeline:
                del self._pipelines[pipeline.id]
                pipeline.stop()

    # --- one query --------------------------------------------------------------------------------------------------
    def _adopt(self, query: Query, row: SubscriberRow | None) -> _Running:
        running = _Running(query)
        try:
            running.store_versions = self._store_versions(query)
            if keeps_rows(query, self._relation(query.sink_id)):
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
        if plan.scan.derived is not None:
            self._adopt_derived(running, plan)
            return
        sink = self._relation(query.sink_id)
        target = build_target(query.id, view_id_of(query), query.definition_version, plan)
        if view_id_of(query) != sink.id:
            target = with_outbox(target)
            running.relay = self._relay(query, target, sink)
        pipeline, fresh = self._pipeline(*self._source(query), plan)
        writer = self._services.writer
        known = set(target.tables) <= set(writer.state_tables())
        if row is not None and row.version == query.definition_version and known:
            subscriber = OutputSubscriber(
                target, row.version, row.position, plan.scan.error_handling,
                filled=row.filled, failure=row.failure, note=row.note, epoch=row.epoch, relay=running.relay,
            )  # fmt: skip
            with writer.transaction():
                writer.execute(target.view_statement)  # its text may have changed with the version of the server
        else:
            position = pipeline.reader.adopt(json.loads(query.start_position), fresh=fresh)
            with writer.transaction() as ledger:
                writer.create_state(target.state, target.view_statement, target.outbox)
                ledger.add_subscriber(query.id, query.definition_version, pipeline.id, position)
            # Either new, or its state was lost: then the source must still have all that it was made of.
            subscriber = OutputSubscriber(
                target, query.definition_version, position, plan.scan.error_handling, unverified=True,
                relay=running.relay,
            )  # fmt: skip
        subscriber.terminated = query.desired_state == "terminated"
        running.pipeline, running.subscriber = pipeline, subscriber
        pipeline.add(subscriber)
        self._start(pipeline)
        if running.relay is not None:
            running.relay.start()

    def _relay(self, query: Query, target: Target, sink: Relation) -> Relay:
        store, changelog = self._read_by(sink.id)
        open_sink = self._services.stores.sink(store, changelog, query.id)
        return relay_of(target, query, changelog, open_sink, self._services.writer, self._services.reached)

    def _adopt_derived(self, running: _Running, plan: ContinuousPlan, *, rebuilt: bool = False) -> None:
        """Over a join: its sides go to the pipelines of their sources; a pipeline of its own reads what they make."""
        query, sink = running.query, self._relation(running.query.sink_id)
        rows = {row.query_id: row for row in self._services.writer.ledger_subscribers()}
        target = build_target(query.id, view_id_of(query), query.definition_version, plan)
        if view_id_of(query) != sink.id:
            target = with_outbox(target) if keeps_rows(query, sink) else sending(target)
            running.relay = self._relay(query, target, sink)
        made, subscriber = self._derived.attach(query, target, rows, relay=running.relay, rebuilt=rebuilt)
        subscriber.terminated = running.query.desired_state == "terminated"
        running.derived, running.pipeline, running.subscriber = made, made.pipelines[0], subscriber
        made.pipelines[0].add(subscriber)
        for feed in made.feeds:
            feed.pipeline.add(feed.subscriber)
        for pipeline in (*made.pipelines, *(feed.pipeline for feed in made.feeds)):
            self._start(pipeline)
        if running.relay is not None:
            running.relay.start()

    def _scan_pipeline(self, scan: Scan) -> tuple[Pipeline, bool]:
        return self._pipeline(*self._read_by(scan.relation_id), Projection(scan, None, ()))

    def _adopt_sink(self, running: _Running) -> None:
        query = running.query
        plan = self._services.compile_query(query)
        if plan.scan.derived is not None:
            self._adopt_derived(running, plan)
            return
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

    def _start(self, pipeline: Pipeline) -> None:
        if not pipeline.started:
            pipeline.start(self._services.writer.pipeline_position(pipeline.id))

    def _pipeline(self, store: Store, stream: Relation, plan: ContinuousPlan) -> tuple[Pipeline, bool]:
        """The pipeline of a source, and whether nothing has been read by it yet."""
        entity = stream.entity or ""
        # A Parquet file is typed by its reader: each relation over it needs a scan of its own.
        own = stream.id if plan.scan.value_format == "parquet" else ""
        pipeline_id = str(uuid.uuid5(_NAMESPACE, f"{store.id}/{entity}/{own}"))
        found = self._pipelines.get(pipeline_id)
        if found is not None:
            return found, False
        self._pushes.wait_ended(pipeline_id)
        reader = self._services.stores.reader(store, stream, plan, self._work / pipeline_id)
        pipeline = Pipeline(pipeline_id, reader, self._pipeline_services)
        self._pipelines[pipeline_id] = pipeline
        return pipeline, self._services.writer.pipeline_position(pipeline_id) is None

    def _drop(self, known: _Running) -> None:
        if known.relay is not None:
            known.relay.stop()
        if known.sink is not None:
            known.sink.stop()
            shutil.rmtree(self._work / known.query.id, ignore_errors=True)
        feeds = () if known.derived is None else known.derived.feeds
        with self._services.writer.transaction() as ledger:
            for query_id in (known.query.id, *(feed.subscriber.query_id for feed in feeds)):
                ledger.drop_subscriber(query_id)
        if known.subscriber is None or known.pipeline is None:
            return
        for feed in feeds:
            feed.pipeline.remove(feed.subscriber.query_id)
        known.pipeline.remove(known.query.id)
        target = known.subscriber.target
        with self._services.writer.transaction():
            tables = () if known.derived is None else known.derived.tables
            self._services.writer.drop_state((*target.tables, *tables), target.view_id)
        for feed in feeds:
            self._leave(feed.pipeline, feed.subscriber.target.plan.scan.relation_id)
        self._leave(known.pipeline, target.plan.scan.relation_id)

    def _leave(self, pipeline: Pipeline, relation_id: str) -> None:
        """A subscriber has gone: what nobody needs any more goes too."""
        left = pipeline.subscribers
        if not left and self._pipelines.pop(pipeline.id, None) is not None:
            pipeline.stop()
            shutil.rmtree(self._work / pipeline.id, ignore_errors=True)
        with self._services.writer.transaction() as ledger:
            if not left:
                ledger.drop_pipeline(pipeline.id)
            if all(s.target.plan.scan.relation_id != relation_id for s in left if s.kept):
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
        if known.relay is not None:
            known.relay.stop()
            known.relay.start()
        if known.pipeline is not None:
            known.pipeline.restart_subscriber(known.query.id, skip_rejected=skip_rejected)
        for feed in () if known.derived is None else known.derived.feeds:
            feed.pipeline.restart_subscriber(feed.subscriber.query_id, skip_rejected=skip_rejected)

    def _sweep(self, wanted: Mapping[str, Query]) -> None:
        """What a statement that was cut off left behind: states of views that the catalog does not have."""
        writer = self._services.writer
        versions = {f"{view_id_of(q)}_{q.definition_version}" for q in wanted.values()}
        sinks = {view_id_of(q) for q in wanted.values()}
        tables = [t for t in writer.state_tables() if main_table(t) not in versions]
        views = [v for v in writer.view_ids() if v not in sinks]
        if tables or views:
            with writer.transaction():
                for view_id in views:
                    writer.drop_state((), view_id)
                writer.drop_state(tables, None)
        rows = [r.query_id for r in writer.ledger_subscribers() if query_of(r.query_id) not in wanted]
        if rows:
            with writer.transaction() as ledger:
                for query_id in rows:
                    ledger.drop_subscriber(query_id)
        with writer.transaction() as ledger:
            unused = [
                pipeline_id
                for pipeline_id in ledger.unused_pipelines()
                if pipeline_id not in self._pipelines and not self._pushes.is_ending(pipeline_id)
            ]
            for pipeline_id in unused:
                ledger.drop_pipeline(pipeline_id)
        for pipeline_id in unused:
            shutil.rmtree(self._work / pipeline_id, ignore_errors=True)

    def _group_applications(self) -> None:
        """The queries of an application fail together."""
        groups: dict[str, list[_Running]] = {}
        for known in self._running.values():
            name = dict(known.query.properties).get("application")
            if name is not None:
                groups.setdefault(name, []).append(known)
        for together in groups.values():
            members = tuple(member for known in together for member in known.members())
            for known in together:
                for member in known.members():
                    member.application = members

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
            lambda: self._relation(view_id).name,
            known.query,
            known.pipeline,
            known.subscriber,
            known.broken,
            known.derived,
        )

    def _relation(self, relation_id: str) -> Relation:
        found = self._services.catalog.relations.by_id(relation_id)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_TABLE, f"relation {relation_id} does not exist")
        return found

    def _source(self, query: Query) -> tuple[Store, Relation]:
        return self._read_by(query.source_ids[0])

    def _read_by(self, relation_id: str) -> tuple[Store, Relation]:
        """A stream and its store."""
        stream = self._relation(relation_id)
        store = self._services.catalog.stores.by_id(stream.store_id or "")
        if store is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'stream "{stream.name}" has no store')
        return store, stream

    def _committed(self, query_ids: Sequence[str]) -> None:
        for known in list(self._running.values()):
            if known.derived is not None:
                known.derived.rows_committed(query_ids)
            if known.relay is not None and known.query.id in query_ids:
                known.relay.committed()
        self._services.views_changed(query_ids)

    # --- status -----------------------------------------------------------------------------------------------------
    def _status(self, known: _Running) -> QueryStatus:
        if known.sink is not None:
            return known.sink.status()
        if known.subscriber is None or known.pipeline is None:
            return QueryStatus(known.query.id, QueryState.FAILED, error=known.broken)
        status = view_status(known.query.id, known.subscriber, known.pipeline, self._starter.problem_or_none())
        if known.relay is not None:
            status = output_status(status, known.relay)
        return status if known.derived is None else known.derived.status(status, known.subscriber)
