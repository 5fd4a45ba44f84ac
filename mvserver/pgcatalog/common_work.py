"""Work that several statements need alike: who comes first has it begun, all wait for it, and who must stop leaves it
to the others. It goes on then, so that it is done when it is asked for again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from mvserver import sqlstates
from mvserver.errors import SqlError

_SLICE_S = 0.05  # a cancel is seen after at most this


class CommonWork:
    """One piece at a time, by a thread of its own."""

    def __init__(self, name: str) -> None:
        self._threads = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._at_work: Future[None] | None = None
        self._closed = False

    def until(self, done: Callable[[], bool], work: Callable[[], None], stopped: Callable[[], bool]) -> None:
        """Have ``work`` done until ``done``; what it raises is raised to all who wait. 57014 as soon as ``stopped``."""
        while not done():
            found = self._begun(work)
            while not wait((found,), _SLICE_S).done:
                if stopped():
                    raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
            found.result()

    def _begun(self, work: Callable[[], None]) -> Future[None]:
        with self._lock:
            if self._closed:
                raise SqlError(sqlstates.ADMIN_SHUTDOWN, "the server is shutting down")
            if self._at_work is None or self._at_work.done():
                self._at_work = self._threads.submit(work)
            return self._at_work

    def close(self) -> None:
        """What is at work is waited for; nothing new begins."""
        with self._lock:
            self._closed = True
        self._threads.shutdown()
