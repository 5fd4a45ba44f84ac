"""Statements of the router: run now, or, inside a transaction block, validated now and carried out at COMMIT.

Drivers open a transaction before each statement, so CREATE and DROP must work there: what takes effect is validated at
once together with what waits before it, kept in order, and carried out as one by COMMIT. ROLLBACK forgets it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.session import kinds
from mvserver.session.clock import StatementClock
from mvserver.session.results import DiscardOnClose, WatchedBatches
from mvserver.session.state import SessionState
from mvserver.sql.statements.base import Statement


class RoutedRunner:
    def __init__(self, state: SessionState, failed: Callable[[Exception], Exception]) -> None:
        self._state = state
        self._failed = failed

    def run(self, statement: Statement, clock: StatementClock) -> Result:
        if kinds.takes_effect(statement) and self._state.transaction.in_block:
            return self._queue(statement, clock)
        place = self._state.place()
        with clock.working():
            result = self._state.services.router.execute(statement, self._state.context)
        self._state.follow_place(place)
        return self._watched(result, clock)

    def _watched(self, result: Result, clock: StatementClock) -> Result:
        """Rows may still be made while the client reads (PRINT ENTITY): under the same clock."""
        if result.fields is None:
            return result
        watched = WatchedBatches(result, clock, interrupt=lambda: None, failed=self._failed, finished=lambda: None)
        return dataclasses.replace(result, batches=DiscardOnClose(watched))

    def _queue(self, statement: Statement, clock: StatementClock) -> Result:
        transaction = self._state.transaction
        place = self._state.place()
        if transaction.queue and transaction.queue_place != place:
            raise SqlError(
                sqlstates.ACTIVE_SQL_TRANSACTION,
                "the statements that wait for COMMIT were given by another role or in another place",
                detail="They belong to one role, one database, one schema and one store.",
                hint="Commit first, or use autocommit.",
            )
        application = transaction.application
        if application is not None:
            application, statement = application.whole(statement)
        with clock.working():
            self._state.services.router.validate(statement, self._state.context, transaction.queue)
        transaction.enqueue(statement, place)
        transaction.application = application
        return Result(kinds.command_tag(statement))

    def carry_out(self, clock: StatementClock) -> None:
        """COMMIT: all of what waits or nothing, in the place where it was given."""
        queue = self._state.transaction.take_queue()
        given_at = self._state.transaction.queue_place
        if not queue or given_at is None:
            return
        now = self._state.place()
        self._state.go_to(given_at)
        application = self._state.transaction.application
        self._state.context.application = None if application is None else application.name
        try:
            with clock.working():
                for result in self._state.services.router.execute_all(queue, self._state.context):
                    result.close()
        finally:
            self._state.context.application = None
            self._state.go_to(now)
