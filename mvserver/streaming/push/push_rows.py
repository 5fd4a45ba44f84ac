"""Rows on their way from a pipeline to the client of a push query: the one place where the two meet.

The commit thread puts and never waits; the session's thread takes and may wait. What the client does not take stays
here within a bound: from a mark on the pipeline reads nothing more for it, until it has been taken.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.push.live_batches import QueuedBatches


class PushRows(QueuedBatches):
    def __init__(self, on_close: Callable[[], None] = lambda: None) -> None:
        super().__init__(on_close)
        self._bytes = 0

    @property
    def full(self) -> bool:
        """True while the client has enough to take: nothing more is read for it."""
        return not self._closed and self._bytes > limits.PUSH_WAITING_BYTES_MAX

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

    def take(self) -> pa.RecordBatch:
        batch = super().take()
        with self._condition:
            self._bytes -= batch.nbytes
        return batch
