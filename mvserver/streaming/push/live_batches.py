"""The rows of a push query that wait for their client: one thread takes them, others end, interrupt or close them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError


class QueuedBatches:
    """Implements ``streaming.api.LiveRows`` over the batches that lie here. ``on_close`` is called once, by whoever
    closes it first."""

    def __init__(self, on_close: Callable[[], None]) -> None:
        self._on_close = on_close
        self._condition = threading.Condition()
        self._batches: deque[pa.RecordBatch] = deque()
        self._error: SqlError | None = None
        self._interrupted = False
        self._closed = False

    # --- the pipelines' side ----------------------------------------------------------------------------------------
    def end(self, error: SqlError) -> None:
        """The first error counts; rows that are there already come before it."""
        with self._condition:
            self._error = self._error or error
            self._condition.notify_all()

    # --- the client's side ------------------------------------------------------------------------------------------
    def wait(self, seconds: float | None) -> bool:
        """Whether there is something to take, rows or the end: now, or within this time (None: as long as it takes)."""
        with self._condition:
            self._condition.wait_for(self._ready, seconds)
            if self._interrupted:
                raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
            return self._ready()

    def take(self) -> pa.RecordBatch:
        """The next rows; waits for them. Raises what has ended the query, behind the last row."""
        self.wait(None)
        if not self._batches:
            self._fetch()
        with self._condition:
            if self._batches:
                return self._batches.popleft()
            raise self._error or SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the push query has ended")

    def interrupt(self) -> None:
        """From any thread: whoever waits, or is about to, does so no longer."""
        with self._condition:
            self._interrupted = True
            self._condition.notify_all()

    def close(self) -> None:
        with self._condition:
            if self._closed:
                return
            self._closed = True
            self._batches.clear()
            self._condition.notify_all()
        self._on_close()

    # --- of each kind -----------------------------------------------------------------------------------------------
    def _ready(self) -> bool:
        """Whether nobody need wait."""
        return bool(self._batches) or self._error is not None or self._interrupted or self._closed

    def _fetch(self) -> None:
        """Brings batches here that lie elsewhere."""
