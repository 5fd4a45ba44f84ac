"""Messages of PostgreSQL's plug-in pgoutput, protocol 1, as frozen values. No I/O.

A transaction comes whole and after it has committed: Begin, then changes, then Commit. Values are text, NULL, or
:data:`UNCHANGED` for a large value that the update left as it was.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from mvserver import sqlstates
from mvserver.errors import SqlError

EPOCH_US = 946_684_800_000_000  # PostgreSQL counts microseconds from 2000


class _Unchanged:
    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED = _Unchanged()
Values = list["bytes | _Unchanged | None"]


class Begin(NamedTuple):
    """A tuple, as each of those that come with each transaction or row: it is made in a third of a dataclass's time."""

    final_lsn: int
    time_us: int
    xid: int


class Commit(NamedTuple):
    """``end_lsn`` is where to go on: the commit's own LSN would send the transaction again."""

    lsn: int
    end_lsn: int
    time_us: int


@dataclass(frozen=True)
class TableColumn:
    """``key``: part of the replica identity."""

    name: str
    key: bool
    type_oid: int
    type_modifier: int


@dataclass(frozen=True)
class Table:
    oid: int
    schema: str
    name: str
    identity: str  # as in pg_class.relreplident
    columns: tuple[TableColumn, ...]


class Change(NamedTuple):
    """``op`` is c, u or d. ``old`` is the old row, or of it only the replica identity where ``old_is_key``."""

    op: str
    oid: int
    old: Values | None
    old_is_key: bool
    new: Values | None


@dataclass(frozen=True)
class Truncate:
    oids: tuple[int, ...]


TEXT, NULL = b"t"[0], b"n"[0]
"""Kinds of values."""
OPS_OF_NEW_ROWS = {b"I"[0]: b"c", b"U"[0]: b"u"}
"""By the kind of its message, the ``op`` of a change that may have nothing but its new row."""
NEW_ROW, NEW_ROW_AT = b"N"[0], 5
"""The mark before a new row, and where it is where no old one goes before."""
Message = Begin | Commit | Table | Change | Truncate | None
_HEAD = struct.Struct(">IB")
_LENGTH = struct.Struct(">I")
_COUNT = struct.Struct(">H")


def parse(data: bytes) -> Message:
    """None for messages that say nothing of rows (types, origins, messages of users)."""
    kind = data[0:1]
    if kind == b"I":
        return Change("c", int.from_bytes(data[1:5], "big"), None, False, _tuple(data, 6)[0])
    if kind == b"U":
        return _update(data)
    if kind == b"D":
        old, _ = _tuple(data, 6)
        return Change("d", int.from_bytes(data[1:5], "big"), old, data[5:6] == b"K", None)
    if kind == b"B":
        final, time_us, xid = struct.unpack_from(">QqI", data, 1)
        return Begin(final, time_us + EPOCH_US, xid)
    if kind == b"C":
        lsn, end, time_us = struct.unpack_from(">QQq", data, 2)
        return Commit(lsn, end, time_us + EPOCH_US)
    if kind == b"R":
        return _table(data)
    if kind == b"T":
        (count,) = _LENGTH.unpack_from(data, 1)
        return Truncate(struct.unpack_from(f">{count}I", data, 6))
    if kind in (b"Y", b"O", b"M"):
        return None
    raise SqlError(
        sqlstates.DATA_CORRUPTED, "a message of the replication stream is not known", detail=f"Its kind is {kind!r}."
    )


def _update(data: bytes) -> Change:
    oid, mark = _HEAD.unpack_from(data, 1)
    old: Values | None = None
    at = 6
    if mark in b"KO":
        old, at = _tuple(data, 6)
        at += 1  # the mark N
    new, _ = _tuple(data, at)
    return Change("u", oid, old, mark == b"K"[0], new)


def _tuple(data: bytes, at: int) -> tuple[Values, int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    values: Values = []
    append = values.append
    length = _LENGTH.unpack_from
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == TEXT:
            start = at + 4
            at = start + length(data, at)[0]
            append(data[start:at])
        elif kind == NULL:
            append(None)
        elif kind == 0x75:  # u
            append(UNCHANGED)
        else:
            raise SqlError(
                sqlstates.DATA_CORRUPTED,
                "a value of the replication stream is not known",
                detail=f"Its kind is {bytes([kind])!r}.",
            )
    return values, at


def _table(data: bytes) -> Table:
    oid = int.from_bytes(data[1:5], "big")
    schema, at = _string(data, 5)
    name, at = _string(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        column, at = _string(data, at + 1)
        type_oid, modifier = struct.unpack_from(">Ii", data, at)
        at += 8
        columns.append(TableColumn(column, bool(flags & 1), type_oid, modifier))
    return Table(oid, schema or "pg_catalog", name, identity, tuple(columns))


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1
