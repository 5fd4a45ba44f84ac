"""The continuous queries that run, by id: statements change them in turn, and anybody may ask for one meanwhile.

A statement that restarts a query waits for its threads, and for Spark as long as that hangs; one that drops it, or that
changes its store, leaves that to a thread (``EndedReaders``), since a store may not answer. One that begins to read the
same anew waits for that thread without the turn. So there are two locks. The ``turn`` lets one statement at a time
change the queries, and is held while threads are joined. The other lock is held for a look at the table only. Whoever
asks for a query never waits for the turn.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mvserver.streaming.queries.running import RunningQuery

LOOK_S = 1.0  # the longest wait of who asks for a query that a statement is about to make or replace


class RunningQueries:
    """``turn`` comes before all other locks, and is given to push queries, which change pipelines as well."""

    def __init__(self) -> None:
        self.turn = threading.RLock()
        self._table = threading.Condition()  # nothing is waited for under it but itself
        self._by_id: dict[str, RunningQuery] = {}
        self._replaced: set[str] = set()
        self._statements = 0  # at work, or waiting for their turn

    # --- statements -------------------------------------------------------------------------------------------------
    @contextmanager
    def changing(self) -> Iterator[None]:
        """The turn of a statement."""
        with self._table:
            self._statements += 1
        try:
            with self.turn:
                yield
        finally:
            with self._table:
                self._statements -= 1
                self._table.notify_all()

    @contextmanager
    def replacing(self, query_id: str) -> Iterator[None]:
        """In the turn of a statement: whoever asks for the query waits for what takes its place."""
        with self._table:
            self._replaced.add(query_id)
        try:
            yield
        finally:
            with self._table:
                self._replaced.discard(query_id)
                self._table.notify_all()

    def put(self, running: RunningQuery) -> None:
        with self._table:
            self._by_id[running.query.id] = running
            self._table.notify_all()

    def pop(self, query_id: str) -> RunningQuery:
        with self._table:
            return self._by_id.pop(query_id)

    # --- looks ------------------------------------------------------------------------------------------------------
    def get(self, query_id: str) -> RunningQuery | None:
        """The query as it is now, also while it is being replaced."""
        return self._by_id.get(query_id)

    def all(self) -> Sequence[RunningQuery]:
        with self._table:
            return list(self._by_id.values())

    def ids(self) -> Sequence[str]:
        with self._table:
            return list(self._by_id)

    def find(self, is_wanted: Callable[[RunningQuery], bool]) -> RunningQuery | None:
        """The query that is wanted. Where it is being replaced, or a statement may be about to make it, for
        :data:`LOOK_S` what that statement makes of it is waited for."""
        ends = time.monotonic() + LOOK_S
        with self._table:
            while True:
                found = next((each for each in self._by_id.values() if is_wanted(each)), None)
                changes = self._statements > 0 if found is None else found.query.id in self._replaced
                left = ends - time.monotonic()
                if not changes or left <= 0:
                    return found
                self._table.wait(left)
