"""DataRow messages of a whole Arrow batch at once.

Cells come as Arrow columns; lengths, headers and cells are joined row by row by one kernel, so that a large result is
framed outside the interpreter's lock and leaves as one contiguous buffer. A handful of rows is cheaper by hand.
"""

from __future__ import annotations

import struct
import sys
from array import array as machine_array
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, KeptRows, PlainRows
from mvserver.types.column import Cells, Column, Encoder, fixed, join, literal
from mvserver.types.registry import encoder

_HEAD = struct.Struct("!ciH")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)
_BY_HAND_ROWS_MAX = 24  # where the two ways cost the same
_HEAD_BYTES = 6  # length and number of columns; the type byte is not counted by the protocol
_DATA_ROW = b"D"


class BatchEncoders:
    """The encoders of a result's columns in the formats that were asked for; looked up anew if Arrow types change."""

    def __init__(self, fields: Sequence[Field], formats: Sequence[int], zone: str) -> None:
        self._fields = tuple(fields)
        self._formats = tuple(formats)
        self._zone = zone
        self._known: tuple[tuple[Any, ...], list[Encoder]] = ((), [])  # one value: framers are shared by threads

    def of_batch(self, batch: Any) -> Sequence[Encoder]:
        return self.of(tuple(column.type for column in batch.columns))

    def of(self, types: tuple[Any, ...]) -> Sequence[Encoder]:
        known_types, encoders = self._known
        if types == known_types:
            return encoders
        if len(types) != len(self._fields):
            raise SqlError(
                sqlstates.INTERNAL_ERROR, f"a result of {len(self._fields)} columns came with {len(types)} columns"
            )
        encoders = [
            encoder(field.type_oid, field.typmod, form, arrow, self._zone)
            for field, form, arrow in zip(self._fields, self._formats, types, strict=True)
        ]
        self._known = (types, encoders)
        return encoders


@lru_cache(maxsize=512)
def row_framer(fields: tuple[Field, ...], formats: tuple[int, ...], zone: str) -> RowFramer:
    """Kept for the next result of the same columns: looking up a look-up's encoders costs as much as using them."""
    return RowFramer(fields, formats, zone)


class RowFramer:
    """For one result. ``kind`` is the type byte: COPY's binary rows differ from DataRow in nothing else."""

    def __init__(self, fields: Sequence[Field], formats: Sequence[int], zone: str, *, kind: bytes = _DATA_ROW) -> None:
        self._encoders = BatchEncoders(fields, formats, zone)
        self._columns = len(fields)
        self._count = literal(struct.pack("!H", self._columns))
        self._kind = kind

    def frame(self, batch: Any) -> bytes | memoryview:
        """All rows of the batch as messages, one after the other."""
        encoders = self._encoders.of_batch(batch)
        if batch.num_rows == 0:
            return b""
        if not self._columns:
            return _HEAD.pack(self._kind, _HEAD_BYTES, 0) * int(batch.num_rows)
        pairs = zip(encoders, batch.columns, strict=True)
        if batch.num_rows <= _BY_HAND_ROWS_MAX:
            return _by_hand(self._kind, [make.cells(column) for make, column in pairs])
        return self._in_bulk([make.column(column) for make, column in pairs])

    def frame_values(self, rows: PlainRows) -> list[bytes] | None:
        """A message for each row; None where a column's form is made from Arrow's."""
        make = [encoder.cell for encoder in self._encoders.of(rows.types)]
        if None in make:
            return None
        head, null, length, kind, columns = _HEAD.pack, _NULL, _LENGTH.pack, self._kind, self._columns
        framed = []
        for row in rows.values:
            size = _HEAD_BYTES + 4 * columns
            cells = [b""]
            for value, cell in zip(row, make, strict=True):
                if value is None or cell is None:
                    cells.append(null)
                else:
                    raw = cell(value)
                    size += len(raw)
                    cells += (length(len(raw)), raw)
            cells[0] = head(kind, size, columns)
            framed.append(b"".join(cells))
        return framed

    def frame_kept(self, rows: KeptRows) -> list[bytes] | None:
        """The same; those that were made before are as they were."""
        frames = rows.keeper.frames(self, rows.columns)
        framed = []
        for key, row in zip(rows.keys, rows.rows, strict=True):
            known = frames.get(key)
            if known is not None and known[0] is row:
                framed.append(known[1])
                continue
            made = self.frame_values(PlainRows((rows.shown(row),), rows.types))
            if made is None:
                return None
            rows.keeper.keep_frame(frames, key, row, made[0])
            framed += made
        return framed

    def _in_bulk(self, columns: Sequence[Column]) -> memoryview:
        rows = len(columns[0])
        parts: list[Column] = []
        total: Column = pa.scalar(_HEAD_BYTES + 4 * len(columns), pa.int32())
        for column in columns:
            size = pc.binary_length(column)
            if column.null_count:
                total = pc.add(total, pc.fill_null(size, 0))
                parts.append(_lengths(pc.fill_null(size, -1), rows))
                parts.append(pc.fill_null(column, b""))
            else:
                total = pc.add(total, size)
                parts += (_lengths(size, rows), column)
        return contiguous(join(literal(self._kind), _lengths(total, rows), self._count, *parts))


def contiguous(framed: Column) -> memoryview:
    """The cells of a column that a kernel has just made, as the one piece of memory that they are."""
    return memoryview(framed.buffers()[2])[: int(pc.sum(pc.binary_length(framed)).as_py())]


def _lengths(sizes: Column, rows: int) -> Column:
    """Each length as four bytes in network order."""
    values = machine_array("i")
    values.frombytes(memoryview(sizes.buffers()[1])[sizes.offset * 4 : (sizes.offset + rows) * 4])
    if sys.byteorder == "little":
        values.byteswap()
    return fixed(values, rows, 4)


def _by_hand(kind: bytes, columns: Sequence[Cells]) -> bytes:
    parts: list[bytes] = []
    for row in zip(*columns, strict=True):
        size = _HEAD_BYTES + 4 * len(row)
        cells: list[bytes] = []
        for cell in row:
            if cell is None:
                cells.append(_NULL)
            else:
                size += len(cell)
                cells.append(_LENGTH.pack(len(cell)))
                cells.append(cell)
        parts.append(_HEAD.pack(kind, size, len(row)))
        parts += cells
    return b"".join(parts)


def all_formats(formats: Sequence[int], columns: int) -> tuple[int, ...]:
    """The protocol's shorthand written out: none means text, one means all."""
    if not formats:
        return (0,) * columns
    if len(formats) == 1:
        return tuple(repeat(formats[0], columns))
    if len(formats) != columns:
        raise SqlError(
            sqlstates.PROTOCOL_VIOLATION,
            f"bind message has {len(formats)} result formats but query has {columns} columns",
        )
    return tuple(formats)


def check_formats(formats: Sequence[int]) -> None:
    for form in formats:
        if form not in (0, 1):
            raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f"unsupported format code: {form}")
