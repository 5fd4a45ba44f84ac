"""Push queries that have a state: aggregates, joins, changes of a changelog. They run as views do, for a while.

Each is a continuous query that stands in no catalog. Its state and its place in the ledger have names like a view's; it
is dropped when its client goes, and what a crash leaves behind belongs to no query, so that the clean-up at the
next start removes it.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from catalog.model import Query, Relation, Store
from mvserver import limits, sqlstates
from mvserver.compiler import lower_duckdb
from mvserver.compiler.changelogs import CHANGE_KIND, over_changelog, replaces_rows
from mvserver.compiler.derived import scans, views
from mvserver.compiler.plans import ContinuousPlan, ErrorHandling, Projection
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.pipeline import Pipeline
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.push.push import lost_source, push_error
from mvserver.streaming.push.push_outbox import OutboxRows
from mvserver.streaming.queries.derived import DerivedSources
from mvserver.streaming.queries.engine_services import EngineServices
from mvserver.streaming.queries.orphan_clean_up import OrphanCleanUp
from mvserver.streaming.queries.outputs import OutputSubscriber
from mvserver.streaming.queries.running import RunningQuery
from mvserver.streaming.queries.source_pipelines import SourcePipelines
from mvserver.views.finishing import change_outbox, layout_of
from mvserver.views.targets import Target, build_target, until_closed
from spark_sinks.duckdb.changes.outbox import Outbox
from spark_sinks.duckdb.changes.sent_rows import SentRows

_log = logging.getLogger(__name__)

PUSH = "push"  # the kind of such a query
_MEASURED_EVERY_S = 1.0


def is_plain(plan: ContinuousPlan) -> bool:
    """Whether the rows of a batch are those of the query, and nothing has to be kept for the next one."""
    return isinstance(plan, Projection) and plan.scan.derived is None and not over_changelog(plan)


@dataclass
class _Open:
    running: RunningQuery
    rows: OutboxRows
    sources: Sequence[tuple[Relation, Store | None]]  # as they were when it began; of views, which have no store, too
    measured_at: float = field(default_factory=time.monotonic)

    @property
    def subscribers(self) -> Sequence[Subscriber]:
        own = self.running.subscriber
        return [*([] if own is None else [own]), *(feed.subscriber for feed in self.running.feeds)]


class PushStates:
    """Those that are open. All calls are made in the turn of a statement, which is handed in as a lock; ``close`` of
    the rows takes it, and ``committed`` and ``end_all`` do without."""

    def __init__(
        self,
        turn: threading.RLock,
        services: EngineServices,
        sources: SourcePipelines,
        derived: DerivedSources,
        orphan_clean_up: OrphanCleanUp,
    ) -> None:
        self._turn = turn
        self._services = services
        self._sources = sources
        self._derived = derived
        self._orphan_clean_up = orphan_clean_up
        self._open: dict[str, _Open] = {}
        self._ending: dict[str, RunningQuery] = {}
        self._ended_by: SqlError | None = None  # at shutdown

    def __len__(self) -> int:
        return len(self._open)

    @property
    def queries(self) -> Mapping[str, Query]:
        """Whose states and places in the ledger are not to be swept away."""
        running = [*(known.running for known in self._open.values()), *self._ending.values()]
        return {each.query.id: each.query for each in running}

    # --- beginning --------------------------------------------------------------------------------------------------
    def open(self, plan: ContinuousPlan, start_position: str) -> OutboxRows:
        if len(self._open) + len(self._ending) >= limits.PUSH_STATES_MAX:
            raise SqlError(
                sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                f"the server runs at most {limits.PUSH_STATES_MAX} push queries with aggregates, joins or changelogs "
                "at a time",
                hint="End one that is not needed any more, or read a materialized view.",
            )
        query_id = str(uuid.uuid4())
        target = pushed(build_target(query_id, query_id, 1, plan))
        assert target.outbox is not None  # noqa: S101 - just made
        names = [*([CHANGE_KIND] if replaces_rows(plan) else []), *(output.name for output in plan.outputs)]
        rows = OutboxRows(target.outbox, names, self._services.writer, lambda: self._close(query_id))
        stored = list(dict.fromkeys(scan.relation_id for scan in scans(plan.scan)))
        known = _Open(
            RunningQuery(_query(query_id, plan, stored, start_position)),
            rows,
            [
                *((relation, store) for store, relation in map(self._services.stored, stored)),
                *((self._services.relation(scan.views[-1]), None) for scan in views(plan.scan)),
            ],
        )
        try:
            self._run(known, target, rows)
        except BaseException:
            self._orphan_clean_up.drop(known.running)
            raise
        self._open[query_id] = known
        if self._ended_by is not None:
            rows.end(self._ended_by)
        rows.committed()  # an aggregate without groups has a row already
        return rows

    def _run(self, known: _Open, target: Target, rows: OutboxRows) -> None:
        running = known.running
        if target.plan.scan.derived is None:
            running.pipeline, running.subscriber = self._attach_stored(running.query, target, rows)
        else:
            made, main = self._derived.attach(running.query, target, {}, relay=rows)
            running.derived, running.pipeline, running.subscriber = made, made.pipelines[0], main
        for subscriber in known.subscribers:
            subscriber.on_failure = lambda error: rows.end(push_error(error))
            if subscriber.policy is not ErrorHandling.TERMINATE:
                subscriber.policy = ErrorHandling.IGNORE  # of its rejected records nothing is kept
        running.pipeline.add(running.subscriber)
        for feed in running.feeds:
            feed.pipeline.add(feed.subscriber)
        below = () if running.derived is None else running.derived.pipelines
        for pipeline in (running.pipeline, *below, *(feed.pipeline for feed in running.feeds)):
            self._sources.start(pipeline)

    def _attach_stored(self, query: Query, target: Target, rows: OutboxRows) -> tuple[Pipeline, Subscriber]:
        writer = self._services.writer
        pipeline, fresh = self._sources.of_source(*self._services.stored(query.source_ids[0]), target.plan)
        position = self._sources.begin(pipeline, json.loads(query.start_position), fresh=fresh)
        with writer.transaction() as ledger:
            writer.create_state(target.state, layout_of(target), target.outbox)
            ledger.add_subscriber(query.id, 1, pipeline.id, position)
        policy = target.plan.scan.error_handling
        return pipeline, OutputSubscriber(target, 1, position, policy, unverified=True, relay=rows)

    # --- while they run ---------------------------------------------------------------------------------------------
    def committed(self, query_ids: Sequence[str]) -> None:
        """Batches of these queries and sides are in DuckDB. Called by the threads that commit."""
        for known in list(self._open.values()):
            known.running.rows_committed(query_ids)
            if any(subscriber.query_id in query_ids for subscriber in known.subscribers):
                known.rows.committed()
                self._bound(known)

    def _bound(self, known: _Open) -> None:
        """A state that has become too large ends its query; it takes no batch from then on. Of one whose client has
        gone meanwhile there is nothing to bound: this thread does not wait for a statement's turn."""
        now = time.monotonic()
        if now - known.measured_at < _MEASURED_EVERY_S or known.running.subscriber is None:
            return
        known.measured_at = now
        rows = self._services.writer.count_rows(_tables(known.running))
        if rows is not None and rows > limits.PUSH_STATE_ROWS_MAX:
            known.rows.end(
                SqlError(
                    sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                    "the push query keeps more than it may",
                    detail=f"Its groups, and the rows of its joins, have come to {rows}; {limits.PUSH_STATE_ROWS_MAX} "
                    "are allowed.",
                    hint="Create a materialized view of it, group by fewer keys, or group by a window.",
                )
            )
            self._detach(known.running)

    def reconcile(self) -> None:
        """After the catalog has changed: a query whose sources are not what they were ends."""
        for known in self._open.values():
            found = (lost_source(self._services.catalog, *source) for source in known.sources)
            error = next((each for each in found if each is not None), None)
            if error is not None:
                self._detach(known.running)
                known.rows.end(error)

    # --- ending -----------------------------------------------------------------------------------------------------
    def end_all(self, error: SqlError) -> None:
        """At shutdown. What is left of them goes at the next start. A statement that hangs is not waited for."""
        self._ended_by = error
        for known in list(self._open.values()):
            known.rows.end(error)

    def _close(self, query_id: str) -> None:
        with self._turn:
            known = self._open.pop(query_id, None)
            if known is None:
                return
            self._detach(known.running)
            if self._ended_by is not None:
                return
            self._ending[query_id] = known.running
        threading.Thread(target=self._drop, args=(known.running,), name=f"end-{query_id[:8]}", daemon=True).start()

    def _detach(self, running: RunningQuery) -> None:
        """It gets no further batch."""
        for feed in running.feeds:
            feed.pipeline.remove(feed.subscriber.query_id)
        if running.pipeline is not None:
            running.pipeline.remove(running.query.id)

    def _drop(self, running: RunningQuery) -> None:
        """Pipelines that nobody needs any more take a second to end, for which no client waits."""
        try:
            with self._turn:
                if self._ended_by is None:
                    self._orphan_clean_up.drop(running)
        except Exception:  # noqa: BLE001 - logged; the next start removes what is left
            _log.exception("the state of a push query could not be dropped")
        finally:
            self._ending.pop(running.query.id, None)


def pushed(target: Target) -> Target:
    """The same with an outbox that a client reads: of rows as they come, or of what becomes of them."""
    plan, state = target.plan, target.state
    if isinstance(plan, Projection) and not over_changelog(plan):
        columns = tuple((f"c{i}", lower_duckdb.duckdb_type(o.type)) for i, o in enumerate(plan.outputs))
        outbox = Outbox(target.query_id, target.view_id, state.table, (), columns)
        return replace(target, state=SentRows(outbox), outbox=outbox)
    target = until_closed(target)
    return replace(target, outbox=change_outbox(target))


def _tables(running: RunningQuery) -> Sequence[str]:
    own = () if running.subscriber is None else layout_of(running.subscriber.target).tables
    return list(dict.fromkeys((*own, *(() if running.derived is None else running.derived.tables))))


def _query(query_id: str, plan: ContinuousPlan, source_ids: Sequence[str], start_position: str) -> Query:
    return Query(
        id=query_id,
        kind=PUSH,
        select_text="",
        search_path=("", ""),
        source_ids=tuple(source_ids),
        sink_id=query_id,
        owner="",
        created_at=time.time(),
        start_position=start_position,
        properties=(("starting.position", plan.scan.starting_position),),
    )
