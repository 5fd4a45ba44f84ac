"""The rows of a push query that has a state, on their way from its outbox to the client.

They lie in DuckDB, put there in the transactions of the batches; the session's thread reads them in pieces when its
client takes them. What is not taken waits there within a bound: above it the query takes no batch.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import pyarrow as pa

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.streaming.push_rows import canceled, ended
from spark_sinks.duckdb import outbox as outboxes
from spark_sinks.duckdb.outbox import Outbox
from spark_sinks.duckdb.writer import Writer


class OutboxRows:
    """Implements ``streaming.api.LiveRows``; ``names`` are those of the columns. ``on_close`` is called once."""

    def __init__(self, outbox: Outbox, names: Sequence[str], writer: Writer, on_close: Callable[[], None]) -> None:
        self._outbox = outbox
        self._names = list(names)
        self._writer = writer
        self._on_close = on_close
        self._condition = threading.Condition()
        self._reading = threading.Lock()  # held while the outbox is read, which must not be dropped meanwhile
        self._batches: deque[pa.RecordBatch] = deque()
        self._read = 0  # the number of the last row that was read
        self._forgotten = 0
        self._last = 0  # the number of the last row that is there
        self._error: SqlError | None = None
        self._interrupted = False
        self._closed = False

    # --- the pipelines' side ----------------------------------------------------------------------------------------
    @property
    def is_congested(self) -> bool:
        """So much waits for the client that the query had better not add to it."""
        return self._last - self._read > limits.PUSH_OUTBOX_ROWS_MAX

    def committed(self) -> None:
        """There may be more to take."""
        with self._writer.read_cursor() as cursor:
            last = outboxes.last_number(cursor, self._outbox)
        with self._condition:
            self._last = max(self._last, last)
            self._condition.notify_all()

    def end(self, error: SqlError) -> None:
        """The first error counts; rows that are there already come before it."""
        with self._condition:
            self._error = self._error or error
            self._condition.notify_all()

    # --- the client's side ------------------------------------------------------------------------------------------
    def wait(self, seconds: float | None) -> bool:
        """Whether there is something to take, rows or the end: now, or within this time (None: as long as it takes)."""
        until = None if seconds is None else time.monotonic() + seconds
        with self._condition:
            left = None if until is None else until - time.monotonic()
            self._condition.wait_for(self._ready, left)
            if self._interrupted:
                raise canceled()
            return self._ready()

    def take(self) -> pa.RecordBatch:
        """The next rows; waits for them. Raises what has ended the query, behind the last row."""
        self.wait(None)
        if not self._batches and not self._closed:
            self._fetch()
        with self._condition:
            if self._batches:
                return self._batches.popleft()
            raise self._error or ended()

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
        with self._reading:
            pass  # from here on nothing is read
        self._on_close()

    def _ready(self) -> bool:
        there = bool(self._batches) or self._last > self._read
        return there or self._error is not None or self._interrupted or self._closed

    def _fetch(self) -> None:
        with self._reading:
            if self._closed:
                return
            self._forget()
            with self._writer.read_cursor() as cursor:
                found = outboxes.pending(cursor, self._outbox, self._read, limits.PUSH_PIECE_ROWS)
        if found is None:
            return
        rows = found.rows.rename_columns(self._names).combine_chunks()
        with self._condition:
            self._batches.extend(batch for batch in rows.to_batches() if batch.num_rows)
            self._read = found.last

    def _forget(self) -> None:
        """Rows that were taken go, in steps: each is a transaction."""
        if self._read - self._forgotten >= limits.PUSH_PIECE_ROWS:
            with self._writer.transaction():
                self._writer.execute(outboxes.forget_statement(self._outbox, self._read))
            self._forgotten = self._read
