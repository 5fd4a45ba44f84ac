"""Removes what the catalog no longer has: the rest of a dropped query, and what a cut-off statement left behind.

A statement that ended between two of its steps, with the server, may have left a state, a row of the ledger or a
directory that no query claims. Nothing is remembered of such steps: each reconciliation compares what is there with the
queries of the catalog, and removes the rest.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Mapping

from catalog.model import Query
from mvserver.errors import words_of
from mvserver.streaming.pipeline.held_history import EndedReaders
from mvserver.streaming.queries.engine_services import EngineServices
from mvserver.streaming.queries.held_histories import HeldHistories
from mvserver.streaming.queries.outputs import view_id_of
from mvserver.streaming.queries.running import RunningQuery
from mvserver.streaming.queries.source_pipelines import SourcePipelines
from mvserver.views.feeds import query_of
from mvserver.views.finishing import layout_of
from spark_sinks.duckdb.names import state_name
from spark_sinks.duckdb.state.state import main_table

_log = logging.getLogger(__name__)


def _forget(query_id: str, forget: Callable[[], None]) -> None:
    """By a thread of its own: nobody is to wait for a store that does not answer."""
    try:
        forget()
    except Exception as error:  # noqa: BLE001 - the query is gone all the same, and what is left harms nobody
        _log.warning("a store still has the position of query %s, which is gone: %s", query_id, words_of(error))


class OrphanCleanUp:
    """All calls are made in the turn of a statement."""

    def __init__(
        self, services: EngineServices, sources: SourcePipelines, histories: HeldHistories, ended: EndedReaders
    ) -> None:
        self._services = services
        self._sources = sources
        self._histories = histories
        self._ended = ended

    def drop(self, known: RunningQuery) -> None:
        """Ends a query and removes its state, its place in the ledger and what it alone has read through. What reads or
        writes a store stops in a thread of its own: the turn is not held while a store does not answer."""
        self._end_output(known)
        writer, feeds = self._services.writer, known.feeds
        for feed in feeds:
            feed.pipeline.remove(feed.subscriber.query_id)
        if known.pipeline is not None:
            known.pipeline.remove(known.query.id)
        try:
            with writer.transaction() as ledger:  # behind the last batch that it was in
                for query_id in (known.query.id, *(feed.subscriber.query_id for feed in feeds)):
                    ledger.drop_subscriber(query_id)
                if known.subscriber is not None:
                    target, tables = known.subscriber.target, () if known.derived is None else known.derived.tables
                    writer.drop_state((*layout_of(target).tables, *tables), target.view_id)
        finally:  # what is left in the file is swept with the next statement, which finds no more what read for it
            self._leave_sources(known)

    def _leave_sources(self, known: RunningQuery) -> None:
        for feed in known.feeds:
            self._sources.leave(feed.pipeline, feed.subscriber.target.plan.scan.relation_id)
        if known.pipeline is not None and known.subscriber is not None:
            self._sources.leave(known.pipeline, known.subscriber.target.plan.scan.relation_id)

    def _end_output(self, known: RunningQuery) -> None:
        query, writing = known.query, known.sink or known.relay
        if writing is None:
            return

        def end() -> None:
            writing.stop()
            if known.forget_output is not None:
                arguments = (query.id, known.forget_output)
                threading.Thread(target=_forget, args=arguments, name=f"forget-{query.id[:8]}", daemon=True).start()
            if known.sink is None:
                return
            with self._services.writer.transaction() as ledger:  # behind the last batch, which may have noted more
                ledger.drop_subscriber(query.id)
                for relation_id in query.source_ids:
                    if not self._services.catalog.queries.of_source(relation_id):
                        ledger.drop_rejected(relation_id)
            self._ended.forget(query.id, known.sink.reader, self._services.work_directory / query.id)

        writing.give_up()
        self._ended.end(query.id, end)

    def sweep(self, wanted: Mapping[str, Query]) -> None:
        """``wanted``: the queries of the catalog by id. All of them are taken up already."""
        self._drop_states(wanted)
        self._drop_subscribers(wanted)
        self._drop_pipelines()
        self._let_go_histories(wanted)

    def _drop_states(self, wanted: Mapping[str, Query]) -> None:
        writer = self._services.writer
        versions = {state_name(view_id_of(q), q.definition_version) for q in wanted.values()}
        sinks = {view_id_of(q) for q in wanted.values()}
        tables = [t for t in writer.state_tables() if main_table(t) not in versions]
        views = [v for v in writer.view_ids() if v not in sinks]
        if tables or views:
            with writer.transaction():
                for view_id in views:
                    writer.drop_state((), view_id)
                writer.drop_state(tables, None)

    def _drop_subscribers(self, wanted: Mapping[str, Query]) -> None:
        writer = self._services.writer
        known = [*(row.query_id for row in writer.ledger_subscribers()), *writer.ledger_sinks()]
        rows = [query_id for query_id in known if query_of(query_id) not in wanted]
        if rows:
            with writer.transaction() as ledger:
                for query_id in rows:
                    ledger.drop_subscriber(query_id)

    def _drop_pipelines(self) -> None:
        """Those that have neither a subscriber in the ledger nor one that lives without it."""
        with self._services.writer.transaction() as ledger:
            unused = [each for each in ledger.unused_pipelines() if not self._sources.is_in_use(each)]
            for pipeline_id in unused:
                ledger.drop_pipeline(pipeline_id)
        for pipeline_id in unused:
            shutil.rmtree(self._services.work_directory / pipeline_id, ignore_errors=True)

    def _let_go_histories(self, wanted: Mapping[str, Query]) -> None:
        """Those whose reader is neither a pipeline that is there, or is claimed in the ledger, nor a query."""
        writer = self._services.writer
        self._histories.let_go(
            [
                row
                for row in writer.ledger_histories()
                if row.reader_id not in wanted
                and not self._sources.is_in_use(row.reader_id)
                and not writer.is_subscribed(row.reader_id)
            ]
        )
