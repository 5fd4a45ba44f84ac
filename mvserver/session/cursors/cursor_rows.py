"""The rows of an SQL cursor: read from its query as far as they are asked for, and kept where it may go back.

A cursor that only goes forward keeps one batch. One that scrolls keeps what it has read; one that outlives its
transaction (WITH HOLD) keeps what was left. Both within what the session's cursors may keep together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.session.held_memory import Bounds, HeldMemory, HeldShare


def cursor_memory() -> HeldMemory:
    """Of all sessions' cursors."""
    bounds = Bounds(
        limits.CURSOR_ROWS_BYTES_MAX, limits.CURSOR_ROWS_BYTES_OF_ROLE_MAX, limits.CURSOR_ROWS_BYTES_OF_SERVER_MAX
    )
    return HeldMemory("the rows that cursors keep", bounds, "Close other cursors, or declare them WITHOUT HOLD.")


class CursorRows:
    """``at`` is 0 before the first row, n on row n, and one more than there are rows behind the last."""

    def __init__(self, source: Iterator[pa.RecordBatch], *, keep: bool, budget: HeldShare) -> None:
        self.at = 0
        self.failed = False
        self._source: Iterator[pa.RecordBatch] | None = source
        self._keep = keep
        self._counted = keep  # whether the batches are within the budget
        self._budget = budget
        self._batches: list[pa.RecordBatch] = []
        self._ends: list[int] = []  # the number of each batch's last row
        self._read = 0
        self._closed = False

    @property
    def on_row(self) -> bool:
        return 0 < self.at <= self._read

    def forward(self, count: int | None) -> Iterator[pa.RecordBatch]:
        """The next rows, all of them for None; the cursor moves as they are taken."""
        left = count
        while (left is None or left > 0) and self._ready():
            piece = self._following(left)
            if piece is None:
                self.at = self._read + 1
                return
            self.at += piece.num_rows
            if left is not None:
                left -= piece.num_rows
            yield piece

    def backward(self, count: int | None) -> Iterator[pa.RecordBatch]:
        """The rows before this one, the nearest first. Only where all rows are kept."""
        left = count
        while left is None or left > 0:
            self._check_open()
            row = self.at - 1
            if row < 1:
                self.at = 0
                return
            where = bisect_right(self._ends, row - 1)
            batch = self._batches[where]
            offset = row - 1 - (self._ends[where] - batch.num_rows)
            rows = offset + 1 if left is None else min(left, offset + 1)
            self.at -= rows
            if left is not None:
                left -= rows
            yield batch.slice(offset - rows + 1, rows).take(pa.array(range(rows - 1, -1, -1), pa.int64()))

    def pass_over(self, count: int | None) -> int:
        """Forward without giving the rows; how many there were."""
        return sum(piece.num_rows for piece in self.forward(count))

    def hold(self) -> None:
        """Reads what is left into memory: the query ends with the transaction, the cursor does not."""
        if not self._counted:
            self._forget()
            self._budget.take(sum(batch.nbytes for batch in self._batches))
            self._counted = True
        while self._read_on():
            pass

    def close(self) -> None:
        """Frees the query and the rows; safe to call again."""
        if self._closed:
            return
        self._closed = True
        source, self._source = self._source, None
        if self._counted:
            self._budget.give_back(sum(batch.nbytes for batch in self._batches))
        self._batches.clear()
        self._ends.clear()
        close = getattr(source, "close", None)
        if close is not None:
            close()

    def _check_open(self) -> None:
        if self._closed:
            raise SqlError(sqlstates.INVALID_CURSOR_NAME, "the cursor has been closed")

    def _ready(self) -> bool:
        """Whether the next rows, or the end, may be asked for now."""
        return True

    def _following(self, most: int | None) -> pa.RecordBatch | None:
        """Rows right behind this one, of one batch."""
        self._check_open()
        if not self._keep:
            self._forget()
        if self.at >= self._read and not self._read_on():
            return None
        where = bisect_right(self._ends, self.at)
        batch = self._batches[where]
        offset = self.at - (self._ends[where] - batch.num_rows)
        rows = batch.num_rows - offset
        return batch.slice(offset, rows if most is None else min(rows, most))

    def _forget(self) -> None:
        """The batches that lie behind."""
        gone = bisect_right(self._ends, self.at)
        if self._counted:
            self._budget.give_back(sum(batch.nbytes for batch in self._batches[:gone]))
        del self._batches[:gone]
        del self._ends[:gone]

    def _read_on(self) -> bool:
        """One more batch that has rows; False when there is none."""
        while self._source is not None:
            try:
                batch = next(self._source, None)
                if batch is not None and self._counted:
                    self._budget.take(batch.nbytes)
            except BaseException:
                self.failed = True  # part of the rows must not pass for all of them
                raise
            if batch is None:
                self._source = None
            elif batch.num_rows:
                self._batches.append(batch)
                self._read += batch.num_rows
                self._ends.append(self._read)
                return True
        return False


class FetchedRows:
    """The rows of one FETCH, as the client takes them.

    The cursor stands behind them when the next statement uses it, whatever was taken until then: ``settle`` reads the
    rest aside for who still wants it, or passes over what nobody will take.
    """

    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows = rows
        self._aside: deque[pa.RecordBatch] = deque()
        self._wanted = True

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return self._aside.popleft() if self._aside else next(self._rows)

    def settle(self) -> None:
        size = 0
        for batch in self._rows:
            if not self._wanted:
                continue
            size += batch.nbytes
            if size > limits.SPOOLED_RESULT_BYTES_MAX:
                raise SqlError(
                    sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                    "the rest of an open FETCH is too large to be kept aside",
                    hint="Read it to its end before the next statement on its cursor.",
                )
            self._aside.append(batch)

    def close(self) -> None:
        self._wanted = False
        self._aside.clear()
