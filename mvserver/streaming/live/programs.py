"""The programs of a live run, side by side in one query of Spark's.

Views that make several rows of a record (UNNEST, windows that overlap) have programs of their own, as in a batch. A
live run has one query for all. It makes of each record the rows of each program; the last one is that of the views
with one row a record, and says that the record is complete. A program sees the records as NULLs in rows that are not
its own, so that each record is decoded once for each program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from mvserver.streaming.batch.evaluate import TIME, make_known, names_of, row_columns, row_frame
from mvserver.streaming.batch.program import Program, build_program, program_groups
from mvserver.streaming.batch.record_order import SELECTED, with_order
from mvserver.streaming.batch.spark_calls import select_expressions
from mvserver.views.targets import Target
from mvserver.views.windowing import spread_key
from spark_sinks.base import RecordOrder
from spark_sinks.duckdb.record_columns import PROGRAM
from spark_sinks.schema_registry.base import KnownSchemas

WHOLE = 0  # the number of the row that is each record's last
_RECORD = "mv_record"


@dataclass(frozen=True)
class LivePrograms:
    """``spread`` make several rows of a record. ``whole`` is of all other views; None where there are none."""

    whole: Program | None
    spread: tuple[Program, ...]

    def frame(self, records: DataFrame, order: RecordOrder) -> DataFrame:
        """All rows, also of records that no view wants: they move the position. Without ``spread`` each record is a
        row; else the rows tell their program, and have its columns in a structure."""
        if self.whole is not None and not self.spread:
            return row_frame(records, replace(self.whole, keep=None), order)
        columns = records.columns
        numbers = ", ".join(str(number) for number in (*range(1, len(self.spread) + 1), WHOLE))
        kept: tuple[str, ...] = (*SELECTED, _RECORD, PROGRAM)
        frame = select_expressions(
            with_order(records, order),
            (*SELECTED, f"struct({', '.join(columns)}) AS {_RECORD}", f"explode(array({numbers})) AS {PROGRAM}"),
        )
        for number, program in self._numbered():
            own = f"CASE WHEN {PROGRAM} = {number} THEN"
            frame = select_expressions(frame, (*kept, *(f"{own} {_RECORD}.{name} END AS {name}" for name in columns)))
            make_known(frame.sparkSession, program)
            for stage in program.stages:
                frame = select_expressions(frame, ("*", *stage))
            frame = select_expressions(frame, (*kept, *row_columns(program)))
            packed = f"{own} struct({', '.join(names_of(row_columns(program)))}) END AS {_rows(number)}"
            frame = select_expressions(frame, (*kept, packed))
            kept = (*kept, _rows(number))
        rows = (name for name in kept if name != _RECORD)
        return select_expressions(frame, (*rows, f"{_RECORD}.{TIME} AS {TIME}"))

    def parts(self, rows: pa.Table) -> Iterator[tuple[Program, pa.Table]]:
        """The rows of each program, with its own columns; ``rows`` are such of :meth:`frame`, in one chunk."""
        if self.whole is not None and not self.spread:
            yield self.whole, rows
            return
        for number, program in self._numbered():
            own = rows.filter(pc.equal(rows.column(PROGRAM), number))
            arrays = own.column(_rows(number)).combine_chunks().flatten()
            others = {name: own.column(name) for name in (TIME, *SELECTED)}
            yield program, pa.table({**dict(zip(names_of(row_columns(program)), arrays, strict=True)), **others})

    def _numbered(self) -> Iterator[tuple[int, Program]]:
        yield from enumerate(self.spread, WHOLE + 1)
        if self.whole is not None:
            yield WHOLE, self.whole


def live_programs(targets: Sequence[Target], schemas: KnownSchemas) -> LivePrograms:
    """Trial programs: what these are not sure of is left to a batch."""
    whole: Program | None = None
    spread: list[Program] = []
    for together in program_groups(targets):
        program = build_program(together, trial=True, schemas=schemas)
        if spread_key(together[0].plan.scan) is None:
            whole = program
        else:
            spread.append(program)
    return LivePrograms(whole, tuple(spread))


def _rows(number: int) -> str:
    return f"mv_rows_{number}"
