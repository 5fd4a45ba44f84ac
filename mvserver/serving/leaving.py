"""Work in DuckDB that can be left: it looks for an interrupt between two steps of its own, and a step can be long.

DuckDB binds, optimizes and evaluates one call of a function over 2,048 rows without a look. So what may take long is
done by a thread of a pool while the statement's own thread waits for it; who is cancelled or out of time waits a moment
for the interrupt to be seen, and then leaves. What is left behind ends at its next step of its own accord, and what it
used is given back then. Until then it is counted for the session and the role that left it: they are refused when they
have left too much, and nobody else is.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.serving.api import Owner

_SLICE_S = 0.05  # a cancel is seen after at most this

T = TypeVar("T")


class WorkLeft(SqlError):  # noqa: N818 - says what has become of the work
    """57014: nobody waits for the work any more, and what it uses is its own until it ends."""

    def __init__(self) -> None:
        super().__init__(sqlstates.QUERY_CANCELED, "canceling statement due to user request")


class _Work:
    def __init__(self, ended: Callable[[], None]) -> None:
        self.left = threading.Event()
        self.done = False
        self.ended = ended


class LeavableWork:
    def __init__(self) -> None:
        # what runs at the same time is bounded by those who have it done, and what is left by role and session
        self._threads = ThreadPoolExecutor(limits.ENGINE_THREADS_MAX, thread_name_prefix="engine")
        self._lock = threading.Lock()
        self._left_by_session: Counter[Owner] = Counter()
        self._left_by_role: Counter[str] = Counter()
        self._closed = False

    @property
    def left(self) -> int:
        """How much is still at work although nobody waits for it."""
        with self._lock:
            return self._left_by_role.total()

    def run(
        self,
        work: Callable[[Callable[[], bool]], T],
        owner: Owner,
        stopped: Callable[[], bool],
        ended: Callable[[], None] = lambda: None,
    ) -> T:
        """The answer of ``work``, which is told how to see that it was left. :class:`WorkLeft` as soon as ``stopped``;
        ``ended`` is then called when the work has ended, by its thread."""
        state = _Work(ended)
        with self._lock:
            self._admit(owner)
            future: Future[T] = self._threads.submit(self._carried_out, work, state, owner)
        while not wait((future,), _SLICE_S).done:
            if stopped() and self._leave(state, owner):
                raise WorkLeft
        return future.result()

    def close(self) -> None:
        """What is at work ends by itself; nothing new begins."""
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=False)

    def _admit(self, owner: Owner) -> None:
        if self._closed:
            raise SqlError(sqlstates.ADMIN_SHUTDOWN, "the server is shutting down")
        of_session, of_role = self._left_by_session[owner], self._left_by_role[owner.role]
        if of_session >= limits.LEFT_WORK_OF_SESSION_MAX or of_role >= limits.LEFT_WORK_OF_ROLE_MAX:
            raise SqlError(
                sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                "too many canceled statements are still at work",
                detail=f"There are {of_session} of this session (the limit is {limits.LEFT_WORK_OF_SESSION_MAX}) and "
                f"{of_role} of its role (the limit is {limits.LEFT_WORK_OF_ROLE_MAX}).",
                hint="Wait until they have ended. Queries that build long texts or lists, or join very many relations, "
                "cannot be stopped in the midst of a step.",
            )

    def _leave(self, state: _Work, owner: Owner) -> bool:
        with self._lock:
            if state.done:
                return False
            state.left.set()
            self._left_by_session[owner] += 1
            self._left_by_role[owner.role] += 1
            return True

    def _carried_out(self, work: Callable[[Callable[[], bool]], T], state: _Work, owner: Owner) -> T:
        try:
            return work(state.left.is_set)
        finally:
            with self._lock:
                state.done = True
                left = state.left.is_set()
                if left:
                    self._left_by_session -= Counter({owner: 1})
                    self._left_by_role -= Counter({owner.role: 1})
            if left:
                state.ended()
