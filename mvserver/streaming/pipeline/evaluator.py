"""Evaluates a batch: chooses the program and the mode, and finds the view that a failing expression belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from mvserver import limits, sqlstates
from mvserver.compiler.plans import Scan
from mvserver.errors import SqlError
from mvserver.streaming.batch.evaluate import (
    NOTHING,
    Evaluated,
    SchemasWanted,
    WholeProgramNeeded,
    combined,
    evaluate_partials,
    evaluate_rows,
)
from mvserver.streaming.batch.program import Program, build_program, program_groups
from mvserver.streaming.batch.scan_decoding import needs_schemas
from mvserver.streaming.pipeline.evaluated_batch import Share
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.batch_watch import BatchOverran, BatchUnwanted, Bound, run_watched
from mvserver.streaming.spark.errors import blame, is_too_large
from mvserver.views.targets import Target
from spark_sinks.base import Position, Positions, SourceReader
from spark_sinks.duckdb.state.state import UpsertState
from spark_sinks.rows_frame import ROWS_MAX, RowsFrame
from spark_sinks.schema_registry.base import NO_SCHEMAS, KnownSchemas

ROW_MODE_RECORDS_MAX = 20_000  # below, shipping evaluated records is cheaper than a shuffle (measured)
SINGLE_TASK_RECORDS_MAX = ROWS_MAX
REDUCTION_WORTH = 0.1  # partial rows per record above which grouping in Spark does not pay (measured)
TRIAL_PAUSE_BATCHES = 50  # after a batch that needed the whole decoder, this many go straight to it
RECORDS_MIN = 100  # a batch that took too long is not made smaller than this: one of so few is somebody's fault
GROWTH = 16  # by so much the next batch may be larger, once few records were evaluated in time
HONEST_RECORDS_MIN = 50_000  # of a single file, which cannot be divided: so many may take a whole timeout
_LOOK_AGAIN_BATCHES = 20
_PROGRAMS_MAX = 50  # cached; a program belongs to one set of subscribers, and sets change


def limit_s(positions: Positions, start: Position, end: Position, records: int, timeout_s: float) -> float:
    """How long a batch may take. One that cannot be divided, as a large file, may take longer, by its records."""
    return (
        timeout_s
        if positions.divisible(start, end, RECORDS_MIN)
        else timeout_s * max(1.0, records / HONEST_RECORDS_MIN)
    )


def can_be_smaller(error: Exception, positions: Positions, start: Position, end: Position) -> bool:
    """Whether a batch failed for its size, and fewer records can be tried: nobody is to blame for it yet."""
    if isinstance(error, BatchOverran):
        return positions.divisible(start, end, RECORDS_MIN)
    return is_too_large(error) and positions.divisible(start, end, 1)


class BatchEvaluator:
    """Of one pipeline. Remembers how well grouping reduced the rows, and whether records need the whole decoder."""

    def __init__(
        self,
        reader: SourceReader,
        fail: Callable[[Subscriber, SqlError], None],
        *,
        timeout_s: float = limits.BATCH_TIMEOUT_S,
        still_wants: Callable[[Subscriber], bool] = lambda subscriber: True,
        noticed: Callable[[str, Sequence[Share]], None] = lambda words, shares: None,
    ) -> None:
        """``still_wants`` says of a subscriber whether a long batch goes on for it; ``noticed`` is told of a batch that
        takes longer than ``timeout_s``."""
        self._reader = reader
        self._fail = fail
        self._timeout_s = timeout_s
        self._still_wants = still_wants
        self._noticed = noticed
        self._programs: dict[tuple[str, ...], Program] = {}
        self._groupings: dict[tuple[str, ...], _Grouping] = {}
        self._trial_pause = 0

    def forget(self) -> None:
        """The set of subscribers has changed."""
        self._programs.clear()
        self._groupings.clear()

    def evaluate(
        self, frame: DataFrame, shares: list[Share], records: int, *, tasks_max: int | None = None
    ) -> tuple[Evaluated, list[Share]]:
        """Evaluates all; where a record's value fails an expression, each alone, and the culprits fail alone.

        A batch that takes too long, or comes to too many bytes, is raised as long as it can be made smaller. A batch of
        few records cannot: then each view evaluates it alone too, and whoever takes too long or too much fails. So a
        large and slow, but honest batch is only divided, and nobody is blamed for it.
        """
        if records <= SINGLE_TASK_RECORDS_MAX and not isinstance(frame, RowsFrame):  # which is one task's as it is
            frame = frame.coalesce(1)
        elif tasks_max is not None and not isinstance(frame, RowsFrame):
            frame = frame.coalesce(tasks_max)
        while True:
            try:
                return self._watched(frame, shares, records), shares
            except BatchUnwanted:
                left = [share for share in shares if self._still_wants(share.subscriber)]
                if not left or len(left) == len(shares):
                    raise
                shares = left
            except Exception as error:
                if (
                    not shares
                    or blame(error) is None
                    or can_be_smaller(error, self._reader.positions, shares[0].start, shares[0].end)
                ):
                    raise
                return self._each_alone(frame, shares, records)

    def _each_alone(self, frame: DataFrame, shares: Sequence[Share], records: int) -> tuple[Evaluated, list[Share]]:
        parts, good = [], []
        for share in shares:
            try:
                parts.append(self._watched(frame, [share], records))
            except Exception as error:
                own = blame(error)
                if own is None:
                    raise
                self._fail(share.subscriber, own)
            else:
                good.append(share)
        return (combined(parts) if parts else NOTHING), good

    def _watched(self, frame: DataFrame, shares: Sequence[Share], records: int) -> Evaluated:
        whole = shares[0] if shares else None
        bound = Bound(
            records,
            limit_s=self._timeout_s
            if whole is None
            else limit_s(self._reader.positions, whole.start, whole.end, records, self._timeout_s),
            notice_s=self._timeout_s,
            noticed=lambda words: self._noticed(words, shares),
            unwanted=lambda: not all(self._still_wants(share.subscriber) for share in shares),
        )
        return run_watched(frame.sparkSession, bound, lambda: self._together(frame, shares, records))

    def _together(self, frame: DataFrame, shares: Sequence[Share], records: int) -> Evaluated:
        targets = [share.subscriber.target for share in shares]
        if not targets:
            return NOTHING
        while True:
            try:
                return self._tried(frame, targets, records)
            except SchemasWanted as wanted:
                assert self._reader.schemas is not None  # noqa: S101 - else it would have been refused
                self._reader.schemas.fetch(wanted.ids)

    def _tried(self, frame: DataFrame, targets: Sequence[Target], records: int) -> Evaluated:
        if self._trial_pause == 0:
            try:
                return self._run_programs(frame, targets, records, trial=True)
            except WholeProgramNeeded:
                self._trial_pause = TRIAL_PAUSE_BATCHES
        else:
            self._trial_pause -= 1
        return self._run_programs(frame, targets, records, trial=False)

    def _run_programs(self, frame: DataFrame, targets: Sequence[Target], records: int, *, trial: bool) -> Evaluated:
        grouped: list[Target] = []
        parts = []
        for together in program_groups(filter(_can_be_grouped, targets)) if records > ROW_MODE_RECORDS_MAX else ():
            grouping = self._grouping(together)
            if grouping.pays():
                part = evaluate_partials(frame, self._program(together, trial), self._reader)
                grouping.reduction = part.rows / records
                parts.append(part)
                grouped.extend(together)
        parts.extend(
            evaluate_rows(frame, self._program(together, trial), self._reader)
            for together in program_groups(t for t in targets if t not in grouped)
        )
        return combined(parts)

    def _grouping(self, targets: Sequence[Target]) -> _Grouping:
        """Of these together: what nine views do not reduce, a tenth one that is filled by itself may."""
        if len(self._groupings) > _PROGRAMS_MAX:
            self._groupings.clear()
        return self._groupings.setdefault(_key(targets), _Grouping())

    def _program(self, targets: Sequence[Target], trial: bool) -> Program:
        schemas = known_schemas(self._reader, (target.plan.scan for target in targets))
        key = (str(trial), str(schemas.version), *_key(targets))
        program = self._programs.get(key)
        if program is None:
            if len(self._programs) > _PROGRAMS_MAX:
                self._programs.clear()
            program = self._programs[key] = build_program(targets, trial=trial, schemas=schemas)
        return program


def known_schemas(reader: SourceReader, scans: Iterable[Scan]) -> KnownSchemas:
    """Those of a registry that records of the scans are decoded by; 55000 where the store names none."""
    if not any(map(needs_schemas, scans)):
        return NO_SCHEMAS
    if reader.schemas is None:
        raise SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the store names no schema registry",
            hint="Name one with UPDATE STORE name WITH ('schema_registry.name' = registry).",
        )
    return reader.schemas.known()


@dataclass
class _Grouping:
    """How well Spark's grouping of large batches does for a set of subscribers."""

    reduction: float = 0.0  # partial rows per record, when it was last measured
    _large_batches: int = 0

    def pays(self) -> bool:
        """By the last measured reduction; looked at again now and then, since data change."""
        self._large_batches += 1
        return self.reduction < REDUCTION_WORTH or self._large_batches % _LOOK_AGAIN_BATCHES == 0


def _key(targets: Sequence[Target]) -> tuple[str, ...]:
    return tuple(f"{t.query_id}:{t.state.table}" for t in targets)


def _can_be_grouped(target: Target) -> bool:
    """Whether Spark may aggregate its records: not where each is judged by those before it."""
    return isinstance(target.state, UpsertState) and target.state.windowing is None
