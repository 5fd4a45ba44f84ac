"""The rows of a push query that has a state, on their way from its outbox to the client.

They lie in DuckDB, put there in the transactions of the batches; the session's thread reads them in pieces when its
client takes them. What is not taken waits there within a bound: above it the query takes no batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from mvserver import limits
from mvserver.streaming.push.live_batches import QueuedBatches
from spark_sinks.duckdb.changes import outbox as outboxes
from spark_sinks.duckdb.changes.outbox import Outbox
from spark_sinks.duckdb.writer import Writer


class OutboxRows(QueuedBatches):
    """``names`` are those of the columns."""

    failure: str | None = None  # a client that is gone takes the query with it

    def __init__(self, outbox: Outbox, names: Sequence[str], writer: Writer, on_close: Callable[[], None]) -> None:
        super().__init__(lambda: self._leave(on_close))
        self._outbox = outbox
        self._names = list(names)
        self._writer = writer
        self._reading = threading.Lock()  # held while the outbox is read, which must not be dropped meanwhile
        self._read = 0  # the number of the last row that was read
        self._forgotten = 0
        self._last = 0  # the number of the last row that is there

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

    def _ready(self) -> bool:
        return super()._ready() or self._last > self._read

    def _leave(self, on_close: Callable[[], None]) -> None:
        with self._reading:
            pass  # from here on nothing is read
        on_close()

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
            self._writer.forget_sent(self._outbox, self._read)
            self._forgotten = self._read
