"""Rows as an Arrow IPC stream. A column whose Arrow type does not mean what PostgreSQL's does is text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from mvserver.front import Field, Notice
from mvserver.types import arrays, oids, strings
from mvserver.types.column import TEXT_FORMAT, Column
from mvserver.types.registry import encoder, natural_oid

TYPE_KEY = b"postgresql.type"

_NUMBERS = {oids.INT2: pa.int16(), oids.INT4: pa.int32(), oids.INT8: pa.int64()}
_BY_OID = {
    **_NUMBERS,
    oids.BOOL: pa.bool_(),
    oids.FLOAT4: pa.float32(),
    oids.FLOAT8: pa.float64(),
    oids.BYTEA: pa.binary(),
    oids.DATE: pa.date32(),
    oids.TIME: pa.time64("us"),
    oids.TIMESTAMP: pa.timestamp("us"),
    oids.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
}


class _Sink:
    """What Arrow writes to: keeps the bytes until they are taken."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: Any) -> int:
        raw = bytes(data)
        self._parts.append(raw)
        return len(raw)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Bytes may still be taken."""

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class ArrowWriter:
    def __init__(self, fields: Sequence[Field], zone: str) -> None:
        self._fields = tuple(fields)
        self._zone = zone
        self._sink = _Sink()
        self._stream: Any = None
        self._schema: Any = None

    def begin(self) -> bytes:
        return b""

    def rows(self, batch: Any) -> bytes:
        columns = [
            _column(field, column, self._zone) for field, column in zip(self._fields, batch.columns, strict=True)
        ]
        if self._stream is None:
            self._open([column.type for column in columns])
        columns = [
            column if column.type.equals(wanted) else column.cast(wanted)
            for column, wanted in zip(columns, self._schema.types, strict=True)
        ]
        self._stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        return self._sink.take()

    def end(self, tag: str, notices: Sequence[Notice]) -> bytes:
        if self._stream is None:
            self._open([_BY_OID.get(field.type_oid, pa.string()) for field in self._fields])
        self._stream.close()
        return self._sink.take()

    def _open(self, types: Sequence[Any]) -> None:
        self._schema = pa.schema(
            [
                pa.field(field.name, arrow, metadata={TYPE_KEY: oids.type_name(field.type_oid).encode()})
                for field, arrow in zip(self._fields, types, strict=True)
            ]
        )
        self._stream = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), self._schema)


def _column(field: Field, column: Column, zone: str) -> Column:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _says(field.type_oid, column.type):
        wanted = _NUMBERS.get(field.type_oid)
        return column if wanted is None else column.cast(wanted)
    return encoder(field.type_oid, field.typmod, TEXT_FORMAT, column.type, zone).column(column).cast(pa.string())


def _says(oid: int, arrow: Any) -> bool:
    """Whether the Arrow type means what the PostgreSQL type does."""
    inner = arrays.element_oid(oid)
    if inner is not None and arrays.is_list(arrow):
        return _says(inner, arrays.leaf_type(arrow))
    if strings.is_text(arrow):
        return oid in strings.OIDS or oid in (oids.UUID, oids.JSON, oids.JSONB) or oid >= oids.OWN_FIRST
    if strings.is_bytes(arrow):
        return oid == oids.BYTEA
    natural = natural_oid(arrow)
    return natural == oid or (oid in _NUMBERS and natural in _NUMBERS)
