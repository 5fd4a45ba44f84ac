"""The states that a transaction changes, for those who keep their rows outside of DuckDB.

It is told before the COMMIT, so that nobody reads there what is about to be the past, and again after it. What it is
told is the rows as they are then, or their keys; where those are not known, that the state has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa


@dataclass(frozen=True)
class RowsNow:
    """All rows that a merge has changed, as they are after it, with the ``columns`` that were asked for."""

    columns: str
    rows: Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class ShownChanges:
    """All that a transaction has done to the rows that a view shows, of the ``keys`` (g0 ...) that it has met. The
    ``tables`` have op, and c0, c1 ... for the columns of these ``names``, in the order of the merges. A row that is
    replaced is there as it was, and as it is."""

    names: Sequence[str]
    tables: Sequence[pa.Table]
    keys: Sequence[pa.Table]


Change: TypeAlias = pa.Table | RowsNow | ShownChanges
Changes = Mapping[str, Sequence[Change] | None]
"""By a state's first table (or a view's id): tables of the keys (g0 ...) whose rows may change, or the rows; None where
any may."""


class StateWatch(Protocol):
    def wants_rows(self, table: str) -> str | None:
        """The columns to be told of each row that a batch changes, over those of the state; None where its keys do."""

    def wants_keys(self, table: str) -> bool:
        """Whether it is worth finding out which keys a batch changes. Asked inside its transaction."""

    def changing(self, changes: Changes | None) -> None:
        """The COMMIT comes next; None: anything may change."""

    def changed(self, *, done: bool) -> None:
        """The transaction is over; unless it is ``done``, its COMMIT was not reached or may have failed."""


class Unwatched:
    def wants_rows(self, table: str) -> str | None:
        return None

    def wants_keys(self, table: str) -> bool:
        return False

    def changing(self, changes: Changes | None) -> None:
        pass

    def changed(self, *, done: bool) -> None:
        pass


class ChangeNotes:
    """Of the transaction that is open."""

    def __init__(self) -> None:
        self._noted: dict[str, list[Change] | None] = {}
        self._anything = False

    def begin(self) -> None:
        self._noted, self._anything = {}, False

    def keys(self, table: str, keys: pa.Table | RowsNow) -> None:
        known = self._noted.setdefault(table, [])
        if known is not None:
            known.append(keys)

    def shown(self, table: str, names: Sequence[str], tables: Sequence[pa.Table]) -> None:
        """What the whole transaction has done to the rows that a view shows of it: more than the keys that are noted,
        where these are known."""
        known = self._noted.get(table)
        keys = [each for each in known or () if isinstance(each, pa.Table)]
        if known and len(keys) == len(known):
            self._noted[table] = [ShownChanges(names, tables, keys)]

    def rows(self, table: str) -> None:
        """Any of its rows."""
        self._noted[table] = None

    def anything(self) -> None:
        self._anything = True

    @property
    def taken(self) -> Changes | None:
        return None if self._anything else self._noted
