"""How a batch is evaluated: which program, in which mode, and whom a failing expression belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from mvserver.errors import SqlError
from mvserver.streaming.evaluate import Evaluated, WholeProgramNeeded, combined, evaluate_partials, evaluate_rows
from mvserver.streaming.program import Program, build_program
from mvserver.streaming.shares import Share
from mvserver.streaming.spark_errors import is_data_error, sql_error
from mvserver.streaming.subscribers import Subscriber
from mvserver.streaming.targets import Target
from mvserver.streaming.windowing import SpreadKey, spread_key
from spark_sinks.base import SourceReader
from spark_sinks.duckdb.state import UpsertState

ROW_MODE_RECORDS_MAX = 20_000  # below, shipping evaluated records is cheaper than a shuffle (measured)
SINGLE_TASK_RECORDS_MAX = 5_000  # below, starting several tasks costs more than they save (measured)
REDUCTION_WORTH = 0.1  # partial rows per record above which grouping in Spark does not pay (measured)
TRIAL_PAUSE_BATCHES = 50  # after a batch that needed the whole decoder, this many go straight to it
_LOOK_AGAIN_BATCHES = 20
_PROGRAMS_MAX = 50  # cached; a program belongs to one set of subscribers, and sets change


class BatchEvaluator:
    """Of one pipeline. Remembers how well grouping reduced the rows, and whether records need the whole decoder."""

    def __init__(self, reader: SourceReader, fail: Callable[[Subscriber, SqlError], None]) -> None:
        self._reader = reader
        self._fail = fail
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
        """Evaluates all; where a record's value fails an expression, each alone, and the culprits fail alone."""
        if records <= SINGLE_TASK_RECORDS_MAX:
            frame = frame.coalesce(1)
        elif tasks_max is not None:
            frame = frame.coalesce(tasks_max)
        try:
            return self._together(frame, shares, records), shares
        except Exception as error:
            if not shares or not is_data_error(error):
                raise
            good = []
            for share in shares:
                try:
                    self._together(frame, [share], records)
                except Exception as own:
                    if not is_data_error(own):
                        raise
                    self._fail(share.subscriber, sql_error(own))
                else:
                    good.append(share)
            return self._together(frame, good, records), good

    def _together(self, frame: DataFrame, shares: Sequence[Share], records: int) -> Evaluated:
        targets = [share.subscriber.target for share in shares]
        if not targets:
            return Evaluated((), (), {}, 0, None)
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
        for together in _programs(filter(_can_be_grouped, targets)) if records > ROW_MODE_RECORDS_MAX else ():
            grouping = self._grouping(together)
            if grouping.pays():
                part = evaluate_partials(frame, self._program(together, trial), self._reader)
                grouping.reduction = part.rows / records
                parts.append(part)
                grouped.extend(together)
        parts.extend(
            evaluate_rows(frame, self._program(together, trial), self._reader)
            for together in _programs(t for t in targets if t not in grouped)
        )
        return combined(parts)

    def _grouping(self, targets: Sequence[Target]) -> _Grouping:
        """Of these together: what nine views do not reduce, a tenth one that is filled by itself may."""
        if len(self._groupings) > _PROGRAMS_MAX:
            self._groupings.clear()
        return self._groupings.setdefault(_key(targets), _Grouping())

    def _program(self, targets: Sequence[Target], trial: bool) -> Program:
        key = (str(trial), *_key(targets))
        program = self._programs.get(key)
        if program is None:
            if len(self._programs) > _PROGRAMS_MAX:
                self._programs.clear()
            program = self._programs[key] = build_program(targets, trial=trial)
        return program


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


def _programs(targets: Iterable[Target]) -> list[list[Target]]:
    """Those that share a job: all but the ones that make several rows of a record."""
    found: dict[SpreadKey | None, list[Target]] = {}
    for target in targets:
        found.setdefault(spread_key(target.plan.scan), []).append(target)
    return list(found.values())
