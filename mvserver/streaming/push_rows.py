"""Rows on their way from a pipeline to the client of a push query: the one place where the two meet.

The commit thread puts and never waits; the session's thread takes and may wait. What the client does not take stays
here within a bound: from a mark on the pipeline reads nothing more for it, until it has been taken.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.errors import SqlError


class PushRows:
    """Implements ``streaming.api.LiveRows``. ``on_close`` is called once, by whoever closes it first."""

    def __init__(self, on_close: Callable[[], None] = lambda: None) -> None:
        self._condition = threading.Condition()
        self._batches: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self._error: SqlError | None = None
        self._interrupted = False
        self._closed = False
        self._on_close = on_close

    # --- the pipeline's side ----------------------------------------------------------------------------------------
    @property
    def full(self) -> bool:
        """True while the client has enough to take: nothing more is read for it."""
        return self._bytes > limits.PUSH_WAITING_BYTES_MAX

    def put(self, table: pa.Table) -> None:
        with self._condition:
            if self._closed or self._error is not None or table.num_rows == 0:
                return
            if self._bytes + table.nbytes > limits.PUSH_BUFFER_BYTES_MAX:
                self._error = SqlError(
                    sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                    "the rows of the push query are too large to be kept for its client",
                    detail=f"At most {limits.PUSH_BUFFER_BYTES_MAX >> 20} MiB may wait; {table.num_rows} rows would "
                    f"bring them to {(self._bytes + table.nbytes) >> 20} MiB.",
                    hint="Select fewer columns, or let the client read faster.",
                )
            else:
                batches = [batch for batch in table.to_batches() if batch.num_rows]
                self._batches.extend(batches)
                self._bytes += sum(batch.nbytes for batch in batches)
            self._condition.notify_all()

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
            self._refuse_interrupted()
            return self._ready()

    def take(self) -> pa.RecordBatch:
        """The next rows; waits for them. Raises what has ended the query, behind the last row."""
        with self._condition:
            self._condition.wait_for(self._ready)
            self._refuse_interrupted()
            if not self._batches:
                raise self._error or ended()
            batch = self._batches.popleft()
            self._bytes -= batch.nbytes
            return batch

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
            self._bytes = 0
            self._condition.notify_all()
        self._on_close()

    def _ready(self) -> bool:
        return bool(self._batches) or self._error is not None or self._interrupted or self._closed

    def _refuse_interrupted(self) -> None:
        if self._interrupted:
            raise canceled()


def canceled() -> SqlError:
    return SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")


def ended() -> SqlError:
    return SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the push query has ended")
