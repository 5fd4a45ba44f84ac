"""Reading a stream or changelog from a position to its present end, once: for pull queries that ask for it.

Nothing is kept of it: a reader of its own in a folder of its own, rounds of bounded size through the evaluator that
views have, and rows in memory within a bound.
"""

from __future__ import annotations

import json
import shutil
import threading
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from mvserver import limits, sqlstates
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.plans import ErrorHandling, Projection
from mvserver.errors import SqlError
from mvserver.streaming.batch.evaluate import Evaluated
from mvserver.streaming.pipeline.batch_size import BatchSize
from mvserver.streaming.pipeline.evaluated_batch import Share
from mvserver.streaming.pipeline.evaluator import BatchEvaluator
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.push.push import PushSubscriber
from mvserver.streaming.spark.batch_watch import BatchOverran, BatchUnwanted
from mvserver.streaming.spark.errors import is_too_large
from mvserver.streaming.spark.guard import Range, SparkGuard
from mvserver.streaming.spark.isolation import READ
from mvserver.streaming.spark.session import SparkGate
from mvserver.views.targets import Target, build_target
from spark_sinks.base import Position, SourceReader
from spark_sinks.duckdb.changes.changelog import KeyedRows
from spark_sinks.duckdb.changes.rows_now import RowsNow
from spark_sinks.duckdb.state.state import AppendState

_NAME = "bounded"  # of what such a read has instead of a query and a view
_ROUND_MIN = 100  # records: the first round is not smaller than this
_GROWTH = 4  # by so much the next round may be larger


class BoundedReads:
    """Those of the server: so many at a time, since each holds its rows in memory."""

    def __init__(
        self,
        session: Callable[[Callable[[], bool]], SparkSession],
        gate: SparkGate,
        work_directory: Path,
        guard: SparkGuard,
        timeout_s: float = limits.BATCH_TIMEOUT_S,
    ) -> None:
        self._guard = guard
        self._session = session
        self._timeout_s = timeout_s
        self._gate = gate
        self._work = work_directory
        self._turns = threading.Semaphore(limits.BOUNDED_READS_MAX)

    def read(
        self,
        plan: Projection,
        positions: tuple[str, str],
        make_reader: Callable[[Path], SourceReader],
        rows_max: int | None,
        stopped: Callable[[], bool],
    ) -> pa.Table:
        """``positions`` are where to begin and where the source ends; at most ``rows_max`` rows are wanted."""
        while not self._turns.acquire(timeout=0.25):
            _refuse_stopped(stopped)
        work = self._work / f"bounded-{uuid.uuid4()}"
        try:
            reader = make_reader(work)
            try:
                # First the end: it is what a fresh reader has of the source.
                end = reader.adopt(json.loads(positions[1]), fresh=True)
                start = reader.adopt(json.loads(positions[0]), fresh=False)
                return self._rows(plan, reader, (start, end), rows_max, stopped)
            finally:
                reader.close()
        finally:
            shutil.rmtree(work, ignore_errors=True)
            self._turns.release()

    def _rows(
        self,
        plan: Projection,
        reader: SourceReader,
        span: tuple[Position, Position],
        rows_max: int | None,
        stopped: Callable[[], bool],
    ) -> pa.Table:
        with closing(_Versions(plan) if over_changelog(plan) else _Passing(plan)) as rows:
            evaluator = BatchEvaluator(
                reader, _fail, timeout_s=self._timeout_s, still_wants=lambda subscriber: not stopped()
            )
            start, end = span
            first = None if rows_max is None else max(_ROUND_MIN, rows_max)
            size = BatchSize(limits.BOUNDED_ROUND_RECORDS_MAX, first=first, growth=_GROWTH)
            while not reader.positions.reached(start, end) and (rows_max is None or rows.count < rows_max):
                _refuse_stopped(stopped)
                following = reader.positions.advance(start, reader.positions.limit(start, end, size.records_max))
                try:
                    evaluated = self._round(rows.target, reader, evaluator, start, following, stopped)
                except BatchUnwanted:
                    continue  # the next look says why
                except BatchOverran:
                    size.overran()
                    continue
                except Exception as error:
                    if is_too_large(error) and size.was_too_large():
                        continue
                    raise reader.health.explain_failure(error, start) from error
                reader.confirm(start)
                rows.take(evaluated)
                size.succeeded(reader.positions.distance(start, following))
                start = following
            if rows.columns_unknown:
                rows.take(self._round(rows.target, reader, evaluator, start, start, stopped))
            whole = rows.table()
        return whole if rows_max is None else whole.slice(0, rows_max)

    def _round(
        self,
        target: Target,
        reader: SourceReader,
        evaluator: BatchEvaluator,
        start: Position,
        end: Position,
        stopped: Callable[[], bool],
    ) -> Evaluated:
        subscriber = PushSubscriber(target, 1, start, target.plan.scan.error_handling, filled=True)
        records = reader.positions.distance(start, end)
        session = self._session(stopped)
        whole = Range(READ + target.plan.scan.relation_id, reader.positions, start, end)
        with (
            self._guard.noticing(session),
            self._guard.evaluating(session, whole, self._gate.admitted(), stopped),
        ):
            frame = reader.batch(session, start, end)
            evaluated, _ = evaluator.evaluate(frame, [Share(subscriber, start, end, records)], records)
        if subscriber.policy is ErrorHandling.TERMINATE and evaluated.rejected:
            first = evaluated.rejected[0]
            raise SqlError(
                sqlstates.DATA_EXCEPTION,
                f"record {first.position} cannot be decoded",
                detail=first.reason + ".",
                hint="'source.deserialization.error.handling' = 'IGNORE' leaves such records out.",
            )
        return evaluated


