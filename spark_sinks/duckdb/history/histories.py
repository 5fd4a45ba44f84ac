"""The histories of views that are kept: begun, taken up again and ended in transactions of the writer.

The writer asks here, under its commit lock, who keeps what a batch does to a view. What is begun or ended counts when
the transaction is committed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.resume_tokens import Seal, new_incarnation
from spark_sinks.duckdb.changes.capture import Keeper
from spark_sinks.duckdb.changes.group_logs import GroupLog
from spark_sinks.duckdb.history import log
from spark_sinks.duckdb.history.history import Bounds, Extent, History
from spark_sinks.duckdb.history.log import LoggedView
from spark_sinks.duckdb.history.sealing import secret_of
from spark_sinks.duckdb.state.state import HISTORY
from spark_sinks.duckdb.statements import Statements

REBUILT = SqlError(
    sqlstates.SNAPSHOT_TOO_OLD,
    "the materialized view was dropped or built anew",
    detail="Its history ended with its former rows.",
    hint="SUBSCRIBE ... WITH (SNAPSHOT) begins with the rows as they are.",
)
UNWATCHED = SqlError(
    sqlstates.SNAPSHOT_TOO_OLD,
    "the history of the materialized view is kept no more",
    detail="Nobody has watched it for as long as it is kept then.",
    hint="SUBSCRIBE ... WITH (SNAPSHOT) begins with the rows as they are.",
)


class Histories:
    """Those that are open, by the id of their query. All calls are made under the commit lock, but ``open_ones``."""

    def __init__(self, statements: Statements) -> None:
        cursor = statements.cursor
        self._statements, self._cursor = statements, cursor
        self._open: Mapping[str, History] = MappingProxyType({})
        self._staged: list[Callable[[], None]] = []  # of the transaction that is open: when it is made
        self._dropped: set[str] = set()  # by that transaction: by the id of their query
        cursor.execute(log.SCHEMA)
        self._secret = secret_of(cursor)
        self.seal = Seal(self._secret)
        ((self._database,),) = cursor.execute("SELECT current_database()").fetchall()

    @property
    def open_ones(self) -> Mapping[str, History]:
        """As of the last commit; for any thread."""
        return self._open

    def of_view(self, view_id: str) -> History | None:
        """The same of one view."""
        return next((each for each in self._open.values() if each.view.view_id == view_id), None)

    # --- whom the writer asks -----------------------------------------------------------------------------------------
    def of(self, query_id: str) -> History | None:
        return None if query_id in self._dropped else self._open.get(query_id)

    def keeper(self, query_id: str, keeper: Keeper | None) -> Keeper | None:
        """Who is told what a merge of the query does; ``keeper`` is its own."""
        if not self._open:
            return keeper
        if keeper is None:
            return self.of(query_id)
        if isinstance(keeper, GroupLog) and keeper.along is not None:
            along = keeper.along
            return replace(keeper, along=replace(along, keeper=self.keeper(along.query_id, along.keeper)))
        return keeper

    # --- transactions of the writer -----------------------------------------------------------------------------------
    def begin(self) -> None:
        self._forget()
        now = dt.datetime.now(dt.UTC)
        for history in self._open.values():
            history.begin(now)

    @property
    def unfinished(self) -> list[History]:
        """Those to ``finish`` before the COMMIT."""
        return [history for query_id, history in self._open.items() if query_id not in self._dropped]

    def committed(self) -> None:
        for history in self._open.values():
            history.committed()
        for done in self._staged:
            done()
        self._forget()

    def _forget(self) -> None:
        self._staged.clear()
        self._dropped.clear()

    def rolled_back(self) -> None:
        self._forget()
        for history in self._open.values():
            history.rolled_back()

    # --- beginning and ending, in a transaction -----------------------------------------------------------------------
    def begin_one(self, view: LoggedView, bounds: Bounds, *, always: bool) -> None:
        """A history from this moment on. A view whose state is gone raises duckdb's CatalogException."""
        self._cursor.execute(f"{view.rows} LIMIT 0").fetchall()
        now, incarnation = dt.datetime.now(dt.UTC), new_incarnation()
        self._drop(view.query_id, view.view_id, view.state_table)
        table, row = log.create_statements(view, incarnation)
        self._cursor.execute(table)
        self._cursor.execute(row, [now])
        self._relate(view, incarnation)
        made = History(self._statements, view, Extent(incarnation, 1, 0, 0, 0, 0, now, now), bounds, always=always)
        self._staged.append(lambda: self._put(made))

    def take_up(self, view: LoggedView, bounds: Bounds, *, always: bool) -> None:
        """Of a view that is set up: its history goes on, if it has one; else one begins where it is ``always`` kept.
        Its text may be another one than before, its columns are the same."""
        known = self._open.get(view.query_id)
        if known is not None and known.view.state_table == view.state_table:
            self._relate(view, known.extent.incarnation)
            self._staged.append(lambda: known.reword(view))
            return
        rows = self._cursor.execute(log.extent_query(view)).fetchall() if self._fits(view) else []
        if rows:
            found = History(self._statements, view, Extent(*rows[0]), bounds, always=always)
            self._relate(view, found.extent.incarnation)
            self._staged.append(lambda: self._put(found))
        elif always:
            self.begin_one(view, bounds, always=True)

    def _relate(self, view: LoggedView, incarnation: str) -> None:
        for statement in log.relation_statements(view, incarnation, self._database, self._secret):
            self._cursor.execute(statement)

    def _fits(self, view: LoggedView) -> bool:
        """Whether the log is there, and has the view's columns."""
        ((columns,),) = self._cursor.execute(
            "SELECT count(*) FROM duckdb_columns() WHERE database_name = current_database() "
            "AND schema_name = '_state' AND table_name = $1 AND column_name[1] = 'c'",
            [view.table],
        ).fetchall()
        return int(columns) == len(view.columns)

    def end_one(self, history: History, error: SqlError) -> None:
        view = history.view
        self._drop(view.query_id, view.view_id, view.state_table)
        self._staged.append(lambda: self._take(history, error))

    def drop_of(self, tables: Sequence[str]) -> None:
        """The histories of these states, which are dropped."""
        states = sorted({table.removesuffix(HISTORY) for table in tables})
        rows = self._cursor.execute(
            'SELECT query_id, view_id, state_table FROM "_ledger".view_histories '
            "WHERE state_table IN (SELECT unnest($1::VARCHAR[]))",
            [states],
        ).fetchall()
        for query_id, view_id, state_table in rows:
            self._drop(query_id, view_id, state_table)
            known = self._open.get(query_id)
            if known is not None:
                self._staged.append(lambda ended=known: self._take(ended, REBUILT))  # type: ignore[misc]

    def _drop(self, query_id: str, view_id: str, state_table: str) -> None:
        self._dropped.add(query_id)
        for statement in log.drop_statements(query_id, view_id, state_table):
            self._cursor.execute(statement)

    def _put(self, history: History) -> None:
        self._open = MappingProxyType({**self._open, history.view.query_id: history})

    def _take(self, history: History, error: SqlError) -> None:
        self._open = MappingProxyType({key: each for key, each in self._open.items() if each is not history})
        history.end(error)
