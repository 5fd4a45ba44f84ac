"""A running query's rows as Arrow record batches, a bounded chunk at a time, with errors in PostgreSQL's words."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Self

import duckdb
import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.dialect.errors.duck_errors import translate
from mvserver.errors import SqlError
from mvserver.serving.engine.abandonable_work import WorkAbandoned
from mvserver.visible_rows import told


class Watch:
    """Ends a statement after its time and remembers why it was ended: DuckDB only says that it was interrupted.

    ``notice`` is told of each error, which may be a sign of a damaged file.
    """

    def __init__(
        self,
        interrupt: Callable[[], None],
        timeout_s: float | None,
        notice: Callable[[BaseException], object],
        *,
        secured: bool = False,
    ) -> None:
        """``secured``: policies decide which rows the query sees."""
        self._secured = secured
        self._interrupt = interrupt
        self._notice = notice
        self._timed_out = False
        self._timer: threading.Timer | None = None
        if timeout_s is not None and timeout_s > 0:
            self._timer = threading.Timer(timeout_s, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _expire(self) -> None:
        self._timed_out = True
        self._interrupt()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def translate(self, error: BaseException) -> SqlError:
        self._notice(error)
        found = told(translate(error), secured=self._secured)
        if found.sqlstate == sqlstates.QUERY_CANCELED and self._timed_out:
            return SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to statement timeout")
        return found


class StreamedBatches(Iterator[pa.RecordBatch]):
    """Batches of an open DuckDB result. ``close`` frees the cursor for its next statement; safe to call twice."""

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        watch: Watch,
        finished: Callable[[int | None], None],
        turn: Callable[[], AbstractContextManager[None]],
        abandonable: Callable[[Callable[[], pa.RecordBatch | None]], pa.RecordBatch | None],
        check: Callable[[], None],
        begun: Sequence[pa.RecordBatch] = (),
    ) -> None:
        """``turn`` is taken for each batch, which is made by ``abandonable``; ``finished`` is told how many rows there
        were, where all were read; ``check`` raises why the query was ended; ``begun`` was read already."""
        self._reader: pa.RecordBatchReader | None = reader
        self._watch = watch
        self._finished = finished
        self._turn = turn
        self._abandonable = abandonable
        self._check = check
        self._aside: deque[pa.RecordBatch] = deque(begun)
        self._revoked = False
        self._rows = sum(batch.num_rows for batch in begun)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._aside:
            return self._aside.popleft()
        if self._revoked:
            raise SqlError(sqlstates.INVALID_CURSOR_NAME, "the result's transaction has ended")
        return self._next()

    def _next(self) -> pa.RecordBatch:
        if self._reader is None:
            raise StopIteration
        try:
            self._check()
            with self._turn():
                batch = self._abandonable(partial(next, self._reader, None))
        except WorkAbandoned:
            self._reader = None  # closed with its cursor, when it has ended
            self._watch.stop()
            self._finished(None)
            raise
        except SqlError:
            self.close()
            raise
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            self.close()
            raise self._watch.translate(error) from error
        if batch is None:
            self._end(self._rows)
            raise StopIteration
        self._rows += batch.num_rows
        return batch

    def spool(self) -> None:
        """Read the rest into memory, so that the cursor is free; 53400 when it is too large."""
        size = 0
        rest: list[pa.RecordBatch] = []
        try:
            while True:
                rest.append(self._next())
                size += rest[-1].nbytes
                if size > limits.SPOOLED_RESULT_BYTES_MAX:
                    raise SqlError(
                        sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                        "the rest of an open result is too large to be read aside",
                        hint="Read or close the open cursor before the next statement.",
                    )
        except StopIteration:
            self._aside.extend(rest)
        except SqlError:
            self.revoke()
            raise

    def revoke(self) -> None:
        """The cursor is needed for good: who still reads gets an error instead of a result that looks whole."""
        if self._reader is not None:
            self._revoked = True
            self._aside.clear()
            self.close()

    def close(self) -> None:
        self._end(None)

    def _end(self, rows: int | None) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            self._watch.stop()
            try:
                reader.close()
            finally:
                self._finished(rows)
