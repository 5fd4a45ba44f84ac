"""COPY ... TO STDOUT: rows as CopyData messages in PostgreSQL's text, CSV and binary forms, one message for each row.

Whole Arrow batches at a time, as DataRow messages are made: values are escaped by kernels, and only where a column has
something to escape.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from mvserver.front import CopyOut, Field
from mvserver.pgwire.rows import BatchEncoders, RowFramer, contiguous
from mvserver.types.column import BINARY, BINARY_FORMAT, TEXT_FORMAT, Column, any_true, big_endian, join, literal

_KIND = b"d"
_HEAD = struct.Struct("!ci")
_LENGTH_BYTES = 4  # a message's length counts itself
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)  # no flags, no header extension
_TRAILER = struct.pack("!h", -1)
_END_OF_DATA = b"\\."  # alone on a line it ends the data for older readers
_CONTROLS = (
    (b"\b", b"\\b"), (b"\f", b"\\f"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t"), (b"\v", b"\\v"),
)  # fmt: skip


class CopyFramer(Protocol):
    """What is sent between CopyOutResponse and CopyDone."""

    def begin(self) -> bytes: ...

    def frame(self, batch: Any) -> bytes | memoryview: ...

    def end(self) -> bytes: ...


def copy_framer(options: CopyOut, fields: Sequence[Field], zone: str) -> CopyFramer:
    if options.format == "binary":
        return BinaryCopy(fields, zone)
    return (CsvCopy if options.format == "csv" else TextCopy)(options, fields, zone)


class TextCopy:
    """A line for each row: values, delimiters, and a line feed."""

    def __init__(self, options: CopyOut, fields: Sequence[Field], zone: str) -> None:
        self._options = options
        self._fields = tuple(fields)
        self._encoders = BatchEncoders(fields, (TEXT_FORMAT,) * len(fields), zone)
        self._null = literal(options.null.encode())
        self._delimiter = literal(options.delimiter.encode())
        self._kind = literal(_KIND)
        self._line_end = literal(b"\n")
        delimiter = options.delimiter.encode()
        self._odd = rf"[\\\x08-\x0d\x{delimiter[0]:02x}]"
        known = any(delimiter == plain for plain, _ in _CONTROLS)
        self._escapes = ((b"\\", b"\\\\"), *_CONTROLS, *(() if known else ((delimiter, b"\\" + delimiter),)))

    def begin(self) -> bytes:
        """The names, where they are asked for."""
        if not self._options.header:
            return b""
        names = [pa.array([field.name.encode()], BINARY) for field in self._fields]
        return bytes(self._lines([self._escaped(name, False) for name in names], 1))

    def frame(self, batch: Any) -> bytes | memoryview:
        if batch.num_rows == 0:
            return b""
        encoders = self._encoders.of_batch(batch)
        forced = self._options.force_quote or (False,) * len(self._fields)
        columns = [
            pc.fill_null(self._escaped(make.column(column), force), self._null)
            for make, column, force in zip(encoders, batch.columns, forced, strict=True)
        ]
        return self._lines(columns, batch.num_rows)

    def end(self) -> bytes:
        return b""

    def _lines(self, columns: Sequence[Column], rows: int) -> bytes | memoryview:
        if not columns:
            return (_HEAD.pack(_KIND, _LENGTH_BYTES + 1) + b"\n") * rows
        # as many delimiters and line feeds together as there are columns
        size: Column = pa.scalar(_LENGTH_BYTES + len(columns), pa.int32())
        parts: list[Column] = []
        for column in columns:
            size = pc.add(size, pc.binary_length(column))
            parts += (column, self._delimiter)
        return contiguous(join(self._kind, big_endian(size, "i"), *parts[:-1], self._line_end))

    def _escaped(self, column: Column, force: bool) -> Column:
        """The values as they stand in a line; NULL stays NULL."""
        if not any_true(pc.match_substring_regex(column, self._odd)):
            return column
        for plain, escaped in self._escapes:
            column = pc.replace_substring(column, plain, escaped)
        return column


class CsvCopy(TextCopy):
    """Values are put in quotes where a reader would take them for something else, or where that is asked for."""

    def __init__(self, options: CopyOut, fields: Sequence[Field], zone: str) -> None:
        super().__init__(options, fields, zone)
        self._quote_byte, self._escape_byte = options.quote.encode(), options.escape.encode()
        self._quote = literal(self._quote_byte)
        self._special = rf"[\n\r\x{ord(options.delimiter):02x}\x{ord(options.quote):02x}]"

    def _escaped(self, column: Column, force: bool) -> Column:
        if force:
            return self._quoted(column)
        odd = pc.or_(pc.match_substring_regex(column, self._special), pc.equal(column, self._null))
        if len(self._fields) == 1:
            odd = pc.or_(odd, pc.equal(column, literal(_END_OF_DATA)))
        return pc.if_else(odd, self._quoted(column), column) if any_true(odd) else column

    def _quoted(self, column: Column) -> Column:
        escape, quote = self._escape_byte, self._quote_byte
        if escape != quote:
            column = pc.replace_substring(column, escape, escape + escape)
        return join(self._quote, pc.replace_substring(column, quote, escape + quote), self._quote)


class BinaryCopy:
    """A row is what a DataRow is; the signature goes before the first in the same message, as clients expect it."""

    def __init__(self, fields: Sequence[Field], zone: str) -> None:
        self._rows = RowFramer(fields, (BINARY_FORMAT,) * len(fields), zone, kind=_KIND)
        self._begun = False

    def begin(self) -> bytes:
        return b""

    def frame(self, batch: Any) -> bytes | memoryview:
        framed = self._rows.frame(batch)
        if self._begun or not framed:
            return framed
        self._begun = True
        _, size = _HEAD.unpack_from(framed)
        return b"".join((_HEAD.pack(_KIND, size + len(_SIGNATURE)), _SIGNATURE, framed[_HEAD.size :]))

    def end(self) -> bytes:
        body = _TRAILER if self._begun else _SIGNATURE + _TRAILER
        return _HEAD.pack(_KIND, _LENGTH_BYTES + len(body)) + body
