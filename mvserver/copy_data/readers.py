"""COPY ... FROM STDIN: rows out of CopyData messages, in PostgreSQL's text, CSV and binary forms.

A row is a list of raw values, None for NULL; what they mean is for whoever knows the columns. Readers say where they
are as PostgreSQL does: ``line 3: "…"``.
"""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mvserver import limits, sqlstates
from mvserver.copy_data.lines import LineCutter, bad_file
from mvserver.errors import SqlError
from mvserver.types.utf8 import decode_utf8

_SHOWN_CHARACTERS_MAX = 100  # of a line or value in a context, as in PostgreSQL
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_WITH_OIDS, _CRITICAL_FLAGS = 0x00010000, 0xFFFF0000
_INT16, _INT32, _UINT32 = struct.Struct("!h"), struct.Struct("!i"), struct.Struct("!I")

Row = list[bytes | None]


@dataclass(frozen=True)
class CopyFormat:
    """``header`` is None, "skip" or "match"; the last two have an entry for each column."""

    format: str = "text"  # "text", "csv", "binary"
    delimiter: str = "\t"
    null: str = "\\N"
    header: str | None = None
    quote: str = '"'
    escape: str = '"'
    force_not_null: tuple[bool, ...] = ()
    force_null: tuple[bool, ...] = ()


class CopyReader(Protocol):
    def feed(self, data: bytes) -> Iterator[Row]: ...

    def finish(self) -> Iterator[Row]: ...

    @property
    def place(self) -> str:
        """``line 3``: where it is."""

    @property
    def shown(self) -> str | None:
        """The row's text, where it has one."""


def copy_reader(form: CopyFormat, columns: Sequence[str]) -> CopyReader:
    if form.format == "binary":
        return BinaryReader(len(columns))
    return (CsvReader if form.format == "csv" else TextReader)(form, columns)


def shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS_MAX else text[:_SHOWN_CHARACTERS_MAX] + "..."


class _Lines(ABC):
    """What text and CSV share: lines, the header, and the number of values."""

    def __init__(self, form: CopyFormat, columns: Sequence[str], lines: LineCutter) -> None:
        self._form = form
        self._columns = tuple(columns)
        self._lines = lines
        self._header = form.header
        self._line: bytes | None = None
        self._delimiter, self._null = form.delimiter.encode(), form.null.encode()

    @property
    def place(self) -> str:
        return f"line {self._lines.number}"

    @property
    def shown(self) -> str | None:
        return None if self._line is None else shortened(self._line.decode("utf-8", "replace"))

    def feed(self, data: bytes) -> Iterator[Row]:
        yield from self._rows(self._lines.feed(data))

    def finish(self) -> Iterator[Row]:
        yield from self._rows(self._lines.finish())

    def _rows(self, lines: Iterator[bytes]) -> Iterator[Row]:
        for line in lines:
            if not line.isascii() or b"\0" in line:
                decode_utf8(line)
            self._line = line
            if self._header is not None:
                header, self._header = self._header, None
                if header == "match":
                    self._match(self._values(line))
            else:
                row = self._values(line)
                if len(row) < len(self._columns):
                    raise bad_file(f'missing data for column "{self._columns[len(row)]}"')
                if len(row) > len(self._columns):
                    raise bad_file("extra data after last expected column")
                yield row
            self._line = None

    def _match(self, names: Row) -> None:
        if len(names) != len(self._columns):
            raise bad_file(f"wrong number of fields in header line: got {len(names)}, expected {len(self._columns)}")
        for number, (name, column) in enumerate(zip(names, self._columns, strict=True), 1):
            if name is None:
                raise bad_file(
                    f"column name mismatch in header line field {number}: "
                    f'got null value ("{self._form.null}"), expected "{column}"'
                )
            if name != column.encode():
                raise bad_file(
                    f"column name mismatch in header line field {number}: "
                    f'got "{name.decode("utf-8", "replace")}", expected "{column}"'
                )

    @abstractmethod
    def _values(self, line: bytes) -> Row:
        """The values of a line, in the format's own quoting."""


class TextReader(_Lines):
    def __init__(self, form: CopyFormat, columns: Sequence[str]) -> None:
        super().__init__(form, columns, LineCutter())
        self._value = re.compile(rb"(?:[^\\" + re.escape(self._delimiter) + rb"]|\\.|\\\Z)*", re.DOTALL)

    def _values(self, line: bytes) -> Row:
        if b"\\" not in line:
            return [None if value == self._null else value for value in line.split(self._delimiter, limits.COLUMNS_MAX)]
        raw = line.split(self._delimiter, limits.COLUMNS_MAX)
        if b"\\" + self._delimiter in line:  # perhaps one that belongs to a value
            raw = self._cut(line)
        last = raw[-1]
        if (len(last) - len(last.rstrip(b"\\"))) % 2:  # it escapes nothing, and belongs to no value: nor to a NULL's
            raw[-1] = last[:-1]
        return [None if value == self._null else _unescaped(value) for value in raw]

    def _cut(self, line: bytes) -> list[bytes]:
        values, at = [], 0
        while True:
            match = self._value.match(line, at)
            end = at if match is None else match.end()
            values.append(line[at:end])
            if end >= len(line):
                return values
            at = end + 1


_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.)|\Z)", re.DOTALL)
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def _unescaped(value: bytes) -> bytes:
    if b"\\" not in value:
        return value

    written, at = bytearray(), 0
    for match in _ESCAPE.finditer(value):  # not by sub, whose list of parts is freed at once and holds up all threads
        written += value[at : match.start()]
        written += _escaped(match)
        at = match.end()
    return bytes(written + value[at:])


