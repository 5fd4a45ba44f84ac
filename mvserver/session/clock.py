"""The running time of one statement: cancel and ``statement_timeout``, for whatever it is doing.

Only time spent working counts (starting it, producing a batch); a client that is slow to read is the wire's matter.
A request to stop is repeated until the work has stopped: an engine forgets an interrupt that arrives an instant before
its query begins.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mvserver import interrupts, sqlstates
from mvserver.errors import SqlError
from mvserver.session.deadlines import Deadline, Deadlines

_REPEAT_S = 0.05

USER_REQUEST = "canceling statement due to user request"
TIMEOUT = "canceling statement due to statement timeout"


def _nothing() -> None:
    """There is nothing to interrupt."""


class StatementClock:
    def __init__(
        self,
        deadlines: Deadlines,
        timeout_s: float | None,
        began: Callable[[StatementClock], None] = lambda clock: None,
    ) -> None:
        """``began`` is told of each piece of work, before it."""
        self._deadlines = deadlines
        self._began = began
        self._timeout_s = timeout_s
        self._spent_s = 0.0
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._interrupt: Callable[[], None] | None = None

    @property
    def cancelled(self) -> bool:
        return self._reason is not None

    @property
    def remaining_s(self) -> float | None:
        """What is left of the time-out; None where there is none."""
        return None if self._timeout_s is None else max(self._timeout_s - self._spent_s, 0.001)

    def restart(self) -> None:
        """A suspended portal goes on: its next rows are a new piece of waiting for the client."""
        self._spent_s = 0.0

    def cancel(self, reason: str = USER_REQUEST) -> None:
        """From any thread."""
        with self._lock:
            self._reason = self._reason or reason
        self._stop()

    def _stop(self) -> None:
        with self._lock:  # held during the call: an interrupt after the work's end would hit the next statement
            if self._interrupt is None:
                return
            self._interrupt()
        self._deadlines.after(_REPEAT_S, self._stop)

    def check(self) -> None:
        """Raises 57014 when the statement is to stop."""
        if self._reason is not None:
            raise SqlError(sqlstates.QUERY_CANCELED, self._reason)

    def working(self, interrupt: Callable[[], None] = _nothing) -> _Working:
        """Around each piece of work of one thread, whose ``interrupts.check`` it answers; whatever the work raises
        after a request to stop is reported as that request."""
        return _Working(self, interrupt)

    def running(self, interrupt: Callable[[], None]) -> _Running:
        """Around work that goes through several threads."""
        return _Running(self, interrupt)

    def _begin(self, interrupt: Callable[[], None]) -> Deadline | None:
        self._began(self)
        self.check()
        deadline: Deadline | None = None
        if self._timeout_s is not None:
            deadline = self._deadlines.after(self.remaining_s or 0.0, lambda: self.cancel(TIMEOUT))
        with self._lock:
            self._interrupt = interrupt
        return deadline

    def _end(self, deadline: Deadline | None, spent_s: float) -> None:
        with self._lock:
            self._interrupt = None
        if deadline is not None:
            deadline.cancel()
        self._spent_s += spent_s


class _Running:
    """A context manager of few steps: each statement goes through several."""

    __slots__ = ("_clock", "_deadline", "_interrupt", "_started")

    def __init__(self, clock: StatementClock, interrupt: Callable[[], None]) -> None:
        self._clock = clock
        self._interrupt = interrupt

    def __enter__(self) -> None:
        self._started = time.monotonic()
        self._deadline = self._clock._begin(self._interrupt)
        try:
            self._clock.check()  # a request may have come before there was something to interrupt
        except SqlError:
            self._clock._end(self._deadline, time.monotonic() - self._started)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._clock._end(self._deadline, time.monotonic() - self._started)
        reason = self._clock._reason
        if isinstance(error, Exception) and reason is not None:
            raise SqlError(sqlstates.QUERY_CANCELED, reason) from error


class _Working(_Running):
    __slots__ = ("_before",)

    def __enter__(self) -> None:
        super().__enter__()
        self._before = interrupts.set_check(self._clock.check)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        interrupts.set_check(self._before)
        super().__exit__(kind, error, trace)
