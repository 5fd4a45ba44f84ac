"""Runs a program over a frame of raw records: one Spark job, an Arrow table, and what each view merges from it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone gives it

from mvserver import limits
from mvserver.compiler.capabilities import bounded
from mvserver.streaming.batch.program import Program, ViewInput
from mvserver.streaming.batch.record_order import SELECTED, ranked, with_order
from mvserver.streaming.batch.rejected import rejected_rows
from mvserver.streaming.batch.spark_calls import collect, select_expressions
from mvserver.streaming.spark import python_functions
from mvserver.streaming.spark.record_functions import register
from spark_sinks.base import RecordOrder, SourceReader
from spark_sinks.decode.columns import WANTED
from spark_sinks.duckdb.batch_plans import TableMerge, ViewMerge
from spark_sinks.duckdb.ledger.ledger import RejectedRow
from spark_sinks.duckdb.state import sessions
from spark_sinks.duckdb.state.state import UpsertState
from spark_sinks.duckdb.state.windows import JUDGED, ON_TIME, Judging

_RELATION = "mv_batch"
TIME = "record_time"
_LIGHT_BYTES = 256  # of the texts of a row: those of a whole batch come to little, and are not added up


@dataclass(frozen=True)
class Delivery:
    """The rows of a batch for one push query, under their own names."""

    query_id: str
    rows: pa.Table


class SchemasWanted(Exception):  # noqa: N818 - not an error: the batch asks for them
    """Records of a batch have schemas that are not known yet."""

    def __init__(self, ids: Sequence[int]) -> None:
        super().__init__(f"schemas {', '.join(map(str, ids))} are not known yet")
        self.ids = ids


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
    deliveries: tuple[Delivery, ...] = ()

    def without(self, query_ids: frozenset[str]) -> Evaluated:
        merges = tuple(replace(m, views=tuple(v for v in m.views if v.query_id not in query_ids)) for m in self.merges)
        return replace(self, merges=merges)


NOTHING = Evaluated((), (), {}, 0, None)


def combined(parts: Sequence[Evaluated]) -> Evaluated:
    """Several programs over one batch. Rejected records are those of all of them; the ledger keeps each once by its
    position."""
    if len(parts) == 1:
        return parts[0]
    counts: dict[str, int] = {}
    for part in reversed(parts):
        counts.update(part.rejected_counts)
    return Evaluated(
        tuple(merge for part in parts for merge in part.merges),
        tuple(row for part in parts for row in part.rejected),
        counts,
        sum(part.rows for part in parts),
        next((part.newest_s for part in parts if part.newest_s is not None), None),
        tuple(delivery for part in parts for delivery in part.deliveries),
    )


def evaluate_rows(frame: DataFrame, program: Program, reader: SourceReader) -> Evaluated:
    """Row mode: every record that matters to a view comes to the driver with its evaluated columns."""
    order = reader.record_order if program.ordered else None

    def planned(records: DataFrame) -> DataFrame:
        return _weighed(row_frame(records, program, order), program, order)

    table = None
    if not program.functions and not program.own_functions:  # which a session may have forgotten, or be asked to
        table = program.kept.collected(frame, planned, program.schemas, "rows")
    if table is None:
        table = collect(planned(frame), program.schemas, "rows")
    table = _checked(table, program)
    if order is not None:
        table = ranked(table, reader)
    return evaluated_rows(table, program.views, program.rejected, reader)


def evaluate_arrived(table: pa.Table, program: Program, reader: SourceReader) -> Evaluated:
    """Rows of :func:`row_frame` that have come by themselves, each record's, with the columns of its order."""
    table = _normal(table)
    _check(table, program)
    if program.keep is not None:
        table = table.filter(reduce(pc.or_, [table.column(flag) for flag in program.flags]))
    table = ranked(table, reader) if program.ordered else table.drop_columns(SELECTED)
    return evaluated_rows(table, program.views, program.rejected, reader)


