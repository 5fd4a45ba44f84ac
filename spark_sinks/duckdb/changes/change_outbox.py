"""The outbox of a push query whose rows replace each other: what each batch does to them, with its kind.

A row that is new is ``+I``, one that is gone ``-D``; one that is replaced comes twice, as it was (``-U``) and as it is
now (``+U``). So whoever adds and takes away rows by the sign has the result, whichever columns were asked for. Rows are
told apart by keys that need not be among them; NULL is a key like others.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from spark_sinks.duckdb.changes.capture import AFTER, BEFORE
from spark_sinks.duckdb.changes.changelog import Register
from spark_sinks.duckdb.changes.logs import same_values
from spark_sinks.duckdb.changes.outbox import Outbox

NEW, OLD_OF_UPDATE, UPDATED, GONE = "+I", "-U", "+U", "-D"


@dataclass(frozen=True)
class ChangeOutbox(Outbox):
    """``columns`` begin with the kind of the change. ``rows`` is a query of the rows as the state has them, ``keys``
    (by which they are told apart) and then c0, c1 ...; ``changed_rows`` gives those whose keys a batch has touched.
    ``only_new``: rows come once, as those of closed windows do, and have no kind."""

    keys: tuple[str, ...] = ()
    rows: str = ""
    changed_rows: str = ""
    only_new: bool = False

    @property
    def _values(self) -> tuple[str, ...]:
        return tuple(name for name, _ in (self.columns if self.only_new else self.columns[1:]))

    def create_statements(self) -> list[str]:
        """What is there before any record, the one group of an aggregate without keys, is the first row."""
        kind = "" if self.only_new else f"'{NEW}', "
        first = f"SELECT false, {kind}{', '.join(self._values)} FROM ({self.rows})"
        return [*super().create_statements(), *self.append_statements(first)]

    def shown(self, *, changed_only: bool) -> str:
        return self.changed_rows if changed_only else self.rows

    def keep(self, cursor: duckdb.DuckDBPyConnection, register: Register, newest: dt.datetime | None) -> None:
        values = ", ".join(self._values)
        if self.only_new:
            statements = self.append_statements(f"SELECT false, {values} FROM {_came((*self.keys, *self._values))}")
        else:
            statements = self.append_statements(
                change_query(self.keys, self._values),
                selected=f"false, op, {values}",
                order=", ".join([*self.keys, "op DESC"]),
            )
        for statement in statements:
            cursor.execute(statement)


def change_query(keys: Sequence[str], values: Sequence[str]) -> str:
    """What a merge did to the rows of BEFORE: op, the keys and the values of each row that went or came. A key is that
    of one row at most; without keys there is one row."""
    whole, same = (*keys, *values), same_values("b", "a", keys) if keys else "b._there = a._there"
    there = f"(SELECT *, true AS _there FROM {BEFORE}) AS b FULL JOIN (SELECT *, true AS _there FROM {AFTER}) AS a"
    kinds = (
        f"CASE WHEN b._there IS NULL THEN ['{NEW}'] WHEN a._there IS NULL THEN ['{GONE}'] "
        f"ELSE ['{OLD_OF_UPDATE}', '{UPDATED}'] END"
    )
    shown = ", ".join(
        f"CASE WHEN op IN ('{NEW}', '{UPDATED}') THEN a_{name} ELSE b_{name} END AS {name}" for name in whole
    )
    both = ", ".join(f"b.{name} AS b_{name}, a.{name} AS a_{name}" for name in whole)
    differs = " OR ".join(f"b.{name} IS DISTINCT FROM a.{name}" for name in values) or "false"
    return (
        f"SELECT op, {shown} FROM (SELECT unnest({kinds}) AS op, {both} FROM {there} ON {same} "
        f"WHERE b._there IS NULL OR a._there IS NULL OR {differs})"
    )


def _came(whole: Sequence[str]) -> str:
    return f"(SELECT * FROM {AFTER} AS a ANTI JOIN {BEFORE} AS b ON {same_values('a', 'b', whole)})"
