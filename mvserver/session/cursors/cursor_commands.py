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
from mvserver.front import CopyOut, Field, Result
from mvserver.serving.api import PullPlan
from mvserver.session.clock import StatementClock
from mvserver.session.cursors.cursor_rows import CursorRows
from mvserver.session.cursors.cursors import Cursor
from mvserver.session.portals import Portal
from mvserver.session.reads.pulls import PullRunner
from mvserver.session.reads.pushes import PushCursorRows, PushRunner
from mvserver.session.results import DiscardOnClose
from mvserver.session.state import SessionState
from mvserver.sql.statements.copying import CopyTo
from mvserver.sql.statements.cursors import CloseCursor, DeclareCursor, Fetch
from mvserver.sql.statements.queries import Pull, PushQuery, Subscribe


class CursorCommands:
    def __init__(self, state: SessionState, pulls: PullRunner, pushes: PushRunner) -> None:
        self._state = state
        self._pulls = pulls
        self._pushes = pushes

    def declare(
        self,
        statement: DeclareCursor,
        plan: PullPlan | PushQuery | Subscribe,
        parameters: Sequence[Any],
        clock: StatementClock,
    ) -> Result:
        transaction, cursors = self._state.transaction, self._state.cursors
        if not statement.hold and not transaction.is_block:
            raise SqlError(sqlstates.NO_ACTIVE_SQL_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks")
        cursors.check_free(statement.name)
        self._state.portals.check_free(statement.name)
        cursors.check_room()
        fields, rows = self._rows(statement, plan, parameters, clock)
        cursor = Cursor(
            statement.name,
            statement.text,
            fields,
            rows,
            statement.scroll,
            statement.hold,
            statement.binary,
        )
        cursors.add(cursor)
        if not transaction.in_block and statement.hold:
            self._hold(cursor)  # the transaction ends right behind this statement
        return Result("DECLARE CURSOR")

    def _rows(
        self,
        statement: DeclareCursor,
        plan: PullPlan | PushQuery | Subscribe,
        parameters: Sequence[Any],
        clock: StatementClock,
    ) -> tuple[tuple[Field, ...], CursorRows]:
        budget = self._state.cursors.budget
        if isinstance(plan, PullPlan):
            result = self._pulls.run(plan, parameters, clock)
            return plan.fields, CursorRows(result.batches, keep=statement.scroll, budget=budget)
        if statement.scroll or statement.hold:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"a cursor {'WITH HOLD' if statement.hold else 'with SCROLL'} is not supported for a push query",
                detail="Its rows have no end, and are not kept.",
                hint="Declare the cursor in a transaction block, without SCROLL and without HOLD.",
            )
        result, watched = self._pushes.open(plan, clock)
        settings = self._state.settings
        return result.fields or (), PushCursorRows(
            watched, budget=budget, wait_s=lambda: settings.seconds("mv.fetch_timeout")
        )

    def fetch(self, statement: Fetch, clock: StatementClock) -> Result:
        cursor = self._named(statement.name, clock)
        if isinstance(cursor.rows, PushCursorRows):
            cursor.rows.use(clock)
        if statement.move:
            return Result(f"MOVE {cursor.move(statement.direction, statement.count)}")
        rows = cursor.fetch(statement.direction, statement.count)
        return Result("FETCH ", cursor.fields, rows, binary=cursor.binary)

    def _named(self, name: str, clock: StatementClock) -> Cursor:
        """Cursors and the protocol's portals have one name space, and are the same to FETCH and MOVE."""
        portal = self._state.portals.find(name)
        return self._state.cursors.get(name) if portal is None else self.of_portal(portal, clock)

    def of_portal(self, portal: Portal, clock: StatementClock) -> Cursor:
        """The portal's query as a cursor, which only goes forward."""
        if portal.cursor is None:
            query = portal.prepared.statement
            if not isinstance(query, Pull):
                raise SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, f'portal "{portal.name}" cannot be run')
            with clock.working():
                plan, parameters = self._pulls.with_values(
                    self._pulls.plan_prepared(portal.prepared, query), portal.prepared, query, portal.parameters
                )
            # one that the client has read to its end stands there
            batches = iter(()) if portal.ran else self._pulls.run(plan, parameters, clock).batches
            rows = CursorRows(batches, keep=False, budget=self._state.cursors.budget)
            portal.cursor = Cursor(portal.name, portal.text, plan.fields, rows, scroll=False, hold=False, binary=False)
        return portal.cursor

    def fetched_fields(self, statement: Fetch) -> tuple[Field, ...] | None:
        """None also for a cursor that is not there (yet): whether it is, is found out by running."""
        cursor = self._state.cursors.find(statement.name)
        if statement.move:
            return None
        if cursor is not None:
            return cursor.fields
        portal = self._state.portals.find(statement.name)
        return None if portal is None else portal.prepared.fields

    def close(self, statement: CloseCursor, clock: StatementClock) -> Result:
        if statement.name is None:
            for cursor in self._state.cursors.all():
                self._close(cursor)
            self._state.portals.clear()
            return Result("CLOSE CURSOR ALL")
        if self._state.portals.find(statement.name) is not None:
            self._state.portals.discard(statement.name)
        else:
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

    def end_transaction(self) -> None:
        """What is open of push queries ends with it, also where it is no cursor's."""
        self._pushes.end_transaction()

    # --- COPY -------------------------------------------------------------------------------------------------------
    def copy(self, statement: CopyTo, plan: PullPlan | PushQuery | Subscribe, clock: StatementClock) -> Result:
        if isinstance(plan, PullPlan):
            result = self._pulls.run(plan, (), clock)
        else:
            result, watched = self._pushes.open(plan, clock)
            result = dataclasses.replace(result, batches=DiscardOnClose(watched))
        options = statement.options
        out = CopyOut(
            options.format,
            options.delimiter,
            options.null,
            options.header,
            options.quote,
            options.escape,
            _forced(options.force_quote, result.fields or ()),
        )
        return dataclasses.replace(result, tag="COPY ", copy=out)


def _forced(names: tuple[str, ...] | None, fields: Sequence[Field]) -> tuple[bool, ...]:
    """FORCE_QUOTE for each field."""
    if names == ():
        return (True,) * len(fields)
    known = {field.name for field in fields}
    for name in names or ():
        if name not in known:
            raise SqlError(sqlstates.UNDEFINED_COLUMN, f'column "{name}" does not exist')
    return tuple(field.name in (names or ()) for field in fields)