def evaluated_rows(
    table: pa.Table, inputs: Sequence[ViewInput], rejected: Sequence[tuple[str, str]], reader: SourceReader
) -> Evaluated:
    """What each view merges from the rows of a batch; ``rejected`` as in a program."""
    views = []
    deliveries = []
    for view in inputs:
        if view.target.delivered:
            deliveries.append(Delivery(view.target.query_id, _passing(table, view)))
        elif view.changes is not None:
            changes = view.changes.statement(_RELATION)
            views.append(ViewMerge(view.target.query_id, view.target.state, changes=changes, keeper=view.target.keeper))
        elif view.judging is not None:
            views.append(_judged(view, view.judging, null_keys=_has_nulls(table, view)))
        elif statements := view.take_statements(_RELATION):
            added = view.added_rows(_RELATION)
            views.append(ViewMerge(view.target.query_id, view.target.state, statements=statements, added=added))
        else:
            views.append(rolled_up(view, null_keys=_has_nulls(table, view)))
    return replace(_evaluated(table, tuple(views), rejected, reader), deliveries=tuple(deliveries))


def evaluate_partials(frame: DataFrame, program: Program, reader: SourceReader) -> Evaluated:
    """Partial mode: Spark aggregates at the finest grain; every rejected record stays a group of its own."""
    table = _checked(collect(partial_frame(frame, program), program.schemas, "partials"), program)
    views = tuple(
        ViewMerge(
            view.target.query_id,
            view.target.state,
            roll_ups=view.partial_roll_ups(_RELATION, null_keys=_has_nulls(table, view)),
            values=view.value_statements(_RELATION, partial=True),
            keeper=view.target.keeper,
            keys=view.changed_groups(_RELATION, partial=True),
        )
        for view in program.views
    )
    return _evaluated(table, views, program.rejected, reader)


def make_known(session: SparkSession, program: Program) -> None:
    """The functions that the program's texts call besides Spark's own."""
    register(session, program.functions)
    python_functions.register(session, program.own_functions)


def row_frame(frame: DataFrame, program: Program, order: RecordOrder | None = None) -> DataFrame:
    """A row per record: flags, keys, arguments, outputs, rejected records and the record's time, and its ``order``."""
    if order is not None:
        frame = with_order(frame, order)
    make_known(frame.sparkSession, program)
    for stage in program.stages:
        frame = select_expressions(frame, ("*", *stage))
    if program.keep is not None:
        frame = frame.where(program.keep)
    return select_expressions(frame, _row_columns(program, order))


def row_columns(program: Program) -> tuple[str, ...]:
    """What the stages of the program lead to; a column, or "expression AS name"."""
    return (*program.flags, *program.columns)


def names_of(columns: Sequence[str]) -> list[str]:
    """Of columns as :func:`row_columns` gives them."""
    return [column.rpartition(" AS ")[2] for column in columns]


def _row_columns(program: Program, order: RecordOrder | None) -> tuple[str, ...]:
    return (*row_columns(program), TIME, *(SELECTED if order else ()))


def _weighed(frame: DataFrame, program: Program, order: RecordOrder | None) -> DataFrame:
    """A task adds up the bytes of its texts, and gives up before they are more than it may send: Spark would collect
    them in memory first."""
    if not program.texts:
        return frame
    size = " + ".join(f"coalesce(octet_length({name}), 0L)" for name in program.texts)
    fits = f"{size} <= {_LIGHT_BYTES} OR {bounded.FITS}({size}, {limits.TASK_ROWS_BYTES_MAX}L)"
    names = names_of(_row_columns(program, order))
    kept = (name if name != TIME else f"CASE WHEN {fits} THEN {name} END AS {name}" for name in names)
    return select_expressions(frame, tuple(kept))


def partial_frame(frame: DataFrame, program: Program) -> DataFrame:
    """A row per group at the finest grain: keys, rejected records, partial aggregates and the newest record's time."""
    partials = [F.expr(p.expression).alias(p.name) for p in program.partial_columns]
    grouped = row_frame(frame, program).groupBy(*program.group_columns)
    return grouped.agg(*partials, F.max(TIME).alias(TIME))


