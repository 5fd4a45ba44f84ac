"""COPY FROM STDIN in a session: the client's rows under the statement's clock, and when they are written.

Outside of a block that is at the end of the data; in one, at COMMIT, so that ROLLBACK leaves nothing. The records of
one transaction go to one store, whose own transaction they are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, raise_instead
from mvserver.front import Result
from mvserver.session.clock import StatementClock
from mvserver.session.copies import CopyTarget, too_much
from mvserver.session.state import SessionState
from mvserver.sql.statements.copying import CopyFrom

Done = TypeVar("Done")


class CopyCommands:
    def __init__(self, state: SessionState, failed: Callable[[Exception], Exception]) -> None:
        self._state = state
        self._failed = failed

    def begin(self, statement: CopyFrom, clock: StatementClock) -> Result:
        transaction = self._state.transaction
        if transaction.queue:
            raise SqlError(
                sqlstates.ACTIVE_SQL_TRANSACTION,
                "COPY FROM cannot follow statements that wait for COMMIT",
                hint="Commit first: a store and the catalog have no transaction in common.",
            )
        with clock.working():
            target = self._state.services.router.copy_target(statement, self._state.context)
        earlier = transaction.copies
        if earlier and earlier[0].store.id != target.store.id:
            target.close()
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'a transaction that writes to store "{earlier[0].store.name}" cannot write to "{target.store.name}"',
                hint="Commit first.",
            )
        return Result("COPY ", copy_in=CopyReceiver(target, clock, self._finished, self._failed))

    def write(self, clock: StatementClock) -> None:
        """COMMIT."""
        copies = self._state.transaction.take_copies()
        try:
            if copies:
                with clock.working():
                    self._state.services.router.write_copies(copies, clock.check)
        finally:
            for copy in copies:
                copy.close()

    def _finished(self, target: CopyTarget, clock: StatementClock) -> None:
        transaction = self._state.transaction
        if not transaction.in_block:
            self._state.services.router.write_copies([target], clock.check)
            target.close()
            return
        if sum(copy.size for copy in transaction.copies) + target.size > limits.COPY_BYTES_MAX:
            raise too_much()
        transaction.copies.append(target)


class CopyReceiver:
    """Implements ``mvserver.front.CopyIn``. The clock runs until the end, also while the client is silent."""

    def __init__(
        self,
        target: CopyTarget,
        clock: StatementClock,
        finished: Callable[[CopyTarget, StatementClock], None],
        failed: Callable[[Exception], Exception],
    ) -> None:
        self.binary, self.columns = target.binary, target.columns
        self.on_wake: Callable[[], None] = lambda: None
        self._target: CopyTarget | None = target
        self._clock = clock
        self._finished = finished
        self._failed = failed
        self._working = ExitStack()
        self._working.enter_context(clock.running(lambda: self.on_wake()))

    def check(self) -> None:
        self._clock.check()

    def feed(self, data: bytes) -> None:
        self._do(lambda target: target.feed(data))

    def finish(self) -> int:
        def end(target: CopyTarget) -> int:
            target.finish()
            self._finished(target, self._clock)
            self._target = None  # whoever has it now closes it
            return target.rows

        rows = self._do(end)
        self.close()
        return rows

    def fail(self, message: str) -> None:
        def give_up(target: CopyTarget) -> None:
            raise SqlError(
                sqlstates.QUERY_CANCELED, f"COPY from stdin failed: {message}", context=target.place(shown=False)
            )

        self._do(give_up)

    def close(self) -> None:
        self._working.close()
        target, self._target = self._target, None
        if target is not None:
            target.close()

    def _do(self, call: Callable[[CopyTarget], Done]) -> Done:
        """Whatever fails after a request to stop is reported as that request."""
        try:
            self.check()
            if self._target is None:
                raise SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the COPY has ended")
            return call(self._target)
        except Exception as error:  # noqa: BLE001 - raised again below
            raise_instead(self._failed(self._cause(error)), error)

    def _cause(self, error: Exception) -> Exception:
        try:
            if self._clock.cancelled:
                self.check()
        except SqlError as request:
            return request
        finally:
            self.close()
        return error
