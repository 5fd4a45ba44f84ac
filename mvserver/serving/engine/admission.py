"""Turns of pull queries in DuckDB: so many are at work at the same time, and the others wait for a batch's end.

A statement that waits for its client, for Spark or for a view to be filled holds no turn, so that it keeps nobody else
from reading.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mvserver import sqlstates
from mvserver.errors import SqlError

_SLICE_S = 0.25  # a cancel is seen after at most this


class Admission:
    def __init__(self, width: int) -> None:
        self._semaphore = threading.Semaphore(width)

    def take(self) -> bool:
        """A turn for a short piece of work, where one is free; to be given back."""
        return self._semaphore.acquire(blocking=False)

    def give_back(self) -> None:
        self._semaphore.release()

    @contextmanager
    def taken(self, stopped: Callable[[], bool]) -> Iterator[None]:
        """Around one piece of work; not to be nested. 57014 when ``stopped`` before its turn comes."""
        while not self._semaphore.acquire(timeout=_SLICE_S):
            if stopped():
                raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
        try:
            yield
        finally:
            self._semaphore.release()
