"""Both servers with the same rows, and what they answer to composed statements."""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from mvserver.types import oids
from tests.composed import world
from tests.composed.choices import Choices, fewer
from tests.composed.judge import ALLOWED, DIGITS, SAME, judged, summary
from tests.composed.queries import make
from tests.corpus.compare import Answer, Client, answered

_PARAMETERS_EACH = 5  # one statement in so many has parameters
_BINARY_EACH = 4
_ROWS_SHOWN = 3
_STATEMENTS_MAX = 1_000_000  # of a seed
_ZONES = ("UTC", "America/New_York", "UTC", "Europe/Berlin", "Asia/Kolkata")


@dataclass(frozen=True)
class Difference:
    what: str
    sql: str
    values: tuple[str, ...]
    ours: Answer
    theirs: Answer

    def __str__(self) -> str:
        lines = [summary(self.what, self.ours, self.theirs), self.sql]
        if self.values:
            lines.append(f"   with {list(self.values)}")
        for name, own, other in (("ours", self.ours, self.theirs), ("PostgreSQL", self.theirs, self.ours)):
            rows = [row for row in own.rows if row not in other.rows]
            lines.append(f"   {name}: {len(own.rows)} rows, {own.names}, of its own {rows[:_ROWS_SHOWN]}")
        return "\n".join(lines)


class Pair:
    """Both clients, which give up on a statement after some seconds."""

    def __init__(self, ours: str, theirs: str) -> None:
        self._ours, self._theirs = Client(ours), Client(theirs)
        self._zone = "UTC"
        for client in (self._ours, self._theirs):
            client.connection.execute("SET statement_timeout = '20s'")

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()

    def compare(self, made: Sequence[int], seed: int | None, number: int) -> tuple[Difference, list[int]]:
        """The statement of a seed, or of choices that were made. ``number`` tells how it is asked."""
        self._set_zone(_ZONES[number // 7 % len(_ZONES)])
        choices = Choices(seed=seed, made=made)
        query, values = make(choices, parameters=number % _PARAMETERS_EACH == 0)
        ours, theirs = (self._asked(each, query.sql, values, 0) for each in (self._ours, self._theirs))
        what = judged(ours, theirs, ordered=query.ordered, parameters=bool(values))
        if what == SAME and number % _BINARY_EACH == 0 and not ours.error:
            ours, theirs = (self._asked(each, query.sql, values, 1) for each in (self._ours, self._theirs))
            if sorted(ours.rows, key=repr) != _exactly_flagged(theirs) and not _inexact(theirs):
                what = "binary"
        return Difference(what, query.sql, tuple(values), ours, theirs), choices.made

    def written(self, line: str) -> Difference:
        """A statement as it is, ``@Zone SELECT … ;; value | value`` with a time zone and parameters."""
        zone, line = line[1:].split(" ", 1) if line.startswith("@") else ("UTC", line)
        sql, *given = line.split(" ;; ")
        values = tuple(given[0].split(" | ")) if given else ()
        self._set_zone(zone)
        ours, theirs = (self._asked(each, sql, values, 0) for each in (self._ours, self._theirs))
        what = judged(ours, theirs, ordered="order by" in sql.lower(), parameters=bool(values))
        return Difference(what, sql, values, ours, theirs)

    def _set_zone(self, zone: str) -> None:
        if zone != self._zone:
            for client in (self._ours, self._theirs):
                client.connection.execute(f"SET TimeZone = '{zone}'".encode())
            self._zone = zone

    def _asked(self, client: Client, sql: str, values: Sequence[str], form: int) -> Answer:
        said = client.connection.pgconn
        if not values and not form:
            return answered(said.exec_(sql.encode()))
        return answered(said.exec_params(sql.encode(), [value.encode() for value in values], result_format=form))

    def reduced(self, made: Sequence[int], number: int, what: str, trials: int = 150) -> Difference:
        """A simpler statement that differs in the same way."""

        def still(candidate: Sequence[int]) -> bool:
            return self.compare(candidate, None, number)[0].what == what

        return self.compare(fewer(made, still, trials), None, number)[0]


def _exactly_flagged(theirs: Answer) -> list[tuple[bytes | None, ...]]:
    """Arrays have a flag that says in PostgreSQL whether there may be NULLs, and in ours whether there are some."""
    arrays = [oid in _ARRAYS for oid, _ in theirs.types]
    rows = [
        tuple(
            cell[:4] + struct.pack("!i", _has_null(cell)) + cell[8:] if cell is not None and array else cell
            for cell, array in zip(row, arrays, strict=True)
        )
        for row in theirs.rows
    ]
    return sorted(rows, key=repr)


def _has_null(array: bytes) -> bool:
    (dimensions,) = struct.unpack_from("!i", array)
    at = 12 + 8 * dimensions
    while at < len(array):
        (length,) = struct.unpack_from("!i", array, at)
        if length < 0:
            return True
        at += 4 + length
    return False


_ARRAYS = frozenset(oids.ARRAY_OF.values())


def _inexact(answer: Answer) -> bool:
    return any(oid in (700, 701, 1700, 1016) for oid, _ in answer.types)


@dataclass
class Found:
    """How often each verdict and each class of differences was found, and the reduced statements of the classes."""

    verdicts: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)


def compare_many(pair: Pair, seed: int, count: int, seconds: float = 3600, shown: int = 1) -> Found:
    """So many statements; ``shown`` is how many of each class are reduced."""
    found, until = Found(), time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > until:
            break
        each, made = pair.compare((), seed * _STATEMENTS_MAX + number, number)
        found.verdicts[each.what] += 1
        if each.what in (SAME, DIGITS):
            continue
        name = summary(each.what, each.ours, each.theirs)
        found.classes[name] += 1
        if each.what not in ALLOWED and found.classes[name] <= shown:
            found.texts.append(f"statement {number} of seed {seed}: {pair.reduced(made, number, each.what)}")
    return found


def prepare(ours: str, theirs: str) -> None:
    """What both have beside the rows."""
    for conninfo in (ours, theirs):
        with psycopg.connect(conninfo, autocommit=True) as connection:
            world.add_types(connection)
