"""The join of two changelogs: the current rows of both sides, and how the joined rows change with a batch.

Only pairs with a row of the batch can come or go, and of the rows that an outer join gives alone only those of the
batch and those that meet one of it. All that is looked at is found by keys alone, and fetched by number: what a batch
costs follows the rows that it changes, but for the scans of the key columns.

Rows are numbered by the side: DuckDB 2.0 loses rows and gives wrong values where a join by ``rowid`` meets rows of its
own transaction and others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.changelog import last_changes
from spark_sinks.duckdb.changes.logs import Log, same_values
from spark_sinks.duckdb.joins.join_sides import Batch, Side, and_residual, left_and_right, side_of
from spark_sinks.duckdb.record_columns import PLACE, RANK

# Temporary tables, in the order in which they are made.
_INCOMING = "mv_incoming"  # the last change of each primary key in the batch
_REPLACED = "mv_replaced"  # the numbers of the rows that it takes away
_CHANGED = "mv_changed"  # the rows that went and those that came
_MEETING = "mv_meeting"  # those with the numbers of the other side's rows that have their keys
_JOINED = "mv_joined"  # joined rows before the batch (not came) and after it (came)
_MET = "mv_met"  # rows of the other side that meet changed rows
_FREE = "mv_free"  # those of them that meet no other row
_TEMPORARY = (_INCOMING, _REPLACED, _CHANGED, _MEETING, _JOINED, _MET, _FREE)


@dataclass(frozen=True)
class ChangelogTables:
    """Each side keeps its current rows under their primary key. ``given`` says of each column of the log which one of
    the joined row it is: the columns of the left side are counted first, then those of the right one, then the event
    time. ``residual`` is as in an interval join."""

    left: Side
    right: Side
    log: Log
    given: tuple[int, ...]
    residual: str | None = None

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.left.table, self.right.table, self.log.table)

    def create_statements(self) -> list[str]:
        rows = [
            f"CREATE TABLE {side.qualified} ({', '.join(['n BIGINT', *side.typed, 't BIGINT', 'r TIMESTAMPTZ'])})"
            for side in (self.left, self.right)
        ]
        return [*rows, *logs.create_statements(self.log)]

    def low_statements(self) -> list[str]:
        return []  # no window is over rows that change

    def feed_statements(self, index: int, batch: Batch) -> list[str]:
        side, other = side_of(self, index), side_of(self, 1 - index)
        kept = ", ".join(_stored(side))
        before, after = (f"(SELECT * FROM {_JOINED} WHERE {came})" for came in ("NOT came", "came"))
        return [
            *self._find_changed(side, batch),
            f"DELETE FROM {side.qualified} WHERE n IN (SELECT n FROM {_REPLACED})",
            *self._find_pairs(index),
            *([self._add_alone(index)] if side.preserved else []),
            *(self._add_others(index) if other.preserved else []),
            f"INSERT INTO {side.qualified} ({kept}) SELECT {kept} FROM {_CHANGED} WHERE came",
            *logs.append_changes(self.log, before, after),
            *(f"DROP TABLE IF EXISTS {name}" for name in _TEMPORARY),
            *logs.trim_statements(self.log),
        ]

    def _find_changed(self, side: Side, batch: Batch) -> Iterator[str]:
        incoming = last_changes(
            batch.relation,
            keys=batch.primary_key,
            known=batch.taken,
            passing=batch.passing,
            order=(RANK, PLACE),
            columns=batch.columns,
            identity=None if batch.primary_key else "0",  # a side of one row
        )
        names = (*side.keys, *side.columns, "t", "r")
        came = ", ".join([*side.primary_key, *(f"c{i} AS {name}" for i, name in enumerate(names))])
        yield f"CREATE OR REPLACE TEMP TABLE {_INCOMING} AS {incoming}"
        yield (
            f"CREATE OR REPLACE TEMP TABLE {_REPLACED} AS SELECT s.n FROM {side.qualified} s "
            f"JOIN {_INCOMING} i ON {same_values('s', 'i', side.primary_key)}"
        )
        yield (
            f"CREATE OR REPLACE TEMP TABLE {_CHANGED} AS SELECT false AS came, {', '.join(_stored(side))} "
            f"FROM {side.qualified} WHERE n IN (SELECT n FROM {_REPLACED}) UNION ALL "
            f"SELECT true, (SELECT coalesce(max(n), 0) FROM {side.qualified}) + row_number() OVER (), {came} "
            f"FROM {_INCOMING} WHERE passes"
        )

    def _find_pairs(self, index: int) -> Iterator[str]:
        side, other = side_of(self, index), side_of(self, 1 - index)
        left, right = left_and_right(index, "c", "o")
        yield (
            f"CREATE OR REPLACE TEMP TABLE {_MEETING} AS SELECT c.*, o.n AS other FROM {_CHANGED} c "
            f"JOIN {other.qualified} o ON {_equal(side, 'c', 'o')}"
        )
        yield (
            f"CREATE OR REPLACE TEMP TABLE {_JOINED} AS SELECT c.came, c.n, c.other, greatest(c.r, o.r) AS r, "
            f"{self._columns(left, right)} FROM {_MEETING} c JOIN {other.qualified} o ON o.n = c.other"
            f"{and_residual(self.residual, left, right)}"
        )

    def _add_alone(self, index: int) -> str:
        """Changed rows that met nobody."""
        columns = self._columns("c", None) if index == 0 else self._columns(None, "c")
        return (
            f"INSERT INTO {_JOINED} SELECT c.came, c.n, NULL, c.r, {columns} FROM {_CHANGED} c "
            f"WHERE NOT EXISTS (SELECT 1 FROM {_JOINED} j WHERE j.n = c.n)"
        )

    def _add_others(self, index: int) -> Iterator[str]:
        """Rows of the other side that meet changed rows alone: before the batch, after it, or at both times they may
        have been without a partner. The changed ones are not in the side's table now."""
        side, other = side_of(self, index), side_of(self, 1 - index)
        partner = f"{_equal(side, 's', 'o')}{and_residual(self.residual, *left_and_right(index, 's', 'o'))}"
        yield (
            f"CREATE OR REPLACE TEMP TABLE {_MET} AS SELECT * FROM {other.qualified} "
            f"WHERE n IN (SELECT other FROM {_JOINED})"
        )
        yield (
            f"CREATE OR REPLACE TEMP TABLE {_FREE} AS SELECT o.* FROM {_MET} o "
            f"WHERE NOT EXISTS (SELECT 1 FROM {side.qualified} s WHERE {partner})"
        )
        columns = self._columns(None, "o") if index == 0 else self._columns("o", None)
        for came in ("false", "true"):
            met = f"SELECT 1 FROM {_JOINED} j WHERE j.other = o.n AND j.n IS NOT NULL AND j.came = {came}"
            yield (
                f"INSERT INTO {_JOINED} SELECT {came}, NULL, o.n, o.r, {columns} FROM {_FREE} o "
                f"WHERE NOT EXISTS ({met})"
            )

    def _columns(self, left: str | None, right: str | None) -> str:
        """The log's columns of a joined row, one side of which may be missing."""
        joined = [f"{left}.{column}" if left else "NULL" for column in self.left.columns]
        joined += [f"{right}.{column}" if right else "NULL" for column in self.right.columns]
        joined.append(f"make_timestamptz(greatest({', '.join(f'{name}.t' for name in (left, right) if name)}))")
        return ", ".join(f"{joined[i]} AS {name}" for i, name in zip(self.given, self.log.columns, strict=True))


def _stored(side: Side) -> tuple[str, ...]:
    return ("n", *side.primary_key, *side.keys, *side.columns, "t", "r")


def _equal(side: Side, one: str, other: str) -> str:
    return " AND ".join(f"{one}.{key} = {other}.{key}" for key in side.keys)
