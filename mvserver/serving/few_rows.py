"""Results of a few rows, fetched whole: an Arrow reader costs DuckDB as much again as the look-up itself.

Python's values do not hold every value that DuckDB's types have (infinite times, years beyond 9999 or before Christ):
where one is among the rows, the caller reads them as Arrow instead.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from mvserver import limits

_EDGES: frozenset[Any] = frozenset({
    datetime.date.min, datetime.date.max, datetime.datetime.min, datetime.datetime.max,
    datetime.datetime.min.replace(tzinfo=datetime.UTC), datetime.datetime.max.replace(tzinfo=datetime.UTC),
})  # fmt: skip


def fetch(cursor: duckdb.DuckDBPyConnection, names: Sequence[str], types: Sequence[Any]) -> pa.RecordBatch | None:
    """All rows of the statement just executed; None where they are more than a few, or have to be read as Arrow."""
    rows = cursor.fetchmany(limits.FEW_ROWS_MAX + 1)
    cursor.abort()  # what is read is read; without it the connection counts as busy
    if len(rows) > limits.FEW_ROWS_MAX:
        return None
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    if any(pa.types.is_temporal(kind) and not _held(column) for kind, column in zip(types, columns, strict=True)):
        return None
    try:
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    except (pa.ArrowException, TypeError):
        return None  # the columns are of other types than when the query was planned
    return pa.record_batch(arrays, list(names))


def _held(column: Sequence[Any]) -> bool:
    """Infinity comes as the last moment that Python knows, a year that it has not as text."""
    return all(value is None or (type(value) is not str and value not in _EDGES) for value in column)
