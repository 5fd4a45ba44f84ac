"""State tables that views of equal keys share, so that one merge serves them all.

A MERGE costs some milliseconds whatever it merges, and a hundred of them most of what a small batch takes. Where many
views hang on one topic, those that group alike keep their columns side by side in one table, each behind a prefix of
its own, and in the place of a view's own tables come SQL views of its columns, so that who reads a state finds no
difference. A view has those rows of the shared table in which it has counted a record.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from spark_sinks.duckdb.batch_plans import ViewMerge
from spark_sinks.duckdb.batch_table import BATCH
from spark_sinks.duckdb.names import qualified, rows_of
from spark_sinks.duckdb.state.roll_ups import roll_up_together
from spark_sinks.duckdb.state.state import NULLS, MergedColumn, UpsertState, is_count, keyed, merged_columns, upsert

SHARED = "shared_"  # what the names of the shared tables begin with; those of states, with a UUID
SHARED_FROM_VIEWS = 12  # of one batch: fewer merges cost little, and a table of its own is read faster
_MEMBERS_MAX = 16  # of one table: planning a merge grows with its columns
_ROWS_MAX = 100_000  # who has more stays apart: moving its rows would hold up all other commits
_ARRANGEMENTS_MAX = 16  # remembered, for the sets of views that batches bring in turn


@dataclass(frozen=True)
class SharedPlace:
    """Where the columns of a state are."""

    table: str
    slot: int

    @property
    def prefix(self) -> str:
        return f"s{self.slot}_"


def places(cursor: duckdb.DuckDBPyConnection) -> Mapping[str, SharedPlace]:
    """By the name of the state's own table."""
    rows = cursor.execute('SELECT state_table, shared_table, slot FROM "_ledger".shared_states').fetchall()
    return {state: SharedPlace(table, slot) for state, table, slot in rows}


@dataclass(frozen=True)
class SharedMerge:
    """What takes in the batch for all of these views."""

    views: tuple[ViewMerge, ...]
    statements: tuple[str, ...]


@dataclass(frozen=True)
class Arrangement:
    """The views of a batch: those that are merged together, and all others."""

    shared: tuple[SharedMerge, ...]
    apart: tuple[ViewMerge, ...]


