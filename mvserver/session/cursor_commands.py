"""DECLARE, FETCH, MOVE and CLOSE over the session's pull queries, and COPY TO STDOUT, which is one with another end.

A cursor's query runs from DECLARE on and sees the state of that moment. It ends with its transaction; for WITH HOLD its
rows are read into memory before that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgwire.backend import CopyOut, Field, Result
from mvserver.serving.api import PullPlan
from mvserver.session.clock import StatementClock
from mvserver.session.cursor_rows import CursorRows
from mvserver.session.cursors import Cursor
from mvserver.session.pulls import PullRunner
from mvserver.session.state import SessionState
from mvserver.sql import statements as s


class CursorCommands:
    def __init__(self, state: SessionState, pulls: PullRunner) -> None:
        self._state = state
        self._pulls = pulls

    def declare(
        self, statement: s.DeclareCursor, plan: PullPlan, parameters: Sequence[Any], clock: StatementClock
    ) -> Result:
        transaction, cursors = self._state.transaction, self._state.cursors
        if not statement.hold and not transaction.is_block:
            raise SqlError(sqlstates.NO_ACTIVE_SQL_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks")
        cursors.check_free(statement.name)
        self._state.portals.check_free(statement.name)
        cursors.check_room()
        result = self._pulls.run(plan, parameters, clock)
        cursor = Cursor(
            statement.name,
            statement.text,
            plan.fields,
            CursorRows(result.batches, keep=statement.scroll, budget=cursors.budget),
            statement.scroll,
            statement.hold,
            statement.binary,
        )
        cursors.add(cursor)
        if not transaction.in_block and statement.hold:
            self._hold(cursor)  # the transaction ends right behind this statement
        return Result("DECLARE CURSOR")

    def fetch(self, statement: s.Fetch, clock: StatementClock) -> Result:
        cursor = self._state.cursors.get(statement.name)
        if statement.move:
            return Result(f"MOVE {cursor.move(statement.direction, statement.count)}")
        rows = cursor.fetch(statement.direction, statement.count)
        return Result("FETCH ", cursor.fields, rows, binary=cursor.binary)

    def fetched_fields(self, statement: s.Fetch) -> tuple[Field, ...] | None:
        """None also for a cursor that is not there (yet): whether it is, is found out by running."""
        cursor = self._state.cursors.find(statement.name)
        return None if cursor is None or statement.move else cursor.fields

    def close(self, statement: s.CloseCursor, clock: StatementClock) -> Result:
        if statement.name is None:
            for cursor in self._state.cursors.all():
                self._close(cursor)
            return Result("CLOSE CURSOR ALL")
        self._close(self._state.cursors.get(statement.name))
        return Result("CLOSE CURSOR")

    def _close(self, cursor: Cursor) -> None:
        if not cursor.rows.failed:
            cursor.settle()  # rows that the client is still reading stay its own
        self._state.cursors.discard(cursor.name)

    def hold(self) -> None:
        """Before COMMIT ends the queries."""
        for cursor in self._state.cursors.all():
            if cursor.hold and not cursor.rows.failed:
                self._hold(cursor)

    def _hold(self, cursor: Cursor) -> None:
        try:
            cursor.settle()
            cursor.rows.hold()
        except BaseException:
            self._state.cursors.discard(cursor.name)
            raise

    # --- COPY -------------------------------------------------------------------------------------------------------
    def copy(self, statement: s.CopyTo, plan: PullPlan, clock: StatementClock) -> Result:
        options = statement.options
        out = CopyOut(
            options.format,
            options.delimiter,
            options.null,
            options.header,
            options.quote,
            options.escape,
            _forced(options.force_quote, plan.fields),
        )
        return dataclasses.replace(self._pulls.run(plan, (), clock), tag="COPY ", copy=out)


def _forced(names: tuple[str, ...] | None, fields: Sequence[Field]) -> tuple[bool, ...]:
    """FORCE_QUOTE for each field."""
    if names == ():
        return (True,) * len(fields)
    known = {field.name for field in fields}
    for name in names or ():
        if name not in known:
            raise SqlError(sqlstates.UNDEFINED_COLUMN, f'column "{name}" does not exist')
    return tuple(field.name in (names or ()) for field in fields)
