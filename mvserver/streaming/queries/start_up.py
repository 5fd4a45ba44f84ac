"""Takes up one query of the catalog: makes or finds its state, its pipeline, its sink or relay, and lets them run.

Whether a query is new or was there before the server started, all goes the same way: what DuckDB and the ledger have of
it is taken as it is, and what they do not have is made. So a query whose stores have changed is stopped and taken up
again, exactly where it stood.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence

from catalog.model import Query
from mvserver import sqlstates
from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.plans import ContinuousPlan, Projection
from mvserver.compiler.tables import TABLE
from mvserver.errors import SqlError
from mvserver.streaming.api import DEAD_LETTERS, LEAVES_REFUSED, REFUSED_LETTERS
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries.csas import SinkQuery
from mvserver.streaming.queries.dead_letters import DeadLetters
from mvserver.streaming.queries.derived import DerivedSources
from mvserver.streaming.queries.engine_services import EngineServices
from mvserver.streaming.queries.held_histories import HeldHistories
from mvserver.streaming.queries.outbox_relay import OutboxRelay
from mvserver.streaming.queries.outgoing import BatchForm, Evaluation, Form, Rows
from mvserver.streaming.queries.outputs import (
    OutputSubscriber,
    keeps_rows,
    known_subscriber,
    record_form,
    relay_of,
    sending,
    table_form,
    view_id_of,
    with_outbox,
)
from mvserver.streaming.queries.running import RunningQuery
from mvserver.streaming.queries.source_pipelines import SourcePipelines
from mvserver.streaming.watching.watched_views import WatchedViews
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target, build_target
from spark_sinks.base import RefusedRecords
from spark_sinks.duckdb.ledger.ledger import SubscriberRow
from spark_sinks.duckdb.ledger.sink_position import SinkPosition

_log = logging.getLogger(__name__)


class StartUp:
    """All calls are made in the turn of a statement."""

    def __init__(
        self,
        services: EngineServices,
        pipeline_services: PipelineServices,
        sources: SourcePipelines,
        derived: DerivedSources,
        histories: HeldHistories,
        watched: WatchedViews,
    ) -> None:
        self._services = services
        self._watched = watched
        self._histories = histories
        self._sources = sources
        self._derived = derived
        self._pipeline_services = pipeline_services

    def awaits(self, query: Query) -> Sequence[str]:
        """What is being ended, and has to have ended before the query can be taken up."""
        if not self._sources.is_any_ending():
            return ()
        try:
            plan = self._services.compile_query(query)
            if plan.scan.derived is None and not keeps_rows(query, self._services.relation(query.sink_id)):
                return ()  # it reads for itself
            return self._sources.ending(plan)
        except Exception as error:  # noqa: BLE001 - met again, and told, where it is taken up
            _log.debug("it is not known what query %s reads: %s", query.id, error)
            return ()

    def adopt(self, query: Query, row: SubscriberRow | None) -> RunningQuery:
        """``row``: what the ledger has of it. A query that cannot be set up is recorded with the cause. Damage of the
        views' file is no query's own: it is raised, so that the file is set aside."""
        running = RunningQuery(query)
        try:
            running.store_versions = self._services.store_versions(query)
            running.forget_output = self._forgetting(query)
            with self._sources.making():
                if keeps_rows(query, self._services.relation(query.sink_id)):
                    self._adopt_view(running, row)
                else:
                    self._adopt_sink(running)
        except Exception as error:  # shown as FAILED; the queries after it are taken up all the same
            if self._services.writer.damage.notice(error):
                raise
            self._note_broken(running, error)
        return running

    def _note_broken(self, running: RunningQuery, error: Exception) -> None:
        if isinstance(error, SqlError):
            _log.warning("query %s cannot be set up: %s", running.query.id, error)
            running.broken = str(error)
        else:
            _log.exception("query %s cannot be set up", running.query.id)
            running.broken = f"internal error: {error!r}"

    # --- its rows are kept ------------------------------------------------------------------------------------------
    def _adopt_view(self, running: RunningQuery, row: SubscriberRow | None) -> None:
        query = running.query
        plan = self._services.compile_query(query)
        if plan.scan.derived is not None:
            self._adopt_derived(running, plan)
            return
        sink = self._services.relation(query.sink_id)
        target = build_target(query.id, view_id_of(query), query.definition_version, plan)
        if view_id_of(query) != sink.id:
            target = with_outbox(target)
            running.relay = self._relay(query, target)
        known = row is not None and row.version == query.definition_version and self._is_stored(target)
        pipeline, fresh = self._sources.of_source(*self._services.stored(query.source_ids[0]), plan)
        subscriber: Subscriber
        if row is not None and known:
            subscriber = known_subscriber(row, target, running.relay)
        else:
            subscriber = self._new(query, target, pipeline, fresh=fresh, relay=running.relay)
        if running.relay is None:
            self._watched.take_up(query, target)
        subscriber.terminated = query.desired_state == "terminated"
        running.pipeline, running.subscriber = pipeline, subscriber
        pipeline.add(subscriber)
        self._sources.start(pipeline)
        if running.relay is not None:
            running.relay.start()

    def _is_stored(self, target: Target) -> bool:
        """Whether DuckDB has the whole state. Its view is then made anew, and can be read whatever its source does."""
        layout, writer = layout_of(target), self._services.writer
        if not writer.has_tables(layout.tables):
            return False
        with writer.transaction():
            writer.replace_view(layout)
        return True

    def _new(
        self, query: Query, target: Target, pipeline: Pipeline, *, fresh: bool, relay: OutboxRelay | None
    ) -> Subscriber:
        version, writer = query.definition_version, self._services.writer
        position = self._sources.begin(pipeline, json.loads(query.start_position), fresh=fresh)
        with writer.transaction() as ledger:
            writer.create_state(target.state, layout_of(target), target.outbox)
            ledger.add_subscriber(query.id, version, pipeline.id, position)
        # Either new, or its state was lost: then the source must still have all that it was made of.
        policy = target.plan.scan.error_handling
        return OutputSubscriber(target, version, position, policy, unverified=True, relay=relay)

    def _adopt_derived(self, running: RunningQuery, plan: ContinuousPlan) -> None:
        """Over a join: its sides go to the pipelines of their sources; a pipeline of its own reads what they make."""
        query, sink = running.query, self._services.relation(running.query.sink_id)
        rows = {row.query_id: row for row in self._services.writer.ledger_subscribers()}
        target = build_target(query.id, view_id_of(query), query.definition_version, plan)
        if view_id_of(query) != sink.id:
            target = with_outbox(target) if keeps_rows(query, sink) else sending(target)
            running.relay = self._relay(query, target)
        made, subscriber = self._derived.attach(query, target, rows, relay=running.relay)
        query = running.query = self._services.end_rebuild(query)  # its state is there, whole
        if running.relay is None:
            self._watched.take_up(query, target)
        subscriber.terminated = running.query.desired_state == "terminated"
        running.derived, running.pipeline, running.subscriber = made, made.pipelines[0], subscriber
        made.pipelines[0].add(subscriber)
        for feed in made.feeds:
            feed.pipeline.add(feed.subscriber)
        for pipeline in (*made.pipelines, *(feed.pipeline for feed in made.feeds)):
            self._sources.start(pipeline)
        if running.relay is not None:
            running.relay.start()

    # --- its rows are written ---------------------------------------------------------------------------------------
    def _adopt_sink(self, running: RunningQuery) -> None:
        query = running.query
        plan = self._services.compile_query(query)
        if plan.scan.derived is not None:
            self._adopt_derived(running, plan)
            return
        store, stream = self._services.stored(query.source_ids[0])
        reader = self._services.stores.reader(store, stream, plan, self._services.work_directory / query.id)
        self._histories.hold(query.id, store, stream.entity or "", reader)
        kept = SinkPosition(self._services.writer, query.id)
        form, evaluation = self._written(query, plan)
        writing = SinkQuery(query, plan, reader, form, evaluation, kept, self._pipeline_services)
        try:
            writing.begin()
        except BaseException:
            reader.close()
            raise
        running.sink = writing
        if query.desired_state != "terminated":
            running.sink.start()

    def _written(self, query: Query, plan: ContinuousPlan) -> tuple[BatchForm, Evaluation]:
        """How what is evaluated of the source's records is written, and what that is."""
        if query.kind == DEAD_LETTERS:
            store, sink = self._services.stored(query.sink_id)
            kept = SinkPosition(self._services.writer, query.id)
            letters = DeadLetters(plan.scan, self._services.stores.plain_sink(store, sink, query.id, kept))
            return letters, letters
        if not isinstance(plan, Projection):
            raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "a stream can only be made of projections and filters")
        form = self._form(query, plan)
        return form, Rows(build_target(query.id, query.sink_id, 1, plan), plan, form)

    def _form(self, query: Query, plan: ContinuousPlan) -> Form:
        """In which it is written, to where its relation says."""
        stores, (store, sink) = self._services.stores, self._services.stored(query.sink_id)
        if sink.kind == TABLE:
            return table_form(sink, stores.table_sink(store, sink, query.id))
        kept = SinkPosition(self._services.writer, query.id)
        keys = stores.kind(store.type).written_keys
        properties = dict(query.properties)
        refused = RefusedRecords(properties.get(REFUSED_LETTERS)) if LEAVES_REFUSED in properties else None
        return record_form(plan, sink, stores.sink(store, sink, query.id, kept, refused), text_keys=keys == "text")

    def _forgetting(self, query: Query) -> Callable[[], None] | None:
        """None for one that writes no records."""
        if self._services.relation(query.sink_id).kind not in ("stream", CHANGELOG):
            return None
        store, sink = self._services.stored(query.sink_id)
        return self._services.stores.forget_output(store, sink, query.id, SinkPosition(self._services.writer, query.id))

    def _relay(self, query: Query, target: Target) -> OutboxRelay:
        form = self._form(query, target.plan)
        return relay_of(target, query, form, self._services.writer, self._services.reached)

    # --- once more --------------------------------------------------------------------------------------------------
    def rebuild(self, known: RunningQuery, pipeline: Pipeline, old: Target) -> None:
        """A new definition version of a view, with an empty state, from what the source still has."""
        query_id = known.query.id
        first = pipeline.reader.adopt(json.loads(known.query.start_position), fresh=False)
        position, note = pipeline.reader.health.remaining(first)
        query = self._services.next_version(known.query)
        version = query.definition_version
        before = pipeline.remove(query_id)
        target = build_target(query_id, old.view_id, version, old.plan)
        writer = self._services.writer
        try:
            with writer.transaction() as ledger:
                writer.create_state(target.state, layout_of(target))
                writer.drop_state(old.state.tables, None)
                ledger.add_subscriber(query_id, version, pipeline.id, position, note)
                self._watched.take_up_within(query, target)
        except Exception as error:
            if not self._is_at(query_id, version):
                self._go_back(known, pipeline, before, error)
                raise
            behind: Exception | None = error  # the commit: what it made counts
        else:
            behind = None
        subscriber = Subscriber(target, version, position, target.plan.scan.error_handling, note=note)
        known.query, known.subscriber = query, subscriber
        pipeline.add(subscriber)
        if behind is not None:
            raise behind

    def _is_at(self, query_id: str, version: int) -> bool:
        """As the ledger says; False where it cannot be asked."""
        try:
            row = self._services.ledger_row(query_id)
        except Exception as error:  # noqa: BLE001 - what has failed first is raised
            _log.warning("the ledger cannot be asked for query %s: %s", query_id, error)
            return False
        return row is not None and row.version == version

    def _go_back(self, known: RunningQuery, pipeline: Pipeline, before: Subscriber | None, error: Exception) -> None:
        """The view has its rows still, and takes records on from where it stands. Where not even that can be noted, its
        query says why it stands still."""
        try:
            self._services.same_version(known.query)
        except Exception as hindrance:  # noqa: BLE001 - what has failed first is raised
            _log.warning("query %s cannot go back to its rows: %s", known.query.id, hindrance)
            known.pipeline = known.subscriber = None
            self._note_broken(known, error)
            if before is not None:
                self._leave(pipeline, before)
            return
        if before is not None:
            before.claimed = before.position
            pipeline.add(before)

    def _leave(self, pipeline: Pipeline, subscriber: Subscriber) -> None:
        try:
            self._sources.leave(pipeline, subscriber.target.plan.scan.relation_id)
        except Exception as error:  # noqa: BLE001 - what has failed first is raised
            _log.warning("what read for query %s was not left: %s", subscriber.query_id, error)

    def rebuild_derived(self, renewed: RunningQuery) -> None:
        """The same for a view over a join, of which nothing is left that ran. What hinders it is shown as its cause."""
        try:
            with self._sources.making():
                self._adopt_derived(renewed, self._services.compile_query(renewed.query))
        except Exception as error:
            self._note_broken(renewed, error)
            raise
