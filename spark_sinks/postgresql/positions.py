"""Arithmetic on positions in a table of PostgreSQL, and on LSNs.

A settled position is ``{"system", "timeline", "table", "shape", "lsn"}``: all that committed before the LSN is read, in
the log that the server has on that timeline. One inside of a snapshot has also ``{"snapshot", "row", "rows"}``: of the
rows that were there at the LSN so many are read. A start that is not settled yet is ``{"start": "earliest"}``: where it
begins is known when its snapshot is taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position

_BYTES_PER_CHANGE = 200  # of the log, where nobody has counted


def lsn_text(lsn: int) -> str:
    """As PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


@dataclass(frozen=True)
class Origin:
    """Which table of which server: a position of another one means nothing here. Whether one of another ``timeline``
    does is told by the server's history (``timelines``), and by no comparison."""

    system: str
    table: int  # its oid
    shape: int = 0  # grows where its rows became others without a change that is logged: a column has another type
    timeline: int = field(default=1, compare=False)

    def at(self, lsn: int) -> Position:
        return {
            "system": self.system, "timeline": self.timeline, "table": self.table, "shape": self.shape, "lsn": lsn
        }  # fmt: skip

    def on(self, timeline: int) -> Origin:
        return replace(self, timeline=timeline)

    @classmethod
    def of(cls, position: Position) -> Origin:
        lsn(position)
        return cls(
            str(position["system"]),
            int(position["table"]),
            int(position.get("shape", 0)),
            int(position.get("timeline", 1)),
        )


def is_settled(position: Position) -> bool:
    return "lsn" in position


def in_snapshot(position: Position) -> bool:
    return "snapshot" in position


def lsn(position: Position) -> int:
    """XX001 for what is no settled position."""
    found = position.get("lsn")
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise SqlError(
            sqlstates.DATA_CORRUPTED,
            "not a position in a table of PostgreSQL",
            detail=f"It is {json.dumps(dict(position))}.",
        )
    return found


def behind_snapshot(position: Position) -> Position:
    """Where the changes begin that follow a snapshot."""
    return Origin.of(position).at(lsn(position))


class PostgresPositions:
    """:class:`spark_sinks.base.Positions`. ``count`` says how many changes lie between two LSNs, and ``limited`` gives
    the LSN of a commit about so many behind another, as far as they are at hand; None where they are not."""

    def __init__(
        self,
        count: Callable[[int, int], int | None] = lambda start, end: None,
        limited: Callable[[int, int, int], int | None] = lambda start, end, records: None,
    ) -> None:
        self._count = count
        self._limited = limited

    counts_records = False  # what was not received yet is estimated

    def distance(self, start: Position, end: Position) -> int:
        if not is_settled(start) or not is_settled(end):
            return 0
        rows = 0
        if in_snapshot(start):
            same = in_snapshot(end) and end["snapshot"] == start["snapshot"]
            last = int(end["row"]) if same else int(start["rows"])
            rows = max(0, last - int(start["row"]))
            if same:
                return rows
        return rows + self._changes(lsn(start), lsn(end))

    def _changes(self, start: int, end: int) -> int:
        if end <= start:
            return 0
        counted = self._count(start, end)
        return (end - start) // _BYTES_PER_CHANGE + 1 if counted is None else counted

    def reached(self, position: Position, target: Position) -> bool:
        if not is_settled(position):
            return not is_settled(target)
        if not is_settled(target):
            return True
        _check_origin(position, target)
        if not in_snapshot(position):
            return lsn(position) >= lsn(target)
        if not in_snapshot(target) or target["snapshot"] != position["snapshot"]:
            return False
        return int(position["row"]) >= int(target["row"])

    def limit(self, start: Position, end: Position, records: int) -> Position:
        """A snapshot and what follows it are two rounds. Changes end at a commit."""
        _check_origin(start, end)
        if in_snapshot(start):
            same = in_snapshot(end) and end["snapshot"] == start["snapshot"]
            last = int(end["row"]) if same else int(start["rows"])
            row = min(last, int(start["row"]) + records)
            return {**start, "row": row} if row < int(start["rows"]) else behind_snapshot(start)
        if lsn(end) <= lsn(start):
            return start
        found = self._limited(lsn(start), lsn(end), records)
        return behind_snapshot(end) if found is None else Origin.of(start).at(found)

    def divisible(self, start: Position, end: Position, least: int) -> bool:
        if not is_settled(start) or not is_settled(end):
            return False
        if self.distance(start, end) <= least:
            return False
        if in_snapshot(start):
            return True
        found = self._limited(lsn(start), lsn(end), least)
        return found is not None and found < lsn(end)

    def advance(self, start: Position, end: Position) -> Position:
        _check_origin(start, end)
        if in_snapshot(end) or in_snapshot(start):
            if in_snapshot(end) and in_snapshot(start) and end["snapshot"] == start["snapshot"]:
                return end if int(end["row"]) >= int(start["row"]) else start
            if in_snapshot(end):
                return start
            return Origin.of(start).at(max(lsn(start), lsn(end)))
        return end if lsn(end) >= lsn(start) else start

    def initial(self, positions: Sequence[Position]) -> Position:
        """Changes are read from there; snapshots are read by the rounds of those who need them."""
        settled = [position for position in positions if is_settled(position)]
        if not settled:
            return positions[0]
        for position in settled[1:]:
            _check_origin(settled[0], position)
        return behind_snapshot(min(settled, key=lsn))  # on its own timeline, by which it is judged

    def partitions(self, position: Position) -> Mapping[str, int]:
        if not is_settled(position):
            return {"0": 0}
        left = int(position["rows"]) - int(position["row"]) if in_snapshot(position) else 0
        return {"0": max(0, lsn(position) - left)}

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        return [0 for _ in segments]


def _check_origin(first: Position, second: Position) -> None:
    if not is_settled(first) or not is_settled(second):
        return
    one, other = Origin.of(first), Origin.of(second)
    if one != other:
        raise SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            "positions belong to different tables of the same name, or to different types of its columns",
            detail=f"One is in table {one.table} of server {one.system}, the other in table {other.table} of server "
            f"{other.system}; the versions of the types are {one.shape} and {other.shape}.",
        )
