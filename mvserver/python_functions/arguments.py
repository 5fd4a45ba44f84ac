"""Columns of Arrow as values of Python."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa


def values_of(column: pa.ChunkedArray, kind: str) -> list[Any]:
    """Instants come without a zone: pyarrow would look for a file of time zones."""
    values: list[Any] = column.to_pylist()
    if kind == "TIMESTAMP_LTZ":
        return [None if each is None else each.replace(tzinfo=dt.UTC) for each in values]
    if kind == "ARRAY<TIMESTAMP_LTZ>":
        return [
            None if each is None else [None if part is None else part.replace(tzinfo=dt.UTC) for part in each]
            for each in values
        ]
    return values
