"""The streaming engine: what the catalog says should run, runs.

Handlers write the catalog first and then call :meth:`Engine.reconcile`, which compares the queries of the catalog with
those that run and acts on the difference: states are made or dropped in DuckDB at once, pipelines start when Spark is
up. The same comparison at start is the recovery.

How a query is taken up is in ``start_up``, how it goes in ``orphan_clean_up``, how it begins again when a store was
changed in ``renewals``, what it has while it runs in ``running``. Here is what is decided, and what other rooms may
ask.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

import pyarrow as pa

from catalog.model import Query, Relation, Store
from mvserver import limits, sqlstates
from mvserver.compiler.plans import ContinuousPlan, Projection, Scan
from mvserver.errors import SqlError, words_of
from mvserver.streaming.api import LiveRows, PipelineStatus, PresentEnds, QueryState, QueryStatus
from mvserver.streaming.batch.plan_check import check_plan
from mvserver.streaming.live.choice import BATCHES_ONLY, lasting_obstacle
from mvserver.streaming.live.lanes import NO_LANES, live_lanes
from mvserver.streaming.pipeline.held_history import EndedReaders
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.push.bounded import BoundedReads
from mvserver.streaming.push.push import PushQueries
from mvserver.streaming.push.push_states import PushStates, is_plain
from mvserver.streaming.queries.derived import DerivedSources
from mvserver.streaming.queries.engine_services import EngineServices
from mvserver.streaming.queries.freshness import KeptView, SourceEnds
from mvserver.streaming.queries.held_histories import HeldHistories
from mvserver.streaming.queries.orphan_clean_up import OrphanCleanUp
from mvserver.streaming.queries.outputs import MATERIALIZED_VIEW
from mvserver.streaming.queries.renewals import Renewals, refuse_renewed
from mvserver.streaming.queries.running import RunningQuery, group_applications, pipeline_statuses
from mvserver.streaming.queries.source_pipelines import SourcePipelines
from mvserver.streaming.queries.start_up import StartUp
from mvserver.streaming.queries.status import ViewName, refuse_empty, unavailable, wait_filled
from mvserver.streaming.running_queries import RunningQueries
from mvserver.streaming.spark.guard import Guarded
from mvserver.streaming.spark.isolation import Isolation
from mvserver.streaming.spark.process import SHUTTING_DOWN, SparkProcess
from mvserver.streaming.spark.session import SparkGate
from mvserver.streaming.spark.supervisor import SparkSupervisor
from mvserver.streaming.watching.history_reader import HistoryReader
from mvserver.streaming.watching.watched_views import HistoryStatus, WatchedViews
from mvserver.views.targets import Target
from mvserver.visible_rows import VisibleRows


class Engine:
    """Implements ``streaming.api.StreamingEngine``."""

    def __init__(self, services: EngineServices) -> None:
        self._services = services
        self._queries = RunningQueries()
        self._failures = 0  # of queries, since the start; under a lock of its own, since those who fail hold others
        self._failures_lock = threading.Lock()
        self._stopped = False  # nothing is taken up any more
        self._awaited: dict[str, int] = {}  # queries that cannot begin yet, with the thread that waits for them
        self._isolation = Isolation(services.spark.work_directory)
        process = partial(SparkProcess, launch=services.launch, awaited=lambda: bool(self._queries.all()))
        self._spark = SparkSupervisor(services.spark, services.supervision, self._isolation, process)
        gate, work = SparkGate(), services.work_directory
        guard = self._guard = Guarded(self._spark, self._isolation)
        self._bounded = BoundedReads(self._spark.session, gate, work, guard, services.batch_timeout_s)
        pipeline_services = PipelineServices(
            writer=services.writer,
            gate=gate,
            session=self._spark.session,
            guard=guard,
            work_directory=work,
            records_per_trigger=services.records_per_trigger,
            committed=self._committed,
            failed=self._failed,
            reached=services.reached,
            health_interval_s=services.health_interval_s,
            batch_timeout_s=services.batch_timeout_s,
            live=live_lanes(services.spark, lambda: self._spark.executor_cores),
        )
        self._live = pipeline_services.live
        pipelines: dict[str, Pipeline] = {}
        self._pushes = PushQueries(self._queries.turn, services.catalog, services.writer, work, pipelines)
        self._histories = HeldHistories(services)
        self._ended = EndedReaders(services.writer, self._histories.left)
        self._sources = SourcePipelines(
            services, pipeline_services, pipelines, self._pushes, self._histories, self._ended
        )
        self._renewals = Renewals(self._services, self._sources, self._ended, self._take_up)
        derived = DerivedSources(pipeline_services, pipelines, self._sources.of_scan)
        self._watched = WatchedViews(
            services.writer,
            services.history_retention_s,
            self._target_of_view,
            lambda view_id: services.relation(view_id).name,
        )
        self._start_up = StartUp(services, pipeline_services, self._sources, derived, self._histories, self._watched)
        self._orphan_clean_up = OrphanCleanUp(services, self._sources, self._histories, self._ended)
        self._push_states = PushStates(self._queries.turn, services, self._sources, derived, self._orphan_clean_up)

    # --- life -------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Takes up what the catalog says; Spark starts in the background."""
        self._isolation.begin()
        self._spark.start()
        self._watched.start()
        self.reconcile()

    def stop(self) -> None:
        """No new batches, what was evaluated is committed, Spark ends."""
        self._watched.stop()
        self._histories.stop()
        with self._queries.changing():
            self._stopped = True
            pipelines, running = self._sources.all(), self._queries.all()
        sinks = [r.sink for r in running if r.sink is not None]
        relays = [r.relay for r in running if r.relay is not None]
        stops = [*(each.stop for each in pipelines), *(each.stop for each in sinks), *(each.stop for each in relays)]
        threads = [threading.Thread(target=stop) for stop in stops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._ended.wait_all(limits.FORGET_WAIT_S)
        self._spark.stop()
        self._isolation.close()

    def abandon(self) -> None:
        """Where ``stop`` takes too long: nothing is to live on behind the server."""
        self._isolation.close()  # first: what is given up is no suspect
        self._spark.abandon()

    def problem(self) -> str | None:
        """Why nothing is computed now; None where Spark is well."""
        state = self._spark.state
        return state.problem or state.interruption or ("Spark is starting" if state.starting else None)

    # --- StreamingEngine --------------------------------------------------------------------------------------------
    def reconcile(self) -> None:
        while ending := self._reconcile():
            self._sources.wait_ended(ending)  # outside of the turn, like the other wait
        self._ended.wait_own(limits.FORGET_WAIT_S)

    def _reconcile(self) -> Sequence[str]:
        """Returns what has to end before queries can begin. Whoever meets them first waits for that, and comes again;
        statements about others go on meanwhile."""
        queries = self._queries
        with queries.changing():
            if self._stopped:
                return ()
            self._pushes.reconcile()
            self._push_states.reconcile()
            wanted = {query.id: query for query in self._services.catalog.queries.all()}
            for query_id in [q for q in queries.ids() if q not in wanted]:
                dropped = queries.pop(query_id)
                self._orphan_clean_up.drop(dropped)
                self._isolation.pardon([each for each in dropped.sources if not self._sources.is_read(each)])
            if any(queries.get(query_id) is None and query_id not in self._awaited for query_id in wanted):
                self._ended.wait_own(limits.FORGET_WAIT_S)  # of a query that takes the place of another
            hindered: dict[str, Sequence[str]] = {}
            rows = {row.query_id: row for row in self._services.writer.ledger_subscribers()}
            self._begin_renewals()
            for query in wanted.values():
                known = queries.get(query.id)
                if awaited := self._awaits(known, query):
                    hindered[query.id] = awaited
                    continue
                if known is None:
                    queries.put(self._start_up.adopt(query, rows.get(query.id)))
                elif known.ending is not None:
                    self._renew(known, query)
                elif query.desired_state == "terminated" and known.query.desired_state != "terminated":
                    self._terminate(known)
                elif query.desired_state == "running" and known.query.desired_state == "terminated":
                    self._run_again(known, skip_rejected=False)
                if known is not None:
                    known.query = query
            group_applications(queries.all())
            self._orphan_clean_up.sweep({**wanted, **self._push_states.queries})
            this_thread = threading.get_ident()
            self._awaited = {query_id: self._awaited.get(query_id, this_thread) for query_id in hindered}
            waiting = [ids for query_id, ids in hindered.items() if self._awaited[query_id] == this_thread]
            return list(chain.from_iterable(waiting))

    def _awaits(self, known: RunningQuery | None, query: Query) -> Sequence[str]:
        """What has to end before a query can begin, or begin again."""
        if known is None:
            return self._start_up.awaits(query)
        runs_again = query.desired_state == "running" and known.query.desired_state == "terminated"
        is_hindered = runs_again and known.ending is None and self._ended.is_ending(query.id)
        return [query.id] if is_hindered else ()

    def _take_up(self, known: RunningQuery) -> bool:
        """Of a store that was changed. True where nothing is left to do: it may have been dropped, too."""
        self.reconcile()
        return self._stopped or self._queries.get(known.query.id) is not known

    def _begin_renewals(self) -> None:
        """Of the queries whose stores were changed."""
        waiting = [known for known in self._queries.all() if known.ending is None]
        self._renewals.begin([k for k in waiting if k.store_versions != self._services.store_versions(k.query)])

    def _renew(self, known: RunningQuery, query: Query) -> None:
        """As soon as what it has by its stores' former properties has ended."""
        if self._renewals.is_over(known):
            self._adopt_again(known, query)

    def _adopt_again(self, known: RunningQuery, query: Query) -> None:
        """From where the ledger has it."""
        with self._queries.replacing(query.id):
            row = self._services.ledger_row(query.id)
            self._queries.put(self._start_up.adopt(query, row))

    def _refuse_stopped(self) -> None:
        """57P01 for what would begin something behind the engine's end: nobody would stop it. In the turn."""
        if self._stopped:
            raise SqlError(sqlstates.ADMIN_SHUTDOWN, SHUTTING_DOWN)

    def restart(self, query_id: str, *, skip_rejected: bool = False) -> None:
        self._wait_to_restart(query_id)
        with self._queries.changing():
            self._refuse_stopped()
            known = self._known(query_id)
            refuse_renewed(known)
            known.refuse_held()
            self._isolation.pardon(known.sources)
            if known.query.desired_state == "terminated":
                with self._services.catalog.transaction():
                    self._services.catalog.queries.set_desired_state(query_id, "running")
            query = self._services.catalog.queries.get(query_id)
            if known.pipeline is None and known.sink is None:
                self._adopt_again(known, query)
                group_applications(self._queries.all())
                return
            self._run_again(known, skip_rejected=skip_rejected)
            known.query = query

    def _wait_to_restart(self, query_id: str) -> None:
        """For what has to end first. Not in the turn: others go on."""
        known = self._queries.get(query_id)
        if known is not None:
            refuse_renewed(known)
            self._ended.wait_ended(query_id)
            self._sources.wait_ended(self._start_up.awaits(known.query))

    def _terminate(self, known: RunningQuery) -> None:
        known.terminate()
        if known.sink is not None:
            self._ended.end(known.query.id, known.sink.stop)

    def _run_again(self, known: RunningQuery, *, skip_rejected: bool) -> None:
        self._ended.wait_ended(known.query.id)
        known.run_again(skip_rejected=skip_rejected)

    def refresh(self, query_id: str) -> None:
        """A new definition version with an empty state, read again from what the source still has."""
        self._refresh(query_id)
        self._ended.wait_own(limits.FORGET_WAIT_S)

    def _refresh(self, query_id: str) -> None:
        with self._queries.changing(), self._queries.replacing(query_id):
            self._refuse_stopped()
            known = self._known(query_id)
            refuse_renewed(known)
            if known.subscriber is None or known.pipeline is None:
                raise SqlError(
                    sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "the view's query could not be set up",
                    detail=known.broken,
                    hint=f"Mend the cause, then RESTART QUERY {query_id}.",
                )
            if known.derived is None:
                self._start_up.rebuild(known, known.pipeline, known.subscriber.target)
                group_applications(self._queries.all())
                return
            known.derived.ask_remaining(known.query.start_position)  # before anything of it goes
            query = self._services.begin_rebuild(known.query)
            renewed = RunningQuery(query, store_versions=known.store_versions)
            try:
                self._orphan_clean_up.drop(known)
            except Exception as error:  # nothing of it reads any more: RESTART builds it
                renewed.broken = words_of(error)
                self._queries.put(renewed)
                raise
            self._queries.put(renewed)
            self._start_up.rebuild_derived(renewed)
            group_applications(self._queries.all())

    def status(self, query_id: str) -> QueryStatus:
        known = self._queries.find(lambda each: each.query.id == query_id)
        if known is None:
            raise _unknown(query_id)
        return known.status(self._spark.state)

    def statuses(self) -> Sequence[QueryStatus]:
        return [known.status(self._spark.state) for known in self._queries.all()]

    def resolve_position(self, store: Store, entity: str, starting: str) -> str:
        return json.dumps(self._services.stores.client(store).position(entity, starting), sort_keys=True)

    def subscribe(self, plan: ContinuousPlan, start_position: str) -> LiveRows:
        self._sources.wait_ended(self._sources.ending(plan))
        with self._queries.turn:
            self._refuse_stopped()
            self._pushes.check_room(len(self._push_states))
            if not is_plain(plan):
                return self._push_states.open(plan, start_position)
            store, stream = self._services.stored(plan.scan.relation_id)
            pipeline, fresh = self._sources.of_source(store, stream, plan)
            position = self._sources.begin(pipeline, json.loads(start_position), fresh=fresh)
            rows = self._pushes.open(plan, position, (store, stream), pipeline)
            self._sources.start(pipeline)
            return rows

    def read_bounded(self, plan: Projection, rows_max: int | None, stopped: Callable[[], bool]) -> pa.Table:
        store, stream = self._services.stored(plan.scan.relation_id)
        entity = stream.entity or ""
        start = self.resolve_position(store, entity, plan.scan.starting_position)
        end = self.resolve_position(store, entity, "latest")
        make_reader = partial(self._services.stores.reader, store, stream, plan)
        return self._bounded.read(plan, (start, end), make_reader, rows_max, stopped)

    def end_push_queries(self, error: SqlError) -> None:
        self._pushes.end_all(error)
        self._push_states.end_all(error)
        self._watched.end_all(error)

    def watch(
        self, view_id: str, *, since: str | None = None, snapshot: bool = False, visible: VisibleRows | None = None
    ) -> HistoryReader:
        return self._watched.open(view_id, since=since, snapshot=snapshot, visible=visible)

    def histories(self) -> Sequence[HistoryStatus]:
        return self._watched.statuses()

    def wait_until_ready(self, timeout_s: float) -> None:
        self._spark.wait(timeout_s)

    def wait_while_filling(self, view_ids: Sequence[str], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        for view_id in view_ids:
            known = self._of_view(view_id)
            if known is not None:
                self._wait_filled(known, deadline)

    def refuse_empty(self, view_ids: Sequence[str]) -> None:
        for known in filter(None, map(self._of_view, view_ids)):
            if known.subscriber is not None:
                refuse_empty(self._view_name(known), known.subscriber, self._spark.state.problem)

    def failures(self) -> int:
        return self._failures

    def _view_name(self, known: RunningQuery) -> ViewName:
        return ViewName(self._services.relation(known.query.sink_id).name, known.query.id)

    def _wait_filled(self, known: RunningQuery, deadline: float) -> None:
        subscriber, view = known.subscriber, self._view_name(known)
        if subscriber is None or known.pipeline is None:
            raise unavailable(view, QueryState.FAILED, known.broken or "it could not be set up")
        if self._spark.state.problem is not None and not subscriber.filled:
            raise unavailable(view, QueryState.FAILED, self._spark.state.problem)
        wait_filled(view, subscriber, known.pipeline, deadline, lambda: self._spark.state)

    def present_ends(self, view_ids: Sequence[str]) -> PresentEnds:
        return SourceEnds([partial(self._kept, view_id) for view_id in view_ids])

    def confirmed_at(self, view_ids: Sequence[str]) -> float | None:
        kept = [found for found in map(self._kept, view_ids) if found is not None]
        moments = [view.confirmed_at() for view in kept]
        known = [moment for moment in moments if moment is not None]
        return min(known, default=None) if len(known) == len(moments) else None

    def pipelines(self) -> Sequence[PipelineStatus]:
        return pipeline_statuses(self._queries.all(), self._spark.state)

    def check_reading(self, store: Store, relation: Relation, scan: Scan) -> None:
        check = self._services.stores.kind(store.type).check_reading
        if check is not None and scan.reading:
            is_read = self._sources.reads(store, relation, scan)
            check(self._services.stores.client(store), relation.entity or "", dict(scan.reading), is_read)

    def check_plan(self, plan: object) -> None:
        session = self._spark.session()
        with self._guard.noticing(session):
            check_plan(session, plan)

    def planned_lane(self, plan: ContinuousPlan) -> Sequence[str]:
        if self._live is NO_LANES:
            return ()
        lanes = {part.scan.relation: self._lane_of(plan, part) for part in _read_by(plan)}
        return [f"  Lane of {relation}: {lane}" for relation, lane in lanes.items()]

    def _lane_of(self, plan: ContinuousPlan, part: ContinuousPlan) -> str:
        store, stream = self._services.stored(part.scan.relation_id)
        obstacle: str | None = BATCHES_ONLY
        if self._services.stores.kind(store.type).reads_live:
            reader = self._services.stores.reader(store, stream, plan, self._services.work_directory)
            obstacle = lasting_obstacle(reader, self._live, [part])
            reader.close()
        return "live, once it has caught up" if obstacle is None else f"batch ({obstacle})"

    # --- look-ups ---------------------------------------------------------------------------------------------------
    def _known(self, query_id: str) -> RunningQuery:
        """In the turn of a statement."""
        known = self._queries.get(query_id)
        if known is None and query_id in self._awaited:
            raise SqlError(
                sqlstates.OBJECT_IN_USE,
                f'query "{query_id}" is about to begin',
                detail="What has read the same before has not ended yet.",
                hint="Try again.",
            )
        if known is None:
            raise _unknown(query_id)
        return known

    def _of_view(self, view_id: str) -> RunningQuery | None:
        return self._queries.find(lambda each: each.query.sink_id == view_id)

    def _target_of_view(self, view_id: str) -> Target | None:
        known = self._of_view(view_id)
        if known is None or known.subscriber is None or known.query.kind != MATERIALIZED_VIEW:
            return None
        return known.subscriber.target

    def _kept(self, view_id: str) -> KeptView | None:
        known = self._of_view(view_id)
        if known is None:
            return None
        return known.kept_view(lambda: self._services.relation(view_id).name, self._spark.state)

    def _failed(self) -> None:
        with self._failures_lock:
            self._failures += 1

    def _committed(self, query_ids: Sequence[str]) -> None:
        for known in self._queries.all():
            known.rows_committed(query_ids)
        self._push_states.committed(query_ids)


def _unknown(query_id: str) -> SqlError:
    return SqlError(sqlstates.UNDEFINED_OBJECT, f'query "{query_id}" does not exist')


def _read_by(plan: ContinuousPlan) -> Iterator[ContinuousPlan]:
    """The parts of it that read what stores have."""
    if plan.scan.derived is None:
        yield plan
        return
    for side in plan.scan.derived.sides:
        yield from _read_by(side.plan)