class SharedStates:
    """The caller owns the transactions; after one that was rolled back, ``forget`` is called."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._known: Mapping[str, SharedPlace] | None = None
        self._apart: set[str] = set()  # states that were too large to move
        self._arrangements: dict[tuple[int, ...], tuple[Sequence[ViewMerge], Arrangement]] = {}

    def forget(self) -> None:
        """What is known is read again."""
        self._known = None
        self._arrangements.clear()

    @property
    def _places(self) -> Mapping[str, SharedPlace]:
        if self._known is None:
            self._known = places(self._cursor)
        return self._known

    def is_shared(self, table: str) -> bool:
        return table in self._places

    # --- merging ------------------------------------------------------------------------------------------------------
    def arranged(self, views: Sequence[ViewMerge]) -> Arrangement:
        key = tuple(map(id, views))
        known = self._arrangements.get(key)
        if known is None:
            if len(self._arrangements) >= _ARRANGEMENTS_MAX:
                self._arrangements.clear()
            known = self._arrangements[key] = (views, self._arrange(views))  # who is kept keeps its id
        return known[1]

    def _arrange(self, views: Sequence[ViewMerge]) -> Arrangement:
        found: dict[tuple[object, ...], list[ViewMerge]] = {}
        for view in filter(_can_share, views):
            place = self._places.get(view.state.table)
            if place is not None:
                found.setdefault((place.table, *_grouping(view)), []).append(view)
        taken = {id(view) for group in found.values() for view in group}
        return Arrangement(
            tuple(SharedMerge(tuple(group), self.statements(group)) for group in found.values()),
            tuple(view for view in views if id(view) not in taken),
        )

    def statements(self, views: Sequence[ViewMerge]) -> tuple[str, ...]:
        """What merges views that share a table, and group by the same columns of the batch."""
        own = [self._places[view.state.table] for view in views]
        made = []
        for parts in zip(*(view.roll_ups for view in views), strict=True):
            nulls, rolled_up = bool(parts[0].nulls), roll_up_together(parts)
            columns = [
                column
                for part, new, place in zip(parts, rolled_up.columns, own, strict=True)
                for column in merged_columns(part.state, new, place.prefix)
            ]
            table = own[0].table + (NULLS if nulls else "")
            made.append(upsert(table, parts[0].state.keys, columns, rolled_up.query, nulls=nulls))
        return tuple(made)

    # --- moving -------------------------------------------------------------------------------------------------------
    def unshared(self, views: Sequence[ViewMerge]) -> list[list[UpsertState]]:
        """By the columns that they group by, the states that had better share a table; one of each list or more does
        not yet."""
        candidates = [view for view in views if _can_share(view)]
        if len(candidates) < SHARED_FROM_VIEWS:
            return []
        found: dict[tuple[object, ...], list[UpsertState]] = {}
        for view in candidates:
            if isinstance(view.state, UpsertState) and view.state.table not in self._apart:
                found.setdefault((view.state.key_types, *_grouping(view)), []).append(view.state)
        return [
            states
            for states in found.values()
            if len(states) > 1 and any(not self.is_shared(state.table) for state in states)
        ]

    def share(self, unshared: Sequence[Sequence[UpsertState]]) -> None:
        """Moves states into shared tables; as many as do not take long, and the others when it is called again."""
        moved = 0
        for states in unshared:
            for state in states:
                if self.is_shared(state.table):
                    continue
                ((rows,),) = self._cursor.execute(rows_of(state.tables)).fetchall()
                if rows > _ROWS_MAX:
                    self._apart.add(state.table)
                    continue
                self._move(state, self._table_for(state, states))
                moved += rows
                if moved > _ROWS_MAX:
                    return

    def keep_apart(self, unshared: Sequence[Sequence[UpsertState]]) -> None:
        """They could not be moved, and stay what they are."""
        self._apart.update(state.table for states in unshared for state in states)

    def _table_for(self, state: UpsertState, states: Sequence[UpsertState]) -> str:
        """One that another of the states is in and that has room, or a new one."""
        tables = {self._places[each.table].table for each in states if self.is_shared(each.table)}
        with_room = [table for table in sorted(tables) if len(self._members(table)) < _MEMBERS_MAX]
        if with_room:
            return with_room[0]
        table = f"{SHARED}{uuid.uuid4().hex}"
        self._create(table, state)
        return table

    def _create(self, table: str, state: UpsertState) -> None:
        keys = [f"{name} {kind}" for name, kind in zip(state.keys, state.key_types, strict=True)]
        self._cursor.execute(f"CREATE TABLE {qualified(table)} ({', '.join(keyed(keys, state.keys))})")
        self._cursor.execute(f"CREATE TABLE {qualified(table + NULLS)} ({', '.join(keys)})")

    def _move(self, state: UpsertState, table: str) -> None:
        place = SharedPlace(table, 1 + max((each.slot for each in self._members(table).values()), default=-1))
        columns = [(name, f"{place.prefix}{name}", kind) for name, kind in state.state_columns]
        kept = ", ".join([*state.keys, *(name for name, _, _ in columns)])
        shown = ", ".join([*state.keys, *(f"{column} AS {name}" for name, column, _ in columns)])
        for suffix in ("", NULLS):
            own, shared = qualified(state.table + suffix), qualified(table + suffix)
            for name, column, kind in columns:
                absent = " DEFAULT 0" if is_count(name, state) else ""  # in the rows that others alone have
                self._cursor.execute(f"ALTER TABLE {shared} ADD COLUMN {column} {kind}{absent}")
            taken = [MergedColumn(column, f"s.{name}", f"s.{name}") for name, column, _ in columns]
            rows = f"SELECT {kept} FROM {own}"
            self._cursor.execute(upsert(table + suffix, state.keys, taken, rows, nulls=bool(suffix)))
            self._cursor.execute(f"DROP TABLE {own}")
            counted = _counted(place, state.keys if not suffix else ())
            self._cursor.execute(f"CREATE VIEW {own} AS SELECT {shown} FROM {shared} WHERE {counted}")
        self._cursor.execute(
            'INSERT INTO "_ledger".shared_states VALUES ($1, $2, $3)', [state.table, place.table, place.slot]
        )
        self.forget()

    # --- leaving ------------------------------------------------------------------------------------------------------
    def drop(self, state_table: str) -> None:
        """What the state has in its shared table goes, and with the last one the table."""
        place = self._places[state_table]
        for suffix in ("", NULLS):
            self._cursor.execute(f"DROP VIEW {qualified(state_table + suffix)}")
        self._cursor.execute('DELETE FROM "_ledger".shared_states WHERE state_table = $1', [state_table])
        self.forget()
        others = self._members(place.table)
        for suffix in ("", NULLS):
            shared = qualified(place.table + suffix)
            if not others:
                self._cursor.execute(f"DROP TABLE {shared}")
                continue
            counted = " OR ".join(f"{each.prefix}n > 0" for each in others.values())
            self._cursor.execute(f"DELETE FROM {shared} WHERE NOT ({counted})")
            for column in self._columns(place, suffix):
                self._cursor.execute(f"ALTER TABLE {shared} DROP COLUMN {column}")

    def _columns(self, place: SharedPlace, suffix: str) -> Iterable[str]:
        rows = self._cursor.execute(
            "SELECT column_name FROM duckdb_columns() WHERE database_name = current_database() "
            "AND schema_name = '_state' AND table_name = $1 AND starts_with(column_name, $2)",
            [place.table + suffix, place.prefix],
        ).fetchall()
        return (name for (name,) in rows)

    def _members(self, table: str) -> dict[str, SharedPlace]:
        return {state: place for state, place in self._places.items() if place.table == table}


def _can_share(view: ViewMerge) -> bool:
    """Whether it merges nothing but roll-ups of the batch itself, by keys, for nobody else."""
    state = view.state
    return (
        isinstance(state, UpsertState)
        and bool(state.keys)
        and state.windowing is None
        and not state.values
        and view.keeper is None
        and bool(view.roll_ups)
        and all(each.relation == BATCH for each in view.roll_ups)
    )


def _grouping(view: ViewMerge) -> tuple[object, ...]:
    """What is the same of views that one query can roll up."""
    first = view.roll_ups[0]
    return (first.keys, first.count is None, len(view.roll_ups))


def _counted(place: SharedPlace, keys: Sequence[str]) -> str:
    """Which rows of the table are the state's. A look-up by the one column of a primary key goes by its index only
    where no other condition is on a column alone: hence the second, which no row meets."""
    counted = f"{place.prefix}n > 0"
    return f"{counted} OR {keys[0]} IS NULL" if len(keys) == 1 else counted
