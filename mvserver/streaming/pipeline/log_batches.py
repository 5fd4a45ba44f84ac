"""Batches of a log that DuckDB evaluates: its rows are there already, and no Spark job need be waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.derived import EVENT_TIME, ROW_MARK, has_marks
from mvserver.compiler.in_duckdb import in_duckdb
from mvserver.compiler.plans import Aggregation, Projection
from mvserver.streaming.batch.evaluate import Evaluated, evaluated_rows
from mvserver.streaming.batch.program import ViewInput
from mvserver.streaming.pipeline.evaluated_batch import Share
from mvserver.views import log_values
from mvserver.views.change_input import ChangeInput, contributed
from mvserver.views.targets import Target
from spark_sinks.base import LoggedRows, SourceReader
from spark_sinks.duckdb.changes.changelog import KeyedRows, RetractedState
from spark_sinks.duckdb.joins.join_sides import FeedState
from spark_sinks.duckdb.record_columns import DELETED, PARTITION, PLACE, RANK, SEGMENT

_FLAG, _KNOWN = "f", "known"
_ORDER = (f"'0' AS {PARTITION}", f"'0' AS {SEGMENT}", f"seq AS {PLACE}", f"0 AS {RANK}")


@dataclass(frozen=True)
class LogProgram:
    """``columns`` are selected from the rows of the log (seq, record_time, c0 ...) with the flag of those that pass;
    where the rows are only added, of those alone."""

    passing: str
    columns: tuple[str, ...]
    view: ViewInput

    def query(self, rows: str) -> str:
        whole = self.view.changes is not None
        return (
            f"SELECT {', '.join((_FLAG, *self.columns, 'record_time'))} FROM (SELECT *, {self.passing} AS {_FLAG} "
            f"FROM {rows}){'' if whole else f' WHERE {_FLAG}'}"
        )


def log_program(target: Target) -> LogProgram | None:
    """None for a query that needs Spark."""
    plan, scan = target.plan, target.plan.scan
    if target.delivered or not in_duckdb(plan):
        return None
    columns = _Columns()
    where = log_values.condition(plan.where, scan)
    passing = f"CASE WHEN NOT {DELETED} THEN {where} ELSE false END" if scan.kind == CHANGELOG else where
    view = _grouped(target, plan, columns) if isinstance(plan, Aggregation) else _projected(target, plan, columns)
    if view is None:
        return None
    if isinstance(target.state, RetractedState | KeyedRows):
        view = _with_changes(view, target.state, columns)
    if view.is_ordered:
        columns.selected.extend(_ORDER)
    return LogProgram(passing, tuple(columns.selected), view)


class LogBatches:
    """Of one log's pipeline."""

    def __init__(self, reader: SourceReader, rows: LoggedRows) -> None:
        self._reader = reader
        self._rows = rows
        self._programs: dict[tuple[str, str], LogProgram | None] = {}

    def evaluate(self, shares: Sequence[Share]) -> list[tuple[Evaluated, list[Share]]] | None:
        """Each share by itself. None where Spark must: for what DuckDB is not trusted with, and where a value fails an
        expression, since Spark says then whose it is."""
        parts: list[tuple[Evaluated, list[Share]]] = []
        for share in shares:
            evaluated = self._evaluate(share)
            if evaluated is None:
                return None
            parts.append((evaluated, [share]))
        return parts

    def _evaluate(self, share: Share) -> Evaluated | None:
        target = share.subscriber.target
        key = target.query_id, target.state.table
        if key not in self._programs:
            self._programs[key] = log_program(target)
        program = self._programs[key]
        table = None if program is None else self._rows.evaluated(program.query, share.start, share.end)
        return None if program is None or table is None else evaluated_rows(table, (program.view,), (), self._reader)


class _Columns:
    """What a row has more than its flag: only where it passes, for it may fail elsewhere."""

    def __init__(self) -> None:
        self.selected: list[str] = []

    def guarded(self, text: str) -> str:
        return self.plain(f"CASE WHEN {_FLAG} THEN {text} END")

    def plain(self, text: str) -> str:
        name = f"x{len(self.selected)}"
        self.selected.append(f"{text} AS {name}")
        return name


def _grouped(target: Target, plan: Aggregation, columns: _Columns) -> ViewInput:
    scan = plan.scan
    keys = tuple(columns.guarded(log_values.key(key, scan)) for key in plan.keys)
    arguments = tuple(
        "" if call.measure.values is not None else columns.guarded(log_values.argument(call.call, scan))
        for call in target.calls
    )
    values = tuple((columns.guarded(log_values.argument(call, scan)),) for call in target.value_calls)
    return ViewInput(target, _FLAG, keys, arguments, values=values, sets=plan.grouping_sets)


def _projected(target: Target, plan: Projection, columns: _Columns) -> ViewInput | None:
    scan = plan.scan
    outputs = tuple(columns.guarded(log_values.value(output.expression, scan)) for output in plan.outputs)
    view = ViewInput(target, _FLAG, outputs=outputs)
    if not isinstance(target.state, FeedState):
        return view
    if scan.kind == CHANGELOG or scan.timestamp != EVENT_TIME or target.state.side.watched is not None:
        return None
    places = {column.name: f"c{i}" for i, column in enumerate(scan.columns)}
    # Under a name of its own: what the source adds is left out of what is merged.
    times = (columns.guarded(f"epoch_us({places[EVENT_TIME]})"), columns.plain("record_time"))
    return replace(view, outputs=(*outputs, *times), mark=columns.plain(places[ROW_MARK]) if has_marks(scan) else None)


def _with_changes(view: ViewInput, state: RetractedState | KeyedRows, columns: _Columns) -> ViewInput:
    """A row of the log says of a key that its row is this one now, or gone."""
    if isinstance(state, RetractedState):
        rows, kept = state.rows, contributed(state, view.keys, view.arguments, view.values)
    else:
        rows, kept = state, view.outputs
    primary_key = tuple(columns.plain(f"c{i}") for i in range(len(view.target.plan.scan.primary_key)))
    columns.selected.append(f"true AS {_KNOWN}")
    return replace(view, changes=ChangeInput(primary_key, _KNOWN, _FLAG, kept, rows.identity_of(primary_key)))
