"""Rows as rows of a store's table: with the table's types, and of each key only what became of it last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mvserver import sqlstates
from mvserver.compiler.plans import Projection
from mvserver.errors import SqlError
from mvserver.streaming.batch.program import ViewInput
from mvserver.streaming.queries.outgoing import OfSink, Pace, outbox_position
from spark_sinks.base import Position, TableShape, TableSink
from spark_sinks.duckdb.changes.outbox import Pending

_AT, _GONE = "number of the row", "whether it is gone"


@dataclass(frozen=True)
class TableForm:
    """A :class:`Form`."""

    open_sink: Callable[[Callable[[], bool]], TableSink]
    shape: TableShape
    pace: Pace

    def selected(self, view: ViewInput, plan: Projection) -> Sequence[str]:
        return [f"{name} AS {_column(at)}" for at, name in enumerate(view.outputs)]

    def open(self, stopped: Callable[[], bool]) -> WritingRows:
        return WritingRows(self.open_sink(stopped), self.shape)


class WritingRows(OfSink):
    """A :class:`Writing`."""

    def __init__(self, sink: TableSink, shape: TableShape) -> None:
        super().__init__(sink)
        self._sink = sink
        self._shape = shape

    def write(self, table: pa.Table, position: Position) -> None:
        columns = [table.column(_column(at)) for at in range(len(self._shape.schema))]
        rows = pa.Table.from_arrays(columns, names=self._shape.schema.names)
        self._sink.write(self._typed(rows), self._no_keys(), position)

    def send(self, pending: Pending, incarnation: str) -> None:
        rows, gone = self._typed(pending.rows), self._no_keys()
        if self._shape.key:
            rows, gone = _last(rows, pending.deleted, self._shape.key)
        self._sink.write(rows, gone, outbox_position(incarnation, pending.last))

    def _no_keys(self) -> pa.Table:
        return self._shape.schema.empty_table().select(list(self._shape.key))

    def _typed(self, rows: pa.Table) -> pa.Table:
        """22-class errors fail the query: no later attempt makes the value fit."""
        try:
            return rows.cast(self._shape.schema)
        except (pa.ArrowInvalid, ValueError) as error:
            raise SqlError(
                sqlstates.DATA_EXCEPTION, "a value does not fit its column of the table", detail=f"{error}."
            ) from error


def _last(rows: pa.Table, deleted: Sequence[bool], key: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """The rows that are there at the end, and the keys of those that are not."""
    numbered = rows.append_column(_AT, pa.array(range(rows.num_rows), pa.int64()))
    lasts = numbered.group_by(list(key)).aggregate([(_AT, "max")]).column(f"{_AT}_max").sort()
    kept = rows.append_column(_GONE, pa.array(deleted, pa.bool_())).take(lasts)
    gone = kept.column(_GONE)
    return kept.filter(pc.invert(gone)).select(rows.column_names), kept.filter(gone).select(list(key))


def _column(at: int) -> str:
    return f"sink_{at}"
