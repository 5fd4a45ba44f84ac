"""Replacing and deleting rows by their key: files are read again where they may have such rows, and written without
them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, GreaterThanOrEqual, In, LessThanOrEqual

from spark_sinks.iceberg.limits import ICEBERG_KEYS_LISTED_MAX

_AT = "number of the row"


def may_have(keys: pa.Table) -> BooleanExpression:
    """A condition that holds for every row of one of these keys, and may hold for others: files are found by it."""
    found: BooleanExpression = AlwaysTrue()
    for name in keys.column_names:
        column = keys.column(name)
        if column.null_count or pa.types.is_binary(column.type) or pa.types.is_time(column.type):
            continue
        values: list[Any] = pc.unique(column).to_pylist()
        if len(values) <= ICEBERG_KEYS_LISTED_MAX:
            found = And(found, In(name, values))  # type: ignore[call-arg, arg-type]
        else:
            least, most = min(values), max(values)
            found = And(found, And(GreaterThanOrEqual(name, least), LessThanOrEqual(name, most)))  # type: ignore[call-arg]
    return found


def without(batches: Iterator[pa.RecordBatch], keys: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows of other keys."""
    for batch in batches:
        yield from _without(pa.Table.from_batches([batch]), keys).to_batches()


def _without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    names = keys.column_names
    numbered = rows.select(names).append_column(_AT, pa.array(range(rows.num_rows), pa.int64()))
    others = numbered.join(keys, names, join_type="left anti").column(_AT)
    return rows if len(others) == rows.num_rows else rows.take(others.sort())
