"""What the rows of a view were, by their keys: for look-ups AS OF a place beside the rows that are kept finished.

A row at a place is the one that its first later change has replaced; without one it is the row as it is. So what is
kept is, of each change that the history of the view has, the row before it. It follows the history when it is asked
for, and answers only while it has all of it.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

from mvserver.resume_tokens import Written, is_token
from mvserver.serving.fast.finished_view import Budget, Row
from spark_sinks.duckdb.changes.change_outbox import NEW, UPDATED
from spark_sinks.duckdb.history.history import Extent, History

_ENTRY_BYTES = 160  # of a change without its row: its place among those of its key, and that of the key in its commit
_COMMIT_BYTES = 250
_PLACES = 1_000  # texts that are known
_BEGINNING = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(Z|[+-][01]\d(?::\d\d)?)?", re.ASCII)

_LAST_SEQ, _AT = itemgetter(0), itemgetter(2)
_EPOCH = itemgetter(0)
_Commit = tuple[int, int, int, list[Any]]  # the number of its last change, its epoch, its time, and the changed keys
_Before = tuple[int, Row | None]  # of a change: its epoch, and the row that it replaced
Place = int | tuple[str, int]
"""Microseconds since 1970; or the incarnation and the number that a token names."""


@dataclass(slots=True)
class RowsThen:
    """The rows of a view at the end of an epoch, found by their keys. Nothing changes it; a frozen one takes four times
    as long to make."""

    past: PastRows
    version: int
    epoch: int
    now: Mapping[Any, Row]

    def get(self, key: Any) -> Row | None:
        return self.past.row(key, self.epoch, self.now)

    @property
    def stands(self) -> bool:
        """Whether all that was read belongs together."""
        return self.past.version == self.version


class PastRows:
    """One thread adds and removes. Readers take no lock: what is added is later than what they ask for, and of what is
    removed they learn by the ``version``."""

    def __init__(self, history: History, key_width: int, weight: Callable[[Row], int], budget: Budget) -> None:
        self.history = history
        self._base = history.extent.first_seq - 1
        self.last_seq = self._base  # it has all changes between these two
        self.version = 0
        self.size = 0  # in bytes
        self._weight = weight
        self._budget = budget
        self._key_of: Callable[[Sequence[Any]], Any] = itemgetter(*range(key_width))
        self._commits: list[_Commit] = []
        self._before: dict[Any, list[_Before]] = {}

    # --- who keeps it -------------------------------------------------------------------------------------------------
    def add(self, changes: Sequence[tuple[Any, ...]]) -> bool:
        """Number, epoch, time, kind and row of the changes behind the last one. False where there is no room for them,
        or one is not as expected: then it cannot be used."""
        for seq, epoch, at, kind, *values in changes:
            if seq != self.last_seq + 1:
                return False
            commits = self._commits
            if not commits or commits[-1][1] != epoch:
                if not self._grow(_COMMIT_BYTES):
                    return False
                commits.append((seq, epoch, at, []))
            else:
                commits[-1] = (seq, epoch, at, commits[-1][3])
            key = self._key_of(values)
            known = self._before.get(key)
            if known is None or known[-1][0] != epoch:  # of a commit's changes of a row the first one counts
                if kind == UPDATED:
                    return False
                row = None if kind == NEW else tuple(values)
                if not self._grow(_ENTRY_BYTES + (0 if row is None else self._weight(row))):
                    return False
                commits[-1][3].append(key)
                if known is None:
                    self._before[key] = [(epoch, row)]
                else:
                    known.append((epoch, row))
            self.last_seq = seq
        return True

    def trim(self, first_seq: int) -> None:
        """Without the commits before this change, which the history keeps no more."""
        number = bisect_left(self._commits, first_seq, key=_LAST_SEQ)
        if not number:
            return
        self.version += 1
        gone, self._commits = self._commits[:number], self._commits[number:]
        self._base = gone[-1][0]
        for *_, keys in gone:
            self._shrink(_COMMIT_BYTES)
            for key in keys:
                (_, row), *left = self._before.pop(key)
                if left:
                    self._before[key] = left
                self._shrink(_ENTRY_BYTES + (0 if row is None else self._weight(row)))

    def give_up(self) -> None:
        """Gives its memory back."""
        self.version += 1
        self.last_seq = -1
        self._commits, self._before = [], {}
        self._shrink(self.size)

    def _grow(self, size: int) -> bool:
        if not self._budget.take(size):
            return False
        self.size += size
        return True

    def _shrink(self, size: int) -> None:
        self._budget.give_back(size)
        self.size -= size

    # --- who reads ----------------------------------------------------------------------------------------------------
    @property
    def is_current(self) -> bool:
        """Whether it has all changes of the history."""
        return self.history.ended is None and self.history.extent.last_seq == self.last_seq

    def then(self, place: Place, now: Mapping[Any, Row]) -> RowsThen | None:
        """The rows at the place, where ``now`` are those of the present; None for a place that is not kept."""
        version, extent = self.version, self.history.extent
        if self.history.ended is not None or extent.last_seq != self.last_seq:
            return None
        epoch = self._epoch_at(place, extent)
        return None if epoch is None else RowsThen(self, version, epoch, now)

    def _epoch_at(self, place: Place, extent: Extent) -> int | None:
        """The last one that the place is behind."""
        commits = self._commits
        if isinstance(place, int):
            if place < _micros(extent.since) or place > _micros(dt.datetime.now(dt.UTC)):
                return None
            behind = bisect_right(commits, place, key=_AT)
        else:
            incarnation, seq = place
            if incarnation != extent.incarnation or not extent.first_seq - 1 <= seq <= extent.last_seq:
                return None
            behind = bisect_left(commits, seq, key=_LAST_SEQ)
            behind += behind > 0 or seq > self._base
        if behind:
            return commits[behind - 1][1]
        return commits[0][1] - 1 if commits else extent.last_epoch

    def row(self, key: Any, epoch: int, now: Mapping[Any, Row]) -> Row | None:
        """As it was behind the epoch."""
        changes = self._before.get(key)
        if changes is None or changes[-1][0] <= epoch:
            return now.get(key)
        return changes[bisect_right(changes, epoch, key=_EPOCH)][1]


def place_of(asked: Any, time_zone: str) -> Place | None:
    """What AS OF names; None where only DuckDB can tell."""
    if isinstance(asked, str):
        return _of_text(asked, time_zone == "UTC")
    if isinstance(asked, dt.datetime) and asked.tzinfo is not None:
        return _micros(asked)
    return None


@lru_cache(_PLACES)
def _of_text(text: str, utc: bool) -> Place | None:
    """A time without a zone is of the session's."""
    if is_token(text):
        token = Written.read(text)
        return None if token.seq is None else (token.incarnation, token.seq)
    found = _INSTANT.fullmatch(text.strip())
    if found is None or not (utc or found[1]):
        return None
    try:
        instant = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return _micros(instant if found[1] else instant.replace(tzinfo=dt.UTC))


def _micros(moment: dt.datetime) -> int:
    return (moment - _BEGINNING) // dt.timedelta(microseconds=1)
