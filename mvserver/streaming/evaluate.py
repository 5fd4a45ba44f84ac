"""Runs a program over a frame of raw records: one Spark job, an Arrow table, and what each view merges from it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone gives it

from mvserver.streaming.program import Program, ViewInput
from mvserver.streaming.rejected import rejected_rows
from mvserver.streaming.spark_calls import collect, select_expressions
from spark_sinks.base import SourceReader
from spark_sinks.duckdb.ledger import RejectedRow
from spark_sinks.duckdb.writer import TableMerge, ViewMerge

_RELATION = "mv_batch"
_TIME = "record_time"


class WholeProgramNeeded(Exception):  # noqa: N818 - not an error: the batch asks for another way
    """A trial met a record that needs a closer look."""


@dataclass(frozen=True)
class Evaluated:
    """The driver's part of a batch, ready to be committed."""

    merges: tuple[TableMerge, ...]
    rejected: tuple[RejectedRow, ...]
    rejected_counts: Mapping[str, int]  # by relation id
    rows: int  # that came to the driver
    newest_s: float | None

    def without(self, query_ids: frozenset[str]) -> Evaluated:
        merges = tuple(
            TableMerge(m.table, tuple(v for v in m.views if v.query_id not in query_ids)) for m in self.merges
        )
        return Evaluated(merges, self.rejected, self.rejected_counts, self.rows, self.newest_s)


def evaluate_rows(frame: DataFrame, program: Program, reader: SourceReader) -> Evaluated:
    """Row mode: every record that matters to a view comes to the driver with its evaluated columns."""
    table = _collected(row_frame(frame, program), program, "rows")
    views = []
    for view in program.views:
        if view.outputs:
            views.append(ViewMerge(view.target.query_id, view.target.state, append=view.append_statement(_RELATION)))
        else:
            roll_ups = view.row_statements(_RELATION, null_keys=_has_nulls(table, view))
            values = view.value_statements(_RELATION, partial=False)
            views.append(ViewMerge(view.target.query_id, view.target.state, roll_ups=tuple(roll_ups), values=values))
    return _evaluated(table, tuple(views), program, reader)


def evaluate_partials(frame: DataFrame, program: Program, reader: SourceReader) -> Evaluated:
    """Partial mode: Spark aggregates at the finest grain; every rejected record stays a group of its own."""
    table = _collected(partial_frame(frame, program), program, "partials")
    views = tuple(
        ViewMerge(
            view.target.query_id,
            view.target.state,
            roll_ups=tuple(view.partial_statements(_RELATION, null_keys=_has_nulls(table, view))),
            values=view.value_statements(_RELATION, partial=True),
        )
        for view in program.views
    )
    return _evaluated(table, views, program, reader)


def row_frame(frame: DataFrame, program: Program) -> DataFrame:
    """A row per record: flags, keys, arguments, outputs, rejected records and the record's time."""
    for stage in program.stages:
        frame = select_expressions(frame, ("*", *stage))
    if program.keep is not None:
        frame = frame.where(program.keep)
    return select_expressions(frame, (*program.flags, *program.columns, _TIME))


def partial_frame(frame: DataFrame, program: Program) -> DataFrame:
    """A row per group at the finest grain: keys, rejected records, partial aggregates and the newest record's time."""
    partials = [F.expr(p.expression).alias(p.name) for p in program.partial_columns]
    grouped = row_frame(frame, program).groupBy(*program.group_columns)
    return grouped.agg(*partials, F.max(_TIME).alias(_TIME))


def _evaluated(table: pa.Table, views: tuple[ViewMerge, ...], program: Program, reader: SourceReader) -> Evaluated:
    rejected, counts = rejected_rows(table, program.rejected, reader)
    newest = pc.max(table.column(_TIME)).as_py() if table.num_rows else None
    columns = [name for name in table.column_names if name not in {c for _, c in program.rejected} and name != _TIME]
    return Evaluated(
        merges=(TableMerge(table.select(columns), views),),
        rejected=rejected,
        rejected_counts=counts,
        rows=table.num_rows,
        newest_s=newest.timestamp() if isinstance(newest, dt.datetime) else None,
    )


def _collected(frame: DataFrame, program: Program, shape: str) -> pa.Table:
    """Raises WholeProgramNeeded; else a trial's rejected columns are all NULL."""
    table = _normal(collect(frame, program.schemas, shape))
    if program.trial and any(table.column(name).null_count < table.num_rows for _, name in program.rejected):
        raise WholeProgramNeeded
    return table


def _has_nulls(table: pa.Table, view: ViewInput) -> bool:
    return any(table.column(key).null_count > 0 for key in view.keys)


def _normal(table: pa.Table) -> pa.Table:
    """Spark sends TIME in nanoseconds; DuckDB keeps microseconds."""
    for index, field in enumerate(table.schema):
        kept = _in_microseconds(field.type)
        if kept != field.type:
            table = table.set_column(index, field.name, table.column(index).cast(kept))
    return table


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_struct(kind):  # of FIRST_VALUE and LAST_VALUE
        return pa.struct([field.with_type(_in_microseconds(field.type)) for field in kind])
    return kind
