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
from typing import Generic, TypeVar

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.serving.api import Owner

_SLICE_S = 0.05  # a cancel is seen after at most this

T = TypeVar("T")


class WorkAbandoned(SqlError):  # noqa: N818 - says what has become of the work
    """Nobody waits for the work any more, and what it uses is its own until it ends. 57014, or what ``reason`` says."""

    def __init__(self, reason: SqlError | None = None) -> None:
        if reason is None:
            super().__init__(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
        else:
            super().__init__(reason.sqlstate, reason.message, detail=reason.detail, hint=reason.hint)


class AbandonableTask(Generic[T]):
    """One piece of it, which has begun."""

    def __init__(self, office: AbandonableWork, ended: Callable[[], None], leaving: Callable[[], None]) -> None:
        self._office = office
        self.leaving = leaving
        self.left = threading.Event()
        self.done = False
        self.left_by: Owner | None = None
        self.ended = ended
        self.future: Future[T]

    def ends_within(self, seconds: float) -> bool:
        return bool(wait((self.future,), seconds).done)

    def result(self) -> T:
        try:
            return self.future.result()
        finally:
            del self  # an error knows the frames that it went through: a cycle, with all that they hold

    def leave(self, owner: Owner) -> bool:
        """False where it has just ended, and its result is there."""
        return self._office.leave(self, owner)


class AbandonableWork:
    def __init__(self, admit: Callable[[Owner], None] = lambda owner: None) -> None:
        """``admit`` raises for whose work there is no room."""
        self._admit_more = admit
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
        leaving: Callable[[], None] = lambda: None,
        *,
        goes_on: bool = False,
    ) -> T:
        """The answer of ``work``, which is told how to see that it was left. :class:`WorkAbandoned` as soon as
        ``stopped``; ``leaving`` is called before, and ``ended`` when the work has ended after all, by its thread.
        ``goes_on`` is a further piece of a query whose owner was admitted at its begin."""
        begun = self.begin(work, owner, ended, leaving, goes_on=goes_on)
        while not begun.ends_within(_SLICE_S):
            if stopped() and begun.leave(owner):
                raise WorkAbandoned
        try:
            return begun.result()
        finally:
            del begun  # as above

    def begin(
        self,
        work: Callable[[Callable[[], bool]], T],
        owner: Owner,
        ended: Callable[[], None],
        leaving: Callable[[], None] = lambda: None,
        *,
        goes_on: bool = False,
    ) -> AbandonableTask[T]:
        """The same for whoever waits for it in another way; ``owner`` is refused as there."""
        if not goes_on:
            self._admit_more(owner)
        begun: AbandonableTask[T] = AbandonableTask(self, ended, leaving)
        with self._lock:
            if self._closed:
                raise SqlError(sqlstates.ADMIN_SHUTDOWN, "the server is shutting down")
            if not goes_on:
                self._admit(owner)
            begun.future = self._threads.submit(self._carried_out, work, begun)
        return begun

    def close(self) -> None:
        """What is at work ends by itself; nothing new begins."""
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=False)

    def _admit(self, owner: Owner) -> None:
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

    def leave(self, work: AbandonableTask[T], owner: Owner) -> bool:
        with self._lock:
            if work.done:
                return False
            work.leaving()
            work.left.set()
            work.left_by = owner
            self._left_by_session[owner] += 1
            self._left_by_role[owner.role] += 1
            return True

    def _carried_out(self, work: Callable[[Callable[[], bool]], T], begun: AbandonableTask[T]) -> T:
        try:
            return work(begun.left.is_set)
        finally:
            with self._lock:
                begun.done = True
                owner = begun.left_by
                if owner is not None:
                    self._left_by_session -= Counter({owner: 1})
                    self._left_by_role -= Counter({owner.role: 1})
            if owner is not None:
                begun.ended()
            del begun  # as above
