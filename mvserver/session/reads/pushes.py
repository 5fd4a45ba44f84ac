"""Push queries of a session, and SUBSCRIBE: rows as they come, to a result, a cursor or a COPY.

They wait under the statement's clock, so that a cancel and ``statement_timeout`` end the wait. Their rows are read from
no snapshot: a transaction only bounds their life.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Protocol, cast

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Result
from mvserver.session.clock import StatementClock
from mvserver.session.cursors.cursor_rows import CursorRows
from mvserver.session.held_memory import HeldShare
from mvserver.session.results import DiscardOnClose, WatchedBatches
from mvserver.session.state import SessionState
from mvserver.sql.push import push_query
from mvserver.sql.statements.queries import Pull, PushQuery, Subscribe

_BUFFERED = "rows are sent as they come, but many clients show them only at the end, which a push query may not have"
_LIVE_HINT = "\\set FETCH_COUNT 1 has psql show each row; else use DECLARE and FETCH, COPY ... TO STDOUT, or LIMIT."


class LiveBatches(Protocol):
    """What the router's result of a push query can do besides giving batches."""

    def wait(self, seconds: float | None) -> bool: ...

    def interrupt(self) -> None: ...


class WatchedPush(WatchedBatches):
    """The rows of a push query under the clock of its statement, and the wait for them."""

    def __init__(
        self,
        result: Result,
        clock: StatementClock,
        *,
        failed: Callable[[Exception], Exception],
        finished: Callable[[], None],
    ) -> None:
        self._live = cast(LiveBatches, result.batches)
        super().__init__(result, clock, interrupt=self._live.interrupt, failed=failed, finished=finished)

    def wait(self, seconds: float | None) -> bool:
        """Whether rows are there, or the end: now, or within this time (None: as long as it takes)."""
        return self.done or self.guarded(lambda: self._live.wait(seconds))

    def use(self, clock: StatementClock) -> None:
        """A FETCH reads on: what ends it ends the wait, also before the wait has begun."""
        self._clock = clock


class PushRunner:
    def __init__(self, state: SessionState, failed: Callable[[Exception], Exception]) -> None:
        self._state = state
        self._failed = failed
        self._open: list[WatchedPush] = []

    def query(self, pull: Pull) -> PushQuery:
        """A SELECT that was found to read a stream, as a push query."""
        query = push_query(pull.text)
        if pull.has_parameters:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "parameters are not supported in a push query",
                hint="Write the values into the text.",
            )
        return query

    def fields(self, query: PushQuery) -> tuple[Field, ...]:
        return self._state.services.router.fields(query, self._state.context) or ()

    def run(self, query: PushQuery | Subscribe, clock: StatementClock) -> Result:
        """A result whose rows end by LIMIT or by the client; its notice is for clients that wait for the end."""
        result, watched = self.open(query, clock)
        if isinstance(query, Subscribe) or query.limit is None:
            self._state.context.notice(_BUFFERED, hint=_LIVE_HINT)
        return dataclasses.replace(result, batches=DiscardOnClose(watched))

    def open(self, query: PushQuery | Subscribe, clock: StatementClock) -> tuple[Result, WatchedPush]:
        with clock.working():
            result = self._state.services.router.execute(query, self._state.context)

        def finished() -> None:
            self._open = [other for other in self._open if other is not watched]

        watched = WatchedPush(result, clock, failed=self._failed, finished=finished)
        self._open.append(watched)
        return result, watched

    def end_transaction(self) -> None:
        for watched in list(self._open):
            watched.revoke()


class PushCursorRows(CursorRows):
    """The rows of a cursor over a push query: FETCH waits for the first, and gives those that are there."""

    def __init__(self, source: WatchedPush, *, budget: HeldShare, wait_s: Callable[[], float | None]) -> None:
        super().__init__(DiscardOnClose(source), keep=False, budget=budget)
        self._push = source
        self._wait_s = wait_s

    def use(self, clock: StatementClock) -> None:
        self._push.use(clock)

    def forward(self, count: int | None) -> Iterator[pa.RecordBatch]:
        if self.at > self._read or not (self._here or self._push.wait(self._wait_s())):
            return
        yield from super().forward(count)

    def pass_over(self, count: int | None) -> int:
        """ABSOLUTE and RELATIVE mean a row, however long it takes to come; ALL are those that are there."""
        passed = 0
        while count is None or passed < count:
            if count is not None and not self._here:
                self._push.wait(None)
            step = sum(piece.num_rows for piece in super().forward(None if count is None else count - passed))
            passed += step
            if count is None or step == 0:
                break
        return passed

    @property
    def _here(self) -> bool:
        """Rows that were taken from the query and not yet given."""
        return self.at < self._read

    def _ready(self) -> bool:
        return self._here or self._push.wait(0.0)
