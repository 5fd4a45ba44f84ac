"""Push queries: subscribers of a pipeline that live as long as their client reads, and are remembered nowhere.

They take part in the batches of their source as views do: each committed batch's rows are theirs, in order and once.
What is too much for them at a time, or comes while their client lags, they read again by rounds of their own.
"""

from __future__ import annotations

import logging
import shutil
import threading
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from catalog.model import Relation, Store
from catalog.store import Catalog
from mvserver import limits, sqlstates
from mvserver.compiler.plans import ContinuousPlan, ErrorHandling, Projection
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.held_history import forget_history
from mvserver.streaming.pipeline.pipeline import Pipeline
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.push.push_rows import PushRows
from mvserver.views.targets import Target
from spark_sinks.base import Position
from spark_sinks.duckdb.state.state import AppendState
from spark_sinks.duckdb.writer import Writer

_log = logging.getLogger(__name__)


@dataclass
class PushSubscriber(Subscriber):
    """``filled`` from the start: nobody waits for its history."""

    rows: PushRows = field(default_factory=PushRows)

    @property
    def kept(self) -> bool:
        return False

    @property
    def records_max(self) -> int | None:
        return limits.PUSH_BATCH_RECORDS_MAX

    def takes(self, records: int) -> bool:
        return records <= limits.PUSH_BATCH_RECORDS_MAX and not self.rows.full

    def deliver(self, rows: pa.Table) -> None:
        self.rows.put(rows)

    def fail(self, error: SqlError | str) -> None:
        super().fail(error)
        self.rows.end(push_error(error))


def push_error(error: SqlError | str) -> SqlError:
    """What a client is told of a failure: there is no query that it could restart."""
    if isinstance(error, str):
        return SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the push query cannot go on", detail=error)
    if error.hint is None or "RESTART" not in error.hint:
        return error
    return SqlError(
        error.sqlstate,
        error.message,
        detail=error.detail,
        hint=f"'source.deserialization.error.handling' = '{ErrorHandling.IGNORE.value}' leaves such records out.",
    )


def lost_source(catalog: Catalog, relation: Relation, store: Store | None) -> SqlError | None:
    """Why a source is not what it was when a push query began to read it; None where it is. A view has no store."""
    if catalog.relations.by_id(relation.id) is None:
        if catalog.relations.find(relation.schema_id, relation.name) is None:
            return SqlError(sqlstates.UNDEFINED_TABLE, f'{relation.kind} "{relation.name}" was dropped')
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f'{relation.kind} "{relation.name}" was replaced',
            hint="Run the query again.",
        )
    known = None if store is None else catalog.stores.by_id(store.id)
    if store is not None and (known is None or known.updated_at != store.updated_at):
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f'store "{store.name}" was changed',
            hint="Run the query again.",
        )
    return None


@dataclass(frozen=True)
class _Open:
    subscriber: PushSubscriber
    pipeline: Pipeline
    relation: Relation
    store: Store


class PushQueries:
    """Those that are open. All calls are made in the turn of a statement, which is handed in as a lock; ``close`` of
    the rows takes it, and ``end_all`` does without."""

    def __init__(
        self,
        turn: threading.RLock,
        catalog: Catalog,
        writer: Writer,
        work_directory: Path,
        pipelines: dict[str, Pipeline],
    ) -> None:
        self._turn = turn
        self._catalog = catalog
        self._writer = writer
        self._work = work_directory
        self._pipelines = pipelines
        self._open: dict[str, _Open] = {}
        self._ending: dict[str, threading.Event] = {}  # pipelines that are being stopped, by id
        self._refusing: SqlError | None = None

    def check_room(self, others: int = 0) -> None:
        """``others``: those that have a state."""
        if self._refusing is not None:
            raise self._refusing
        if len(self._open) + others >= limits.PUSH_QUERIES_MAX:
            raise SqlError(
                sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                f"the server runs at most {limits.PUSH_QUERIES_MAX} push queries at a time",
                hint="End one that is not needed any more, or read a materialized view.",
            )

    def open(
        self, plan: ContinuousPlan, position: Position, source: tuple[Store, Relation], pipeline: Pipeline
    ) -> PushRows:
        """The query reads from ``position`` on."""
        if not isinstance(plan, Projection):
            raise SqlError(sqlstates.INTERNAL_ERROR, "not the plan of a push query")
        query_id = str(uuid.uuid4())
        rows = PushRows(on_close=lambda: self._close(query_id))
        policy = plan.scan.error_handling
        subscriber = PushSubscriber(
            Target(query_id, query_id, plan, AppendState("", ()), delivered=True),
            1,
            position,
            policy if policy is ErrorHandling.TERMINATE else ErrorHandling.IGNORE,
            filled=True,
            rows=rows,
        )
        self._open[query_id] = _Open(subscriber, pipeline, source[1], source[0])
        pipeline.add(subscriber)
        if self._refusing is not None:
            subscriber.fail(self._refusing)
        return rows

    # --- the source changes -----------------------------------------------------------------------------------------
    def reconcile(self) -> None:
        """After the catalog has changed: a query whose source is not what it was ends."""
        for known in list(self._open.values()):
            error = lost_source(self._catalog, known.relation, known.store)
            if error is not None:
                known.pipeline.remove(known.subscriber.query_id)
                known.subscriber.fail(error)
                self._forget(known)

    def end_all(self, error: SqlError) -> None:
        """At shutdown; none begins from now on. A statement that hangs is not waited for."""
        self._refusing = error
        for known in list(self._open.values()):
            known.subscriber.fail(error)

    # --- ending -----------------------------------------------------------------------------------------------------
    def _close(self, query_id: str) -> None:
        with self._turn:
            known = self._open.get(query_id)
            if known is not None:
                known.pipeline.remove(query_id)
                self._forget(known)

    def _forget(self, known: _Open) -> None:
        """Nothing of it is left. A pipeline that nobody subscribes to any more ends, which takes a second: whoever
        closes a query does not wait for that, whoever begins one over the same source does."""
        self._open.pop(known.subscriber.query_id, None)
        pipeline = known.pipeline
        if pipeline.subscribers or self._pipelines.get(pipeline.id) is not pipeline:
            return
        del self._pipelines[pipeline.id]
        ended = threading.Event()
        self._ending = {key: event for key, event in self._ending.items() if not event.is_set()} | {pipeline.id: ended}
        name = f"end-{pipeline.id[:8]}"
        threading.Thread(target=self._end, args=(pipeline, ended), name=name, daemon=True).start()

    def _end(self, pipeline: Pipeline, ended: threading.Event) -> None:
        try:
            pipeline.stop()
            if self._writer.is_subscribed(pipeline.id):  # by a query that could not be set up
                return
            forget_history(pipeline.id, pipeline.reader, self._writer)
            with self._writer.transaction() as ledger:
                ledger.drop_pipeline(pipeline.id)
            shutil.rmtree(self._work / pipeline.id, ignore_errors=True)
        except Exception:  # noqa: BLE001 - logged; nobody waits for its outcome
            _log.exception("the pipeline of a push query could not be ended")
        finally:
            ended.set()

    def is_any_ending(self) -> bool:
        return any(not event.is_set() for event in self._ending.values())

    def is_ending(self, pipeline_id: str) -> bool:
        """Whether a pipeline is about to be forgotten by itself."""
        ending = self._ending.get(pipeline_id)
        return ending is not None and not ending.is_set()

    def wait_ended(self, pipeline_id: str) -> None:
        """Before a pipeline of this id is made: the former one has let go of its files and its ledger."""
        ending = self._ending.get(pipeline_id)
        if ending is not None:
            ending.wait()
