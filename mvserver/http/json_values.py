"""Result columns as JSON values, exact: what a double cannot hold is a string, unless the client asks otherwise.

A column goes through the text form that the wire sends, so both front ends show the same digits.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa

from mvserver.front import Field
from mvserver.types import arrays, oids
from mvserver.types.column import TEXT_FORMAT, Column
from mvserver.types.json import is_nested
from mvserver.types.registry import encoder

_NULL = b"null"
_FEW_ROWS = 24  # as the wire: above, kernels are quicker than Python
_SAFE_INTEGER = 2**53 - 1
_SAFE_DIGITS = 15  # so many decimal digits survive a double
_SAFE_LENGTH = 300  # of a number's text: doubles end at 1e308
_PLAIN_INTEGER_LENGTH = 15
_SHORT_OFFSET = re.compile(rb"[+-]\d\d\Z")

Cells = list[bytes]
_Cell = Callable[[bytes], bytes]


class Numbers(enum.Enum):
    """How ``bigint`` and ``numeric`` are written: as numbers where a double holds them and else as strings, always as
    numbers, or always as strings."""

    SAFE = "safe"
    EXACT = "exact"
    STRING = "string"


def text(value: str) -> bytes:
    """A JSON string."""
    written: str = encode_basestring(value)
    return _on_one_line(written.encode("utf-8", "replace"))


def _on_one_line(document: bytes) -> bytes:
    """What JSON lets stand in a string and many clients take for a line's end (``str.splitlines``) is escaped."""
    if b"\xe2\x80" in document or b"\xc2\x85" in document:
        for raw, escaped in _LINE_ENDS:
            document = document.replace(raw, escaped)
    return document


_LINE_ENDS = tuple((mark.encode(), f"\\u{ord(mark):04x}".encode()) for mark in "\x85\u2028\u2029")


def _string(cell: bytes) -> bytes:
    return text(cell.decode("utf-8", "replace"))


def _boolean(cell: bytes) -> bytes:
    return b"true" if cell == b"t" else b"false"


def _number(cell: bytes) -> bytes:
    """NaN and the infinities are strings: JSON has none."""
    return cell if cell[-1:].isdigit() else _string(cell)


def _safe_integer(cell: bytes) -> bytes:
    if len(cell) <= _PLAIN_INTEGER_LENGTH or abs(int(cell)) <= _SAFE_INTEGER:
        return cell
    return _string(cell)


def _safe_numeric(cell: bytes) -> bytes:
    if not cell[-1:].isdigit() or len(cell) > _SAFE_LENGTH:
        return _string(cell)
    digits = cell.lstrip(b"-").replace(b".", b"").strip(b"0")
    return cell if len(digits) <= _SAFE_DIGITS else _string(cell)


def _stamp(cell: bytes) -> bytes:
    return _string(cell.replace(b" ", b"T", 1) if cell[:1].isdigit() else cell)


def _instant(cell: bytes) -> bytes:
    """An offset of whole hours has its minutes too, as ISO 8601 and JavaScript's Date want it."""
    if cell[:1].isdigit():
        cell = cell.replace(b" ", b"T", 1)
        if _SHORT_OFFSET.search(cell):
            cell += b":00"
    return _string(cell)


def _document(cell: bytes) -> bytes:
    """A JSON value, on one line. A text that is none, as an engine may let through, is a string."""
    try:
        json.loads(cell, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _string(cell)
    return _on_one_line(cell.replace(b"\n", b" ").replace(b"\r", b" "))


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_CELL: dict[int, _Cell] = {
    oids.BOOL: _boolean,
    oids.INT2: _number,
    oids.INT4: _number,
    oids.OID: _number,
    oids.FLOAT4: _number,
    oids.FLOAT8: _number,
    oids.TIMESTAMP: _stamp,
    oids.TIMESTAMPTZ: _instant,
    oids.JSON: _document,
    oids.JSONB: _document,
}
_BY_NUMBERS: dict[Numbers, dict[int, _Cell]] = {
    Numbers.SAFE: {oids.INT8: _safe_integer, oids.NUMERIC: _safe_numeric},
    Numbers.EXACT: {oids.INT8: _number, oids.NUMERIC: _number},
    Numbers.STRING: {oids.INT8: _string, oids.NUMERIC: _string},
}


def values(field: Field, column: Column, zone: str, numbers: Numbers) -> Cells:
    """A JSON value for each row of a column."""
    return _values(field.type_oid, field.typmod, column, zone, numbers)


def _values(oid: int, typmod: int, column: Column, zone: str, numbers: Numbers) -> Cells:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    inner = arrays.element_oid(oid)
    if inner is not None and arrays.is_list(column.type):
        return _lists(inner, typmod, column, zone, numbers)
    make = encoder(oid, typmod, TEXT_FORMAT, column.type, zone)
    cells = make.cells(column) if len(column) <= _FEW_ROWS else make.column(column).to_pylist()
    if is_nested(column.type) and oid != oids.NUMERIC:
        write: _Cell = _document  # a structure, which the wire writes as JSON too
    else:
        write = _BY_NUMBERS[numbers].get(oid) or _CELL.get(oid) or _string
    return [_NULL if cell is None else write(cell) for cell in cells]


def _lists(inner: int, typmod: int, column: Column, zone: str, numbers: Numbers) -> Cells:
    flat = column.flatten()
    nested = arrays.is_list(flat.type)
    items = _lists(inner, typmod, flat, zone, numbers) if nested else _values(inner, typmod, flat, zone, numbers)
    written: Cells = []
    at = 0
    for length in column.value_lengths().to_pylist():
        if length is None:
            written.append(_NULL)
        else:
            written.append(b"[" + b",".join(items[at : at + length]) + b"]")
            at += length
    return written


class RowWriter:
    """Rows as JSON objects, or as arrays in the columns' order."""

    def __init__(self, fields: Sequence[Field], zone: str, numbers: Numbers, *, as_arrays: bool) -> None:
        self._fields = tuple(fields)
        self._zone = zone
        self._numbers = numbers
        names = (text(field.name).replace(b"%", b"%%") for field in fields)
        self._row = b"[" + b",".join([b"%b"] * len(self._fields)) + b"]"
        if not as_arrays:
            self._row = b"{" + b",".join(name + b":%b" for name in names) + b"}"

    def rows(self, batch: Any) -> list[bytes]:
        if not self._fields:
            return [self._row] * int(batch.num_rows)
        columns = [
            values(field, column, self._zone, self._numbers)
            for field, column in zip(self._fields, batch.columns, strict=True)
        ]
        return [self._row % row for row in zip(*columns, strict=True)]
