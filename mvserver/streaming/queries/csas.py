"""CREATE STREAM AS, CREATE TABLE AS and INSERT INTO: records of one stream, evaluated by Spark, written elsewhere.

Each such query has a Spark query of its own, so that a slow sink never holds up a view. The position up to which the
source is written lives with the sink, in the transaction of what is written: it alone says where the next start begins.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from catalog.model import Query
from mvserver import sqlstates
from mvserver.compiler.plans import ContinuousPlan, ErrorHandling
from mvserver.errors import SqlError, words_of
from mvserver.streaming.api import QueryState, QueryStatus
from mvserver.streaming.batch.evaluate import SchemasWanted, check_schemas, make_known
from mvserver.streaming.batch.rejected import rejected_rows
from mvserver.streaming.pipeline.attempts import attempts
from mvserver.streaming.pipeline.batch_size import BatchSize
from mvserver.streaming.pipeline.evaluator import can_be_smaller, known_schemas, limit_s
from mvserver.streaming.pipeline.generation import run_batches
from mvserver.streaming.pipeline.pipeline import PipelineServices
from mvserver.streaming.pipeline.source_watch import explained, health_of
from mvserver.streaming.pipeline.stall import Stall
from mvserver.streaming.pipeline.subscribers import Member, Rate, obstacle_of, stands_for
from mvserver.streaming.queries.outgoing import BatchForm, Evaluation, WritingBatches
from mvserver.streaming.spark.batch_watch import BatchOverran, BatchTooLarge, BatchUnwanted, Bound, run_watched
from mvserver.streaming.spark.errors import blame, is_data_error, sql_error
from mvserver.streaming.spark.guard import Range
from mvserver.streaming.spark.isolation import IsolatedError
from mvserver.streaming.spark.state import SparkLostError, SparkState
from spark_sinks.base import KeptPosition, Position, RefusedLetterError, SourceReader
from spark_sinks.duckdb.ledger.ledger import encode

_log = logging.getLogger(__name__)
_RENEW_S = 86_400.0  # brokers forget a group's position some days after its last commit
_FULL = 0.9  # a batch of so many of the records that it may have: more of them wait
_LOOK_S = 0.2


class SinkQuery:
    """Runs between ``start`` and ``stop``, both of which may come again."""

    def __init__(
        self,
        query: Query,
        plan: ContinuousPlan,
        reader: SourceReader,
        form: BatchForm,
        evaluation: Evaluation,
        kept: KeptPosition,
        services: PipelineServices,
    ) -> None:
        """``kept`` has where the query begins, if its source keeps its history for it from there on."""
        self._query = query
        self._plan = plan
        self._reader = reader
        self._form = form
        self._kept = kept
        self._services = services
        self._evaluation = evaluation
        self._program = evaluation.program()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._position: Position | None = None
        self._latest: Position | None = None
        self._generation = 0
        self._stall = Stall()
        self._size = BatchSize(min(services.records_per_trigger, form.pace.rows_max or services.records_per_trigger))
        self._failure: str | None = None
        self._rate_in, self._rate_out = Rate(), Rate()
        self._records_in = self._rejected = self._epoch = 0
        self._last_change_at: float | None = None
        self._written_at = time.monotonic()
        self.application: tuple[Member, ...] = ()  # they fail together

    @property
    def reader(self) -> SourceReader:
        return self._reader

    @property
    def generation(self) -> int:
        """How often it has begun in this process."""
        return self._generation

    @property
    def failure(self) -> str | None:
        return self._failure

    @property
    def obstacle(self) -> str | None:
        is_terminated = not self._threads
        return None if is_terminated or self._failure is None else stands_for(self._query.id, self._failure)

    def _is_held(self) -> bool:
        return obstacle_of(self.application) is not None

    def begin(self) -> None:
        """In the turn of its statement: one that begins with the latest records begins now, and does so once."""
        held = self._reader.held
        if held is None or self._kept.read() is not None:
            return
        start = self._reader.adopt(json.loads(self._query.start_position), fresh=True)
        if held.is_settled(start):
            self._kept.write(start)

    def start(self) -> None:
        self._stopping.clear()
        self._failure, self._stall = None, Stall()
        self._threads = [
            threading.Thread(target=self._run, name=f"sink-{self._query.id[:8]}", daemon=True),
            threading.Thread(target=self._watch, name=f"sink-health-{self._query.id[:8]}", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def give_up(self) -> None:
        """It stops soon, and nothing is waited for."""
        self._stopping.set()
        self._reader.give_up()

    def stop(self) -> None:
        self.give_up()
        for thread in self._threads:
            thread.join()
        self._threads = []
        self._reader.close()

    def _run(self) -> None:
        for _ in attempts(self._stopping):
            try:
                if not self._is_held():
                    self._run_generation()
            except Exception as error:  # noqa: BLE001 - whatever ended the query is shown as its cause
                self._noted(error)
            if self._failure is not None:
                return

    def _run_generation(self) -> None:
        session = self._services.session(self._stopping.is_set)
        with self._services.guard.noticing(session):
            self._run_generation_in(session)

    def _run_generation_in(self, session: SparkSession) -> None:
        guard, query_id = self._services.guard, self._query.id
        records_max = guard.records_max(query_id, self._size.records_max)
        sink = self._form.open(self._stopping.is_set)
        try:
            start = self._position = self._start(sink.committed_position(expected=self._epoch > 0))
            self._generation += 1
            checkpoint = self._services.work_directory / self._query.id / f"checkpoint-{self._generation}"

            def ended() -> bool:
                return (
                    self._stopping.is_set()
                    or self._failure is not None
                    or self._is_held()
                    or self._renewal_is_due()
                    or not guard.is_current(session)
                    or records_max < guard.records_max(query_id, self._size.records_max)
                )

            def write(frame: Callable[[], DataFrame], batch_id: int) -> None:
                with self._stall.at_work():
                    records = self._write(session, sink, frame, batch_id, str(checkpoint))
                if records < _FULL * records_max:
                    self._rest(ended)

            run_batches(
                session,
                self._reader,
                start,
                checkpoint,
                records_per_trigger=records_max,
                on_batch=write,
                ended=ended,
                running=self._set_running,
            )
            if self._renewal_is_due():
                sink.renew(self._position)
                self._written_at = time.monotonic()
        finally:
            sink.close()

    def _start(self, written: Position | None) -> Position:
        """Once something was written the sink has where that is. Before, it is where the query began: what has come
        since then is its own, though nothing of it passed."""
        held = self._reader.held
        if written is None and held is not None:
            written = self._kept.read()
        if written is not None:
            return written
        start = self._reader.adopt(json.loads(self._query.start_position), fresh=True)
        if held is None:
            return start
        held.settle(start, self._begin_at)
        assert self._position is not None  # noqa: S101 - just assigned
        return self._position

    def _begin_at(self, position: Position) -> None:
        """From here on the source is told that no more than what is before it may go."""
        self._kept.write(position)
        self._position = position

    def _rest(self, ended: Callable[[], bool]) -> None:
        """Between two writes of a form that is not to be written to all the time. What comes meanwhile is one batch."""
        until = time.monotonic() + self._form.pace.interval_s
        while not ended() and (left := until - time.monotonic()) > 0:
            self._stopping.wait(min(left, _LOOK_S))

    def _renewal_is_due(self) -> bool:
        return time.monotonic() - self._written_at > _RENEW_S

    def _set_running(self, running: bool) -> None:
        self._stall.running = running

    def _write(
        self,
        session: SparkSession,
        sink: WritingBatches,
        frame: Callable[[], DataFrame],
        batch_id: int,
        checkpoint: str,
    ) -> int:
        """How many records the batch had."""
        start = self._position
        assert start is not None  # noqa: S101 - set before the generation runs
        end = self._reader.batch_end(checkpoint, batch_id, start)
        services, whole = self._services, Range(self._query.id, self._reader.positions, start, end)
        with services.guard.evaluating(session, whole, services.gate.admitted(), self._stopping.is_set):
            table = self._evaluated(frame(), start, end)
        rejected = self._reject(table)
        table = table.filter(table.column("passing"))
        self._reader.confirm(start)
        self._services.reached("before sink")
        sink.write(table, end)
        self._written_at = time.monotonic()
        self._services.reached("after sink")
        self._position = end
        records = self._reader.positions.distance(start, end)
        self._records_in += records
        self._rejected += rejected
        self._epoch += 1
        self._rate_in.add(records)
        self._rate_out.add(table.num_rows)
        self._last_change_at = time.time()
        self._stall.committed()
        self._size.succeeded(records)
        return records

    def _evaluated(self, frame: DataFrame, start: Position, end: Position) -> pa.Table:
        records = self._reader.positions.distance(start, end)
        bound = Bound(
            records,
            limit_s=limit_s(self._reader.positions, start, end, records, self._services.batch_timeout_s),
            notice_s=self._services.batch_timeout_s,
            noticed=self._stall.failed,
            unwanted=self._stopping.is_set,
        )
        try:
            return run_watched(frame.sparkSession, bound, lambda: self._collected(frame))
        except Exception as error:
            if can_be_smaller(error, self._reader.positions, start, end):
                if isinstance(error, BatchOverran):
                    self._size.overran()
                    raise
                if self._size.was_too_large(records):
                    raise BatchTooLarge(records, self._size.records_max) from error
            own = blame(error)
            if own is None:
                raise
            raise own from error

    def _collected(self, frame: DataFrame) -> pa.Table:
        while True:
            if self._program.functions:
                known = known_schemas(self._reader, [self._plan.scan])
                self._program = self._evaluation.program(known)
            table = self._rows(frame).toArrow()
            try:
                check_schemas(table, self._program)
            except SchemasWanted as wanted:
                assert self._reader.schemas is not None  # noqa: S101 - else it would have been refused
                self._reader.schemas.fetch(wanted.ids)
            else:
                return table

    def _rows(self, frame: DataFrame) -> DataFrame:
        program = self._program
        make_known(frame.sparkSession, program)
        for stage in program.stages:
            frame = frame.selectExpr("*", *stage)
        frame = frame.where(program.keep or "true").selectExpr(
            "key", "record_time", "position", *program.flags, *program.columns
        )
        rejected = [name for _, name in program.rejected]
        return frame.selectExpr(*self._evaluation.selected(program), *rejected)

    def _reject(self, table: pa.Table) -> int:
        rows, counts = rejected_rows(table, self._program.rejected, self._reader)
        if not rows:
            return 0
        if self._plan.scan.error_handling is ErrorHandling.TERMINATE:
            raise SqlError(
                sqlstates.DATA_EXCEPTION, f"record {rows[0].position} cannot be decoded", detail=rows[0].reason + "."
            )
        if self._plan.scan.error_handling is ErrorHandling.IGNORE_AND_LOG:
            with self._services.writer.transaction() as ledger:
                ledger.reject(rows)
        return sum(counts.values())

    def _noted(self, error: Exception) -> None:
        """The thread goes on whatever hinders it in telling whose failure it was."""
        try:
            self._note(error)
        except Exception:  # noqa: BLE001 - shown as the cause, and tried again
            self._stall.failed(words_of(error))
            _log.exception("what ended query %s could not be noted: %s", self._query.id, words_of(error))

    def _note(self, error: BaseException) -> None:
        if self._stopping.is_set():
            return
        if isinstance(error, BatchUnwanted):
            return
        if isinstance(error, SparkLostError):  # all queries show it as long as Spark is not there
            _log.info("query %s stopped: %s", self._query.id, error.detail)
            return
        if isinstance(error, IsolatedError) and error.ahead and self._size.was_too_large():
            _log.info("query %s goes on with at most %s records a batch", self._query.id, self._size.records_max)
            return
        is_cancelled = isinstance(error, SqlError) and error.sqlstate == sqlstates.QUERY_CANCELED
        if isinstance(error, (BatchOverran, BatchTooLarge)):
            self._stall.failed(words_of(error))
        elif is_data_error(error) or isinstance(error, (IsolatedError, RefusedLetterError)) or is_cancelled:
            self._failure = str(sql_error(error))
        elif self._position is None:  # the sink could not be opened
            self._stall.failed(words_of(error))
        else:
            health = health_of(self._reader, self._position)
            if health.state == "failed":
                self._failure = health.cause
            elif health.state == "stalled" and health.cause:
                self._stall.silent(health.cause)
            else:
                self._stall.failed(words_of(explained(self._reader, error, self._position)))
        _log.warning("query %s stopped: %s", self._query.id, self._failure or self._stall.cause)

    def _watch(self) -> None:
        while not self._stopping.is_set():
            position = self._position
            if position is not None:
                try:
                    if self._failure is None:  # else nobody reads it: the source is left in peace
                        self._look(position)
                    self._release()
                except Exception as error:  # noqa: BLE001 - shown as the query's state; the next look tries again
                    self._stall.failed(words_of(error))
                    _log.exception("the source of query %s could not be looked after", self._query.id)
            self._stopping.wait(self._services.health_interval_s)

    def _look(self, position: Position) -> None:
        health = health_of(self._reader, position)
        self._latest = health.latest or self._latest
        if health.state == "failed":
            if self._position is not None and encode(self._position) == encode(position):  # else it has read on since
                self._failure = self._failure or health.cause
        elif health.state == "stalled":
            self._stall.silent(health.cause or "the source does not answer")
        else:
            latest = health.latest
            self._stall.seen_well(lambda: None if latest is None else self._reader.positions.distance(position, latest))

    def _release(self) -> None:
        """What the sink has is durable."""
        if self._reader.held is not None:
            self._reader.held.release(self._needed)

    def _needed(self) -> Sequence[Position]:
        """As it is when the source asks, which may have assigned it only now."""
        return [] if self._position is None else [self._position]

    def status(self, spark: SparkState) -> QueryStatus:
        position = self._position or {}
        lag = None if self._latest is None or not position else self._reader.positions.distance(position, self._latest)
        state, error = self._state(spark)
        return QueryStatus(
            query_id=self._query.id,
            state=state,
            error=error,
            rows_in_per_s=self._rate_in.per_second(),
            rows_out_per_s=self._rate_out.per_second(),
            rows_in=self._records_in if self._reader.positions.counts_records else None,
            rejected=self._rejected,
            position=json.dumps(position, sort_keys=True),
            latest_position=json.dumps(self._latest or {}, sort_keys=True),
            lag_records=lag,
            last_change_at=self._last_change_at,
            caught_up=state is QueryState.RUNNING and lag == 0,
            epoch=self._epoch,
        )

    def _state(self, spark: SparkState) -> tuple[QueryState, str | None]:
        if not self._threads:
            return QueryState.TERMINATED, None
        if self._failure is not None:
            return QueryState.FAILED, self._failure
        others = obstacle_of(self.application)
        if others is not None:
            return QueryState.FAILED, others
        if spark.problem is not None:
            return QueryState.FAILED, spark.problem
        if spark.interruption is not None:
            return QueryState.STALLED, spark.interruption
        cause = self._stall.cause
        if cause is not None:
            return QueryState.STALLED, cause
        return (QueryState.RUNNING if self._stall.running else QueryState.STARTING), None