class _Passing:
    """The rows of a stream: those of each record that passes."""

    def __init__(self, plan: Projection) -> None:
        self.target = Target(_NAME, _NAME, plan, AppendState("", ()), delivered=True)
        self.count = 0
        self._plan = plan
        self._found: list[pa.Table] = []
        self._bytes = 0

    @property
    def columns_unknown(self) -> bool:
        """Whether no record was there to tell them: a round of none does."""
        return not self._found

    def take(self, evaluated: Evaluated) -> None:
        (delivery,) = evaluated.deliveries
        self._found.append(delivery.rows)
        self.count += delivery.rows.num_rows
        self._bytes += delivery.rows.nbytes
        if self._bytes > limits.BOUNDED_READ_BYTES_MAX:
            raise _too_large(self._plan)

    def table(self) -> pa.Table:
        return pa.concat_tables(self._found)

    def close(self) -> None:
        self._found.clear()


class _Versions:
    """The rows of a changelog: the last version of each, where it was not deleted."""

    columns_unknown = False
    count = 0  # no number of them is enough: what comes later may replace or delete any

    def __init__(self, plan: Projection) -> None:
        self.target = build_target(_NAME, _NAME, 1, plan)
        self._plan = plan
        assert isinstance(self.target.state, KeyedRows)  # noqa: S101 - a projection of a changelog
        self._rows = RowsNow(self.target.state)

    def take(self, evaluated: Evaluated) -> None:
        try:
            for merge in evaluated.merges:
                self._rows.take(merge)
        except MemoryError as error:
            raise _too_large(self._plan) from error

    def table(self) -> pa.Table:
        found = self._rows.table([output.name for output in self._plan.outputs])
        if found.nbytes > limits.BOUNDED_READ_BYTES_MAX:
            raise _too_large(self._plan)
        return found

    def close(self) -> None:
        self._rows.close()


def _fail(subscriber: Subscriber, error: SqlError) -> None:
    raise error


def _refuse_stopped(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")


def _too_large(plan: Projection) -> SqlError:
    return SqlError(
        sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
        f'"{plan.scan.relation}" has more than a query may read at once',
        detail=f"The columns that it needs come to more than {limits.BOUNDED_READ_BYTES_MAX >> 20} MiB.",
        hint="Create a materialized view over it, name fewer columns, or use a LIMIT without ORDER BY.",
    )
