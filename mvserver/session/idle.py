"""The time-outs of sessions that their clients leave alone: in a transaction, which holds up merges, and outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.session.deadlines import Deadline
from mvserver.session.state import SessionState

_RETRY_S = 0.1


class IdleWatch:
    """``busy`` and ``rest`` are called under the session's lock."""

    def __init__(self, state: SessionState, lock: threading.RLock, terminate: Callable[[SqlError], None]) -> None:
        self._state = state
        self._lock = lock
        self._terminate = terminate
        self._since: float | None = None  # None: a statement runs
        self._in_transaction = False
        self._deadline: Deadline | None = None
        self._due = 0.0

    def busy(self) -> None:
        self._since = None

    def rest(self, *, in_transaction: bool) -> None:
        """The client's turn begins."""
        self._in_transaction = in_transaction
        limit_s = self._limit_s()
        self._since = None if limit_s is None else time.monotonic()
        if limit_s is not None:
            self._watch(limit_s)

    def _limit_s(self) -> float | None:
        name = "idle_in_transaction_session_timeout" if self._in_transaction else "idle_session_timeout"
        return self._state.settings.seconds(name)

    def _watch(self, limit_s: float) -> None:
        """One deadline at a time: it looks anew when it comes, so most statements need none of their own."""
        if self._since is None:
            return
        due = self._since + limit_s
        if self._deadline is not None:
            if self._due <= due:
                return
            self._deadline.cancel()
        self._due = due
        self._deadline = self._state.services.deadlines.after(max(due - time.monotonic(), 0.001), self._over)

    def _over(self) -> None:
        """On the deadlines' thread; a session that is busy again, or was in between, is left alone."""
        if not self._lock.acquire(blocking=False):
            self._deadline = self._state.services.deadlines.after(_RETRY_S, self._over)
            return
        try:
            self._deadline = None
            limit_s = self._limit_s()
            if self._since is None or limit_s is None:
                return
            if time.monotonic() - self._since < limit_s:
                self._watch(limit_s)
                return
            self._terminate(_in_transaction() if self._in_transaction else _outside())
        finally:
            self._lock.release()


def _in_transaction() -> SqlError:
    return SqlError(
        sqlstates.IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        "terminating connection due to idle-in-transaction timeout",
        severity="FATAL",
    )


def _outside() -> SqlError:
    return SqlError(
        sqlstates.IDLE_SESSION_TIMEOUT, "terminating connection due to idle-session timeout", severity="FATAL"
    )
