"""Rows of PostgreSQL as records: JSON for streams (one object a change, as Debezium writes it) and for changelogs.

A stream's record is ``{"op", "before", "after", "source", "ts_ms"}``, without a key. A changelog's is the new row, with
the key columns as its key; a row that goes away is a record without a value. Times are those of the commit, so that a
change that is read again makes the same record.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring

from mvserver.types import oids
from spark_sinks.postgresql.pgoutput import NEW_ROW, NEW_ROW_AT, NULL, TEXT, UNCHANGED, Values
from spark_sinks.postgresql.tables import decimal_of

_Encode = Callable[[bytes], bytes]
_ESCAPED = re.compile(rb'["\\\x00-\x1f]')
_ESCAPES = {bytes([code]): encode_basestring(chr(code))[1:-1].encode() for code in (*range(32), 0x22, 0x5C)}

# What is not written as a text.
_INTEGERS = (oids.INT8, oids.INT2, oids.INT4, oids.OID)
_FLOATS = (oids.FLOAT4, oids.FLOAT8)


def _of_text(value: bytes) -> bytes:
    """UTF-8 as it came: what is none is for the decoder of records to refuse."""
    if _ESCAPED.search(value) is None:
        return b'"' + value + b'"'
    return b'"' + _ESCAPED.sub(lambda found: _ESCAPES[found[0]], value) + b'"'


def _of_integer(value: bytes) -> bytes:
    return value


def _of_float(value: bytes) -> bytes:
    """A zero keeps its sign with a fraction alone: without one it is an integer of JSON, which has none."""
    return b"-0.0" if value == b"-0" else _of_number(value)


def _of_number(value: bytes) -> bytes:
    """NaN and the infinities are no numbers of JSON; what their column is declared as decides on them."""
    return value if value[-1:].isdigit() else _of_text(value)


def _of_bool(value: bytes) -> bytes:
    return b"true" if value == b"t" else b"false"


def _of_bytea(value: bytes) -> bytes:
    return b'"' + base64.b64encode(bytes.fromhex(value[2:].decode())) + b'"'


def _encoder(column: RowColumn) -> _Encode:
    type_oid = column.type_oid
    if type_oid in _INTEGERS:
        return _of_integer
    if type_oid in _FLOATS:
        return _of_float
    # Of a number that is a text here no digit may go, which a parser of JSON would leave out.
    if type_oid == oids.NUMERIC and decimal_of(column.modifier) is not None:
        return _of_number
    if type_oid == oids.BOOL:
        return _of_bool
    return _of_bytea if type_oid == oids.BYTEA else _of_text


def refused(words: str) -> bytes:
    """A value that no declared type takes: a record is rejected, for the column that has it, with these words."""
    return encode_basestring(f"\0{words}").encode()


def _unchanged(column: str) -> bytes:
    return refused(f"the large value of {column} did not change and is not in the log; REPLICA IDENTITY FULL has it")


def _dropped(column: str) -> bytes:
    return refused(f"column {column} was dropped from the table")


@dataclass(frozen=True)
class RowColumn:
    """``type_oid`` and ``modifier`` are those of what a domain is made of."""

    name: str
    type_oid: int
    modifier: int = -1


class UnknownKeyError(Exception):
    """A large value of a row's key did not change and is not in the log."""


class RowShape:
    """How rows of a table become JSON objects. ``gone`` are columns that the table had before."""

    def __init__(self, columns: Sequence[RowColumn], key: Sequence[str], gone: Sequence[str] = ()) -> None:
        self._fields = [(encode_basestring(c.name).encode() + b":", _encoder(c), _unchanged(c.name)) for c in columns]
        # What is written as it came has no encoder.
        self._quick = [(name, None if encode is _of_integer else encode) for name, encode, _ in self._fields]
        self._end = b"".join(b"," + encode_basestring(name).encode() + b":" + _dropped(name) for name in gone) + b"}"
        self._count = len(columns).to_bytes(2, "big")
        names = [c.name for c in columns]
        self.key_at = tuple(names.index(name) for name in key if name in names)

    def row(self, values: Values) -> bytes:
        parts = []
        for (name, encode, unchanged), value in zip(self._fields, values, strict=True):
            if value is None:
                parts.append(name + b"null")
            elif value is UNCHANGED:
                parts.append(name + unchanged)
            else:
                parts.append(name + encode(value))  # type: ignore[arg-type]
        return self.joined(parts)

    def new_row(self, data: bytes) -> list[bytes] | None:
        """The columns of the row that an insertion or an update has, straight from its message. None for one that has
        more than that: an old row, or values that are not in it."""
        at = NEW_ROW_AT + 3
        if data[NEW_ROW_AT] != NEW_ROW or data[NEW_ROW_AT + 1 : at] != self._count:
            return None
        parts = []
        for name, encode in self._quick:
            kind = data[at]
            if kind == TEXT:
                start = at + 5
                at = start + int.from_bytes(data[at + 1 : start], "big")
                value = data[start:at]
                parts.append(name + value if encode is None else name + encode(value))
            elif kind == NULL:
                at += 1
                parts.append(name + b"null")
            else:
                return None
        return parts

    def joined(self, parts: Sequence[bytes]) -> bytes:
        """The row of all columns."""
        return b"{" + b",".join(parts) + self._end

    def joined_key(self, parts: Sequence[bytes]) -> bytes:
        return b"{" + b",".join([parts[at] for at in self.key_at]) + b"}"

    def key(self, values: Values) -> bytes:
        """:class:`UnknownKeyError` where the log does not have it."""
        for at in self.key_at:
            if values[at] is UNCHANGED:
                raise UnknownKeyError
        return self.part(values, self.key_at)

    def part(self, values: Values, places: Sequence[int]) -> bytes:
        """Of the columns at these places alone."""
        parts = []
        for at in places:
            name, encode, unchanged = self._fields[at]
            value = values[at]
            if value is None:
                parts.append(name + b"null")
            else:
                parts.append(name + (unchanged if value is UNCHANGED else encode(value)))  # type: ignore[arg-type]
        return b"{" + b",".join(parts) + b"}"


def filled(new: Values, old: Values) -> Values:
    """Large values that did not change, from the old row or from what the log has of it. A NULL there says that it has
    not: such a value is none."""
    return [
        before if value is UNCHANGED and before is not None else value for value, before in zip(new, old, strict=True)
    ]


class Envelope:
    """The part of a stream's records that a transaction's changes share."""

    def __init__(self, database: str, schema: str, table: str, *, snapshot: bool = False) -> None:
        named = zip(("db", "schema", "table"), (database, schema, table), strict=True)
        self._names = ",".join(f'"{name}":{encode_basestring(value)}' for name, value in named)
        self._snapshot = "true" if snapshot else "false"

    def tail(self, lsn: str, xid: int | None, ts_ms: int) -> bytes:
        return (
            f',"source":{{{self._names},"lsn":"{lsn}","txid":{"null" if xid is None else xid},"ts_ms":{ts_ms},'
            f'"snapshot":{self._snapshot}}},"ts_ms":{ts_ms}}}'
        ).encode()


def enveloped(op: bytes, before: bytes | None, after: bytes | None, tail: bytes) -> bytes:
    return b'{"op":"' + op + b'","before":' + (before or b"null") + b',"after":' + (after or b"null") + tail