def _evaluated(
    table: pa.Table, views: tuple[ViewMerge, ...], rejecting: Sequence[tuple[str, str]], reader: SourceReader
) -> Evaluated:
    rejected, counts = rejected_rows(table, rejecting, reader)
    found = pc.max(table.column(TIME)).as_py() if table.num_rows else None
    newest = found if isinstance(found, dt.datetime) else None
    columns = [name for name in table.column_names if name not in {c for _, c in rejecting} and name != TIME]
    return Evaluated(
        merges=(TableMerge(table.select(columns), views, newest),),
        rejected=rejected,
        rejected_counts=counts,
        rows=table.num_rows,
        newest_s=None if newest is None else newest.timestamp(),
    )


def _checked(table: pa.Table, program: Program) -> pa.Table:
    """Raises WholeProgramNeeded or SchemasWanted; else a trial's rejected columns are all NULL."""
    table = _normal(table)
    _check(table, program)
    return table


def _check(table: pa.Table, program: Program) -> None:
    check_schemas(table, program)
    if program.trial and any(table.column(name).null_count < table.num_rows for _, name in program.rejected):
        raise WholeProgramNeeded


def check_schemas(table: pa.Table, program: Program) -> None:
    """Raises SchemasWanted."""
    if not program.functions:
        return
    wanted: set[int] = set()
    for _, name in program.rejected:
        column = table.column(name)
        if column.null_count < len(column) and pa.types.is_struct(column.type):
            reasons = pc.struct_field(column, "reason")
            asking = reasons.filter(pc.fill_null(pc.starts_with(reasons, WANTED), False))
            wanted.update(int(reason[len(WANTED) :]) for reason in pc.unique(asking).to_pylist())
    if wanted:
        raise SchemasWanted(sorted(wanted))


def _passing(table: pa.Table, view: ViewInput) -> pa.Table:
    """The records that the query wants, with its columns; two of them may be one of the batch."""
    passing = table.filter(table.column(view.flag))
    names = [output.name for output in view.target.plan.outputs]
    return pa.Table.from_arrays([passing.column(name) for name in view.outputs], names=names)


def rolled_up(view: ViewInput, *, null_keys: bool) -> ViewMerge:
    """Its statements are texts that do not change from batch to batch."""
    known = view.merges.get(null_keys)
    if known is not None:
        return known
    made = view.merges[null_keys] = ViewMerge(
        view.target.query_id,
        view.target.state,
        roll_ups=view.row_roll_ups(_RELATION, null_keys=null_keys),
        values=view.value_statements(_RELATION, partial=False),
        keeper=view.target.keeper,
        keys=view.changed_groups(_RELATION, partial=False),
    )
    return made


def _judged(view: ViewInput, judging: Judging, *, null_keys: bool) -> ViewMerge:
    """Over a window: only records that are not late count, and the sessions of a batch are found first."""
    state = view.target.state
    assert isinstance(state, UpsertState)  # noqa: S101 - planned together
    assert state.windowing is not None  # noqa: S101
    counted, relation = replace(view, flag=ON_TIME), JUDGED
    if state.windowing.gap_us is not None:
        others = [key for key in view.keys if key not in (judging.start, judging.end)]
        relation = sessions.joined(JUDGED, others, judging.start, judging.end, ON_TIME)
        null_keys = False
    return ViewMerge(
        view.target.query_id,
        state,
        roll_ups=counted.row_roll_ups(relation, null_keys=null_keys),
        values=counted.value_statements(relation, partial=False),
        judging=judging,
        keeper=view.target.keeper,
        keys=view.changed_groups(_RELATION, partial=False),
    )


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
    if pa.types.is_list(kind):  # of ARRAY_AGG, and arrays of the records
        return pa.list_(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(_in_microseconds(kind.key_type)),
            kind.item_field.with_type(_in_microseconds(kind.item_type)),
        )
    return kind
