"""The groups of a query that another one aggregates again: a view's state, whose changes go into a change log.

Where DuckDB can evaluate what the other query computes of a group, they go to its state at once; the log stays empty.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import duckdb

from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.capture import AFTER, BEFORE, Keeper, take_changes
from spark_sinks.duckdb.changes.changelog import Register, RetractedState
from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.state.settling import settle
from spark_sinks.duckdb.state.state import State, UpsertState, create_statements

GROUP_CHANGES = "mv_group_changes"


@dataclass(frozen=True)
class SameTransactionGroups:
    """The other query, where it goes along. ``changes`` is a query over GROUP_CHANGES (deleted, and the log's columns),
    of what :func:`take_changes` takes; ``keeper`` keeps what that does to its rows in turn."""

    query_id: str
    state: RetractedState
    changes: str
    keeper: Keeper | None

    def take(self, cursor: duckdb.DuckDBPyConnection, register: Register, newest: dt.datetime | None) -> None:
        cursor.execute('UPDATE "_ledger".subscribers SET epoch = epoch + 1 WHERE query_id = $1', [self.query_id])
        take_changes(cursor, register, self.state, self.changes, self.keeper, newest)


@dataclass(frozen=True)
class GroupLog:
    """``rows`` is a query of the groups as the other one sees them, with the log's columns under their names;
    ``changed_rows`` gives those whose keys a batch has touched."""

    log: Log
    rows: str
    changed_rows: str
    along: SameTransactionGroups | None = None

    @property
    def others(self) -> tuple[State, ...]:
        if self.along is None:
            return ()
        keeper = self.along.keeper
        return (self.along.state, *(() if keeper is None else keeper.others))

    def shown(self, *, changed_only: bool) -> str:
        return self.changed_rows if changed_only else self.rows

    def keep(self, cursor: duckdb.DuckDBPyConnection, register: Register, newest: dt.datetime | None) -> None:
        time = "now()" if newest is None else f"to_timestamp({newest.timestamp()!r})"
        before, after = (f"(SELECT {time} AS r, * FROM {name})" for name in (BEFORE, AFTER))
        if self.along is not None:
            register(GROUP_CHANGES, cursor.sql(logs.differences(self.log, before, after)).to_arrow_table())
            self.along.take(cursor, register, newest)
            return
        for statement in (*logs.append_changes(self.log, before, after), *logs.trim_statements(self.log)):
            cursor.execute(statement)

    def settle(self, cursor: duckdb.DuckDBPyConnection, until_us: int) -> None:
        """The windows that ended by then take no more records, and are removed."""
        if self.along is not None:
            settle(cursor, self.along.state, until_us)


@dataclass(frozen=True)
class GroupTables:
    """All that is kept of them."""

    state: UpsertState | RetractedState
    group_log: GroupLog

    @property
    def log(self) -> Log:
        return self.group_log.log

    @property
    def tables(self) -> tuple[str, ...]:
        return (*self.state.tables, self.log.table)

    def create_statements(self) -> list[str]:
        """The one group of an aggregate without keys is there before any record; such a query goes not along."""
        first = f"SELECT now(), false, {', '.join(self.log.columns)} FROM ({self.group_log.rows})"
        return [
            *create_statements(self.state),
            *logs.create_statements(self.log),
            *logs.append_statements(self.log, [first]),
        ]
