"""Results of a few rows, fetched whole: an Arrow reader costs DuckDB as much again as the look-up itself.

Python's values do not hold every value that DuckDB's types have (infinite times, years beyond 9999 or before Christ):
where one is among the rows, the caller reads them as Arrow instead. Rows of numbers and texts alone stay as they are,
and become Arrow's arrays only where somebody asks for them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from mvserver import limits
from mvserver.front import KeptRows, PlainRows

_EDGES: frozenset[Any] = frozenset({
    datetime.date.min, datetime.date.max, datetime.datetime.min, datetime.datetime.max,
    datetime.datetime.min.replace(tzinfo=datetime.UTC), datetime.datetime.max.replace(tzinfo=datetime.UTC),
})  # fmt: skip
_PLAIN: tuple[tuple[Any, type], ...] = (
    (pa.types.is_integer, int), (pa.types.is_string, str), (pa.types.is_decimal, Decimal),
    (pa.types.is_float64, float), (pa.types.is_boolean, bool),
)  # fmt: skip


def plain_types(types: Sequence[Any]) -> tuple[type, ...]:
    """Python's types for columns of numbers and texts; none where there is another column among them."""
    found = [next((python for holds, python in _PLAIN if holds(kind)), None) for kind in types]
    return tuple(python for python in found if python is not None) if None not in found else ()


def fetch(
    cursor: duckdb.DuckDBPyConnection, names: Sequence[str], types: tuple[Any, ...], plain: tuple[type, ...]
) -> PlainRows | pa.RecordBatch | None:
    """All rows of the statement just executed; None where they are more than a few, or have to be read as Arrow."""
    rows = cursor.fetchmany(limits.FEW_ROWS_MAX + 1)
    cursor.abort()  # what is read is read; without it the connection counts as busy
    if len(rows) > limits.FEW_ROWS_MAX:
        return None
    if plain:
        # of other types than when the query was planned: its view may have been made anew
        return PlainRows(rows, types) if all(_is_of(row, plain) for row in rows) else None
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    if any(pa.types.is_temporal(kind) and not _held(column) for kind, column in zip(types, columns, strict=True)):
        return None
    try:
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    except (pa.ArrowException, TypeError):
        return None  # the columns are of other types than when the query was planned
    return pa.record_batch(arrays, list(names))


def batches(rows: PlainRows | KeptRows, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    values = rows.values
    if values:
        columns = zip(*values, strict=True)
        yield pa.record_batch(
            [pa.array(column, kind) for column, kind in zip(columns, rows.types, strict=True)], list(names)
        )


def _is_of(row: tuple[Any, ...], plain: tuple[type, ...]) -> bool:
    return len(row) == len(plain) and all(
        value is None or type(value) is python for value, python in zip(row, plain, strict=True)
    )


def _held(column: Sequence[Any]) -> bool:
    """Infinity comes as the last moment that Python knows, a year that it has not as text."""
    return all(value is None or (type(value) is not str and value not in _EDGES) for value in column)
