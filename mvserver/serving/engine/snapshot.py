"""A session's DuckDB cursor: runs planned queries, pins a transaction, can be interrupted from any thread."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.dialect.errors.duck_errors import translate
from mvserver.errors import SqlError
from mvserver.front import KeptRows, PlainRows, Result
from mvserver.pgcatalog.edge_macros import TRANSACTION_TIME
from mvserver.pgcatalog.system import SystemCatalog
from mvserver.quoting import constant
from mvserver.serving.api import Owner, PullPlan
from mvserver.serving.engine import long_arrays
from mvserver.serving.engine.abandonable_work import AbandonableWork, WorkAbandoned
from mvserver.serving.engine.admission import Admission
from mvserver.serving.engine.database import Database
from mvserver.serving.engine.memory_watch import MemoryWatch, Watched
from mvserver.serving.engine.missing_views import MissingViews
from mvserver.serving.engine.results import StreamedBatches, Watch
from mvserver.serving.fast import few_rows
from mvserver.serving.fast.evaluation import SELECT_TAG, Begun, Whole
from mvserver.visible_rows import told
from spark_sinks.duckdb.history.log import ELSEWHERE

T = TypeVar("T")


def reader_settings(system: SystemCatalog) -> tuple[str, ...]:
    """What makes a cursor answer as PostgreSQL does; for pull queries only, never for the cursors that merge."""
    return (
        f"SET search_path = '{system.functions_path}'",
        "SET integer_division = true",
        "SET default_null_order = 'nulls_last'",  # what differs from it, sqlglot writes out
        "SET python_enable_replacements = false",
        "SET TimeZone = 'UTC'",
    )


@dataclass(frozen=True)
class PullEngine:
    """What all snapshots share."""

    database: Database
    system: SystemCatalog
    admission: Admission
    missing: MissingViews
    abandonable: AbandonableWork
    memory: MemoryWatch


class DuckSnapshot:
    """Implements ``serving.api.Snapshot``. One statement at a time; ``interrupt`` may come from any thread."""

    def __init__(self, engine: PullEngine, own: Mapping[str, Callable[[], Any]], owner: Owner) -> None:
        self._system = engine.system
        self._own = own
        self._owner = owner
        self._admission = engine.admission
        self._missing = engine.missing
        self._abandonable = engine.abandonable
        self._memory = engine.memory
        self._notice = engine.database.damage.notice
        self._stopped_at: float | None = None  # when the statement was interrupted, perhaps waiting for its turn
        self._lost = False
        self._cursor = engine.database.cursor()
        for setting in reader_settings(self._system):
            self._cursor.execute(setting)
        self._statements: OrderedDict[str, duckdb.Statement] = OrderedDict()
        self._statement_characters = 0
        self._time_zone = "UTC"
        self._now: dt.datetime | None = None
        self._streams: tuple[str, ...] = ()  # tables of streams that are registered
        self._open: StreamedBatches | None = None
        self._pinned = False
        self._closed = False
        self._sleeping: threading.Event | None = None
        self._watched: Watched | None = None  # of an evaluation that others may wait for

    # --- transactions -----------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Pin: statements see the state that the first of them sees, until ``end``."""
        if not self._pinned:
            self._spool()
            self._cursor.execute("BEGIN")
            self._pinned = True

    def end(self) -> None:
        if self._pinned:
            self._revoke()
            self._pinned = False
            if not self._lost:
                self._cursor.execute("ROLLBACK")  # nothing was written

    @property
    def lost(self) -> bool:
        return self._lost

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._revoke()
            if not self._lost:
                self._cursor.close()

    def interrupt(self) -> None:
        self._stopped_at = self._stopped_at or time.monotonic()
        sleeping = self._sleeping
        if sleeping is not None:
            sleeping.set()
        if not self._closed and not self._lost:
            self._cursor.interrupt()

    def _explained(self, error: SqlError, plan: PullPlan) -> SqlError:
        return told(self._missing.explained(error, plan.view_ids), secured=plan.secured)

    # --- running ----------------------------------------------------------------------------------------------------
    def run(
        self,
        plan: PullPlan,
        parameters: Sequence[Any],
        *,
        timeout_s: float | None = None,
        tables: Mapping[str, Any] = MappingProxyType({}),
        now: dt.datetime | None = None,
    ) -> Result:
        """Start the query; rows come as they are asked for. The cursor is busy until the result is read or closed."""
        self._spool()
        self._stopped_at = None
        if plan.kind == "sleep":
            return self._sleep(plan, parameters, timeout_s)
        watch = Watch(self.interrupt, timeout_s, self._notice, secured=plan.secured)
        try:
            with self._turn():
                self._prepare(plan)
                self._set_now(plan, now)
                self._register_streams(tables)
                return self._start(plan, plan.values(parameters), watch)
        except SqlError:
            watch.stop()
            raise
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            watch.stop()
            raise self._explained(watch.translate(error), plan) from error

    def run_at_once(self, plan: PullPlan, parameters: Sequence[Any]) -> Result | None:
        if (
            self._open is not None
            or plan.reads_system
            or plan.live_relations
            or plan.streams
            or not self._admission.take()
        ):
            return None
        try:
            self._set_time_zone(plan.time_zone)
            self._set_now(plan, None)
            found = self._few(plan, plan.values(parameters))
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            self._notice(error)
            raise self._explained(translate(error), plan) from error
        finally:
            self._admission.give_back()
        return None if found is None else whole(plan, found)

    def rows_at_once(self, plan: PullPlan, text: str, parameters: list[Any]) -> list[tuple[Any, ...]] | None:
        """The rows of another text over the plan's view; None where they are more than a few, or there is no turn."""
        if not self._admission.take():
            return None
        try:
            self._set_time_zone(plan.time_zone)
            self._cursor.execute(self._statement(text), parameters)
            rows = self._cursor.fetchmany(limits.FEW_ROWS_MAX + 1)
            self._cursor.abort()
        finally:
            self._admission.give_back()
        return rows if len(rows) <= limits.FEW_ROWS_MAX else None

    # --- for several who ask the same -------------------------------------------------------------------------------
    def make_ready(self) -> None:
        """For ``evaluate``, by who began it; from here on it can be interrupted."""
        self._spool()
        self._stopped_at = None

    def leave(self) -> None:
        """Nobody waits for the evaluation any more."""
        if self._watched is not None:
            self._watched.leave()

    def evaluate(self, plan: PullPlan, parameters: Sequence[Any]) -> Whole | Begun:
        """On a thread whose work can be left."""
        watched: Watched | None = None
        try:
            with self._turn():
                self._set_time_zone(plan.time_zone)
                watched = self._watched = self._memory.begin(self.interrupt, self._owner)
                found = self._evaluated(plan, plan.values(parameters), watched)
        except BaseException as error:
            if watched is not None:
                watched.ended()  # by its own thread, whether it was left or not
                watched.check()
            if isinstance(error, duckdb.Error | OSError | pa.ArrowException):
                self._notice(error)
                raise self._explained(translate(error), plan) from error
            raise
        return found

    def _evaluated(self, plan: PullPlan, parameters: list[Any], watched: Watched) -> Whole | Begun:
        if plan.arrow_types and plan.runs.few:
            few = self._few(plan, parameters)
            if few is not None:
                watched.ended()
                return Whole.of(few)
            plan.runs.few = False
        reader = self._reader(plan, parameters)
        batches: list[pa.RecordBatch] = []
        size = rows = 0
        for batch in reader:
            batches.append(batch)
            size, rows = size + batch.nbytes, rows + batch.num_rows
            if size > limits.SHARED_RESULT_BYTES_MAX:
                plan.runs.large = True
                return Begun(tuple(batches), reader, watched)
        reader.close()
        watched.ended()
        self._finished(plan, watched, rows)
        return Whole(tuple(batches), few=rows <= limits.FEW_ROWS_MAX)

    def go_on(self, plan: PullPlan, begun: Begun) -> Result:
        """With what ``evaluate`` has begun."""
        watch = Watch(self.interrupt, None, self._notice, secured=plan.secured)
        return self._streamed(plan, begun.reader, watch, begun.watched, begun.batches)

    def _streamed(
        self,
        plan: PullPlan,
        reader: pa.RecordBatchReader,
        watch: Watch,
        watched: Watched,
        begun: Sequence[pa.RecordBatch] = (),
    ) -> Result:
        self._open = StreamedBatches(
            reader, watch, partial(self._finished, plan, watched), self._turn,
            partial(self._abandonable_run, watched, goes_on=True), watched.check, begun,
        )  # fmt: skip
        return Result(SELECT_TAG, plan.fields, self._open)

    # --- one run ----------------------------------------------------------------------------------------------------
    def _turn(self) -> AbstractContextManager[None]:
        return self._admission.taken(lambda: self._stopped_at is not None)

    def _abandonable_run(self, watched: Watched, work: Callable[[], T], *, goes_on: bool = False) -> T:
        """DuckDB's work, left where an interrupt does not end it soon: the cursor then is the work's, and closed by
        it. Whatever it raises after it has taken too much memory is that. The owner is admitted once for a query: not
        for what ``goes_on``."""

        def overdue() -> bool:
            stopped_at = self._stopped_at
            return stopped_at is not None and time.monotonic() - stopped_at >= limits.LEFT_AFTER_S

        def carried_out(left: Callable[[], bool]) -> T:
            return work()

        def ended() -> None:
            self._cursor.close()
            watched.ended()

        try:
            return self._abandonable.run(carried_out, self._owner, overdue, ended, watched.leave, goes_on=goes_on)
        except WorkAbandoned:
            self._lost = True
            watched.check_left()
            raise
        except Exception:
            watched.check()
            raise

    def _start(self, plan: PullPlan, parameters: list[Any], watch: Watch) -> Result:
        few = plan.arrow_types and plan.runs.few
        if few and plan.runs.short:
            found = self._few(plan, parameters)
            if found is not None:
                watch.stop()
                return whole(plan, found)
            few = plan.runs.few = False
        watched = self._memory.begin(self.interrupt, self._owner)
        try:
            if few:
                found = self._abandonable_run(watched, partial(self._few, plan, parameters))
                if found is not None:
                    watched.end()
                    watch.stop()
                    return whole(plan, found)
                plan.runs.few = False
            reader = self._abandonable_run(watched, partial(self._reader, plan, parameters), goes_on=bool(few))
        except BaseException:
            watched.end()
            raise
        return self._streamed(plan, reader, watch, watched)

    def _reader(self, plan: PullPlan, parameters: list[Any]) -> pa.RecordBatchReader:
        statement = self._statement(plan.sql)
        values = long_arrays.as_texts(plan.sql, parameters)
        relation = self._cursor.sql(statement, params=values) if values else self._cursor.sql(statement)
        return relation.to_arrow_reader(limits.RESULT_CHUNK_ROWS)

    def _few(self, plan: PullPlan, parameters: list[Any]) -> PlainRows | pa.RecordBatch | None:
        """The whole result, so that nothing stays open; None where it has to be streamed."""
        began = time.thread_time()  # what else runs on the machine makes no query a long one
        direct = None if self._pinned or plan.runs.replaced else plan.direct
        try:
            text = direct or plan.sql
            self._cursor.execute(self._statement(text), long_arrays.as_texts(text, parameters))
        except (duckdb.CatalogException, duckdb.InvalidInputException) as error:
            if direct is None or not (isinstance(error, duckdb.CatalogException) or ELSEWHERE in str(error)):
                raise
            if isinstance(error, duckdb.CatalogException):
                plan.runs.replaced = True  # the view's state was made anew since
            self._cursor.execute(self._statement(plan.sql), long_arrays.as_texts(plan.sql, parameters))
        found = few_rows.fetch(self._cursor, _names(plan), plan.arrow_types, plan.plain_types)
        plan.runs.took(time.thread_time() - began)
        return found

    def _prepare(self, plan: PullPlan) -> None:
        self._set_time_zone(plan.time_zone)
        if plan.reads_system:
            self._system.refresh(lambda: self._stopped_at is not None)
        for name in plan.live_relations:
            own = self._own.get(name)
            rows = self._live_rows(name) if own is None else own()
            self._cursor.register(self._system.live_name(name), rows)

    def _live_rows(self, name: str) -> pa.Table:
        """Those of mv_catalog are read with cursors of others, which no interrupt of ours ends."""
        return self._abandonable.run(
            lambda left: self._system.live_rows(name), self._owner, lambda: self._stopped_at is not None
        )

    def _register_streams(self, tables: Mapping[str, Any]) -> None:
        """Instead of those of an earlier query, which are not needed any more."""
        for name in self._streams:
            self._cursor.unregister(name)
        self._streams = tuple(tables)
        for name, table in tables.items():
            self._cursor.register(name, table)

    def _set_time_zone(self, zone: str) -> None:
        if zone != self._time_zone:
            self._cursor.execute(f"SET TimeZone = {constant(zone)}")
            self._time_zone = zone

    def _set_now(self, plan: PullPlan, now: dt.datetime | None) -> None:
        """DuckDB's own now() is the statement's where no snapshot is pinned."""
        if plan.reads_now and now != self._now:
            text = "RESET VARIABLE" if now is None else "SET VARIABLE"
            value = "" if now is None else f" = TIMESTAMPTZ '{now.isoformat()}'"
            self._cursor.execute(f"{text} {TRANSACTION_TIME}{value}")
            self._now = now

    def _statement(self, sql: str) -> duckdb.Statement | str:
        """Parsed once per cursor: parsing is a third of a small query's cost. A long one stays text: DuckDB then parses
        it as it runs it, and lets other threads work meanwhile, which ``extract_statements`` does not."""
        if len(sql) > limits.STATEMENT_KEPT_CHARACTERS_MAX:
            return sql
        found = self._statements.get(sql)
        if found is None:
            found = self._cursor.extract_statements(sql)[0]
            self._statements[sql] = found
            self._statement_characters += len(sql)
            while (
                len(self._statements) > limits.STATEMENT_CACHE_ENTRIES
                or self._statement_characters > limits.STATEMENT_CACHE_CHARACTERS
            ):
                oldest, _ = self._statements.popitem(last=False)
                self._statement_characters -= len(oldest)
        else:
            self._statements.move_to_end(sql)
        return found

    def _finished(self, plan: PullPlan, watched: Watched, rows: int | None) -> None:
        watched.end()
        self._open = None
        if rows is not None:
            plan.runs.few = rows <= limits.FEW_ROWS_MAX
            plan.runs.large = plan.runs.large and not plan.runs.few

    def _spool(self) -> None:
        """An open result blocks its connection: the rest of it is read aside."""
        if self._open is not None:
            self._open.spool()
            self._open = None

    def _revoke(self) -> None:
        if self._open is not None:
            self._open.revoke()
            self._open = None

    def _sleep(self, plan: PullPlan, parameters: Sequence[Any], timeout_s: float | None) -> Result:
        """pg_sleep alone: waits without a DuckDB thread."""
        wanted = float(parameters[0] if plan.sleep_s is None else plan.sleep_s)
        event = threading.Event()
        self._sleeping = event
        try:
            bound = min(wanted, limits.SLEEP_MAX_S)
            if timeout_s is not None and 0 < timeout_s < bound:
                if not event.wait(timeout_s):
                    raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to statement timeout")
            elif not event.wait(max(bound, 0.0)):
                return Result(SELECT_TAG, plan.fields, iter([pa.record_batch([pa.array([""])], names=["pg_sleep"])]))
        finally:
            self._sleeping = None
        raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")


def _names(plan: PullPlan) -> list[str]:
    return [field.name for field in plan.fields]


def whole(plan: PullPlan, found: PlainRows | KeptRows | pa.RecordBatch) -> Result:
    return Whole.of(found).result(plan)
