"""Results of LIST, DESCRIBE and the like: Python rows as Arrow batches, a column's Arrow type given by its oid."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from mvserver.front import Field, Result
from mvserver.limits import RESULT_CHUNK_ROWS
from mvserver.types import oids

_ARROW = {
    oids.BOOL: pa.bool_(),
    oids.INT8: pa.int64(),
    oids.TEXT: pa.string(),
    oids.JSON: pa.string(),
    oids.FLOAT8: pa.float64(),
    oids.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    oids.BYTEA: pa.binary(),
}


def fields(*columns: tuple[str, int]) -> tuple[Field, ...]:
    return tuple(Field(name, oid, oids.SIZES.get(oid, -1)) for name, oid in columns)


def result(tag: str, columns: Sequence[Field], rows: Iterable[Sequence[Any]]) -> Result:
    return Result(tag, tuple(columns), _batches(columns, rows))


def batch(columns: Sequence[Field], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    arrays = [pa.array([row[i] for row in rows], _ARROW[c.type_oid]) for i, c in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(c.name, _ARROW[c.type_oid]) for c in columns]))


def _batches(columns: Sequence[Field], rows: Iterable[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
    chunk: list[Sequence[Any]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == RESULT_CHUNK_ROWS:
            yield batch(columns, chunk)
            chunk = []
    if chunk:
        yield batch(columns, chunk)


def done(tag: str) -> Result:
    """The outcome of a statement without rows."""
    return Result(tag)


def moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def json_text(value: Mapping[str, Any] | Sequence[Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def json_object(pairs: Iterable[tuple[str, Any]]) -> str:
    return json.dumps(dict(pairs), ensure_ascii=False)