def _escaped(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, letter = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    return b"" if letter is None else _LETTERS.get(letter, letter)


class CsvReader(_Lines):
    def __init__(self, form: CopyFormat, columns: Sequence[str]) -> None:
        self._quote, self._escape = form.quote.encode(), form.escape.encode()
        super().__init__(form, columns, LineCutter(self._quote, self._escape))
        self._special = re.compile(b"[" + re.escape(self._quote + self._escape) + b"]")
        self._outside = re.compile(b"[" + re.escape(self._delimiter + self._quote) + b"]")
        self._forced = any(form.force_not_null) or any(form.force_null)

    def _values(self, line: bytes) -> Row:
        if self._quote not in line and not self._forced:
            return [None if value == self._null else value for value in line.split(self._delimiter, limits.COLUMNS_MAX)]
        row: Row = []
        at = 0
        while True:
            value, quoted, at = self._next(line, at)
            row.append(None if self._is_null(len(row), value, quoted) else value)
            if at >= len(line):
                return row
            at += 1
            if at == len(line):  # an empty value behind the last delimiter
                row.append(None if self._is_null(len(row), b"", quoted=False) else b"")
                return row

    def _is_null(self, column: int, value: bytes, quoted: bool) -> bool:
        if value != self._null:
            return False
        if quoted:
            return column < len(self._form.force_null) and self._form.force_null[column]
        return not (column < len(self._form.force_not_null) and self._form.force_not_null[column])

    def _next(self, line: bytes, at: int) -> tuple[bytes, bool, int]:
        """A value, whether it has quotes, and where its delimiter stands."""
        parts: list[bytes] = []
        quoted = False
        while True:
            match = self._outside.search(line, at)
            if match is None:
                parts.append(line[at:])
                return b"".join(parts), quoted, len(line)
            parts.append(line[at : match.start()])
            if match[0] == self._delimiter:
                return b"".join(parts), quoted, match.start()
            quoted = True
            at = self._inside(line, match.end(), parts)

    def _inside(self, line: bytes, at: int, parts: list[bytes]) -> int:
        """The rest of what stands in quotes; where it ends."""
        while True:
            match = self._special.search(line, at)
            if match is None:
                raise bad_file("unterminated CSV quoted field")
            parts.append(line[at : match.start()])
            following = line[match.end() : match.end() + 1]
            if match[0] == self._escape and following and following in (self._quote, self._escape):
                parts.append(following)
                at = match.end() + 1
            elif match[0] == self._quote:
                return match.end()
            else:
                parts.append(match[0])
                at = match.end()


class BinaryReader:
    """Signature, flags, then for each row the number of its values and each with its length."""

    shown: str | None = None

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._buffer = bytearray()
        self._at = 0
        self._row = 0
        self._last = False
        self._steps = self._read()

    @property
    def place(self) -> str:
        return f"line {self._row}"

    def feed(self, data: bytes) -> Iterator[Row]:
        del self._buffer[: self._at]
        self._at = 0
        self._buffer += data
        for row in self._steps:
            if row is None:
                return
            yield row

    def finish(self) -> Iterator[Row]:
        self._last = True
        yield from self.feed(b"")

    def _read(self) -> Iterator[Row | None]:
        signature = yield from self._take(len(_SIGNATURE), "COPY file signature not recognized")
        if signature != _SIGNATURE:
            raise bad_file("COPY file signature not recognized")
        (flags,) = _UINT32.unpack((yield from self._take(4, "invalid COPY file header (missing flags)")))
        if flags & _WITH_OIDS:
            raise bad_file("invalid COPY file header (WITH OIDS)")
        if flags & _CRITICAL_FLAGS:
            raise bad_file("unrecognized critical flags in COPY file header")
        (extension,) = _INT32.unpack((yield from self._take(4, "invalid COPY file header (missing length)")))
        if extension < 0:
            raise bad_file("invalid COPY file header (missing length)")
        if extension > limits.COPY_LINE_BYTES_MAX:
            raise bad_file("invalid COPY file header (wrong length)")
        yield from self._take(extension, "invalid COPY file header (wrong length)")
        while True:
            self._row += 1
            while len(self._buffer) - self._at < _INT16.size:
                if self._last:
                    return  # without a trailer, which PostgreSQL allows
                yield None
            (count,) = _INT16.unpack((yield from self._take(_INT16.size)))
            if count == -1:
                yield from self._nothing_more()
                return
            if count != self._columns:
                raise bad_file(f"row field count is {count}, expected {self._columns}")
            row: Row = []
            size = 0
            for _ in range(count):
                (length,) = _INT32.unpack((yield from self._take(4)))
                if length < -1:
                    raise bad_file("invalid field size")
                size += max(length, 0)
                if size > limits.COPY_LINE_BYTES_MAX:
                    raise SqlError(
                        sqlstates.PROGRAM_LIMIT_EXCEEDED,
                        "a row of the COPY data is too long",
                        detail=f"It has more than {limits.COPY_LINE_BYTES_MAX} bytes.",
                    )
                row.append(None if length == -1 else (yield from self._take(length)))
            yield row

    def _take(self, size: int, missing: str = "unexpected EOF in COPY data") -> Generator[None, None, bytes]:
        while len(self._buffer) - self._at < size:
            if self._last:
                raise bad_file(missing)
            yield None
        taken = bytes(memoryview(self._buffer)[self._at : self._at + size])
        self._at += size
        return taken

    def _nothing_more(self) -> Generator[None, None, None]:
        while not self._last:
            if self._at < len(self._buffer):
                raise bad_file("received copy data after EOF marker")
            yield None
