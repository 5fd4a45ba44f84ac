"""One reader of a view's history: the rows at its beginning, where it wants them, and then epoch after epoch.

It is pulled: nothing waits for a reader, and none holds up a batch. Who reads so slowly that the changes are gone
before it asks for them is told from where it could go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.resume_tokens import Token
from mvserver.streaming.watching.refusals import to_who_sees_some_rows, too_old
from mvserver.visible_rows import VisibleRows
from spark_sinks.duckdb.history import reading
from spark_sinks.duckdb.history.epochs import EpochChanges
from spark_sinks.duckdb.history.history import History
from spark_sinks.duckdb.history.reading import HistoryLostError, SnapshotRows
from spark_sinks.duckdb.writer import Writer


class HistoryReader:
    """Implements ``streaming.api.HistoryReader``. One thread takes; ``interrupt`` may come from any."""

    def __init__(
        self,
        view: str,
        history: History,
        writer: Writer,
        seq: int | None,
        on_close: Callable[[], None],
        visible: VisibleRows | None = None,
    ) -> None:
        """``seq``: the number behind which it begins; None where it begins with a snapshot. ``visible``: the rows that
        it gives, where these are not all."""
        self.columns = history.view.columns
        self._view = view
        self._history = history
        self._writer = writer
        self._on_close = on_close
        self._seq = 0 if seq is None else seq
        self._snapshot: SnapshotRows | None = None
        self._visible = visible
        self._mark = "" if visible is None else visible.mark
        self._seal = writer.histories.seal
        self._fetched: list[EpochChanges] = []  # visible ones that nobody has taken yet
        self._within = False  # a part of an epoch was given, and more of it may follow
        self._stop: SqlError | None = None
        self._closed = False
        self._closing = threading.Lock()  # of what ``close`` does once
        if seq is None:
            self._snapshot = self._open_snapshot()
            self._seq = self._snapshot.place.latest.seq

    def _open_snapshot(self) -> SnapshotRows:
        try:
            return SnapshotRows(self._writer.read_cursor(), self._history.view, self._visible)
        except HistoryLostError:
            raise self._lost() from None

    # --- the beginning ------------------------------------------------------------------------------------------------
    @property
    def token(self) -> str:
        """Of what was taken so far. While the snapshot is not read to its end, nothing can be resumed from here."""
        return self._seal.text(Token(self._history.extent.incarnation, self._seq, self._mark))

    @property
    def place(self) -> reading.Kept | None:
        """Of the snapshot: its epoch, its time and its token."""
        return None if self._snapshot is None else self._snapshot.place

    def snapshot(self) -> Iterator[pa.RecordBatch]:
        """The rows at the beginning; nothing where it was begun without. To be read first, once, to its end."""
        rows = self._snapshot
        if rows is None:
            return
        try:
            while True:
                with self._stoppable():
                    batch = next(rows, None)
                if batch is None:
                    return
                yield batch
        finally:
            rows.close()

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        self._refuse_stopped()
        try:
            yield
        except BaseException:
            self._refuse_stopped()
            raise

    # --- the changes --------------------------------------------------------------------------------------------------
    def wait(self, seconds: float | None) -> bool:
        """Whether there is something to take, changes or the end: now, or within this time (None: as long as it
        takes)."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self._fetched:
            left = None if until is None else max(0.0, until - time.monotonic())
            news = self._history.wait_behind(self._seq, left, lambda: self._stop is not None or self._closed)
            self._refuse_stopped()
            if self._closed:
                return True
            if not news or self._visible is None:
                return news
            self._fetched = self._visible_ones()
        return True

    def take(self) -> Sequence[EpochChanges]:
        """The next epochs, in their order; waits for one. 72000 where they are gone, or the view is."""
        self.wait(None)
        if self._visible is not None:
            fetched, self._fetched = self._fetched, []
            return fetched
        recent = self._history.recent(self._seq)
        found = self._read() if recent is None else recent
        if found:
            self._seq = found[-1].last_seq
        return found

    def _visible_ones(self) -> list[EpochChanges]:
        """The next epochs, less those of which nothing is visible."""
        found = []
        for epoch in self._read():
            self._seq = epoch.last_seq
            if epoch.rows.num_rows or self._within:
                found.append(epoch)
                self._within = not epoch.complete
        return found

    def _read(self) -> Sequence[EpochChanges]:
        token = Token(self._history.extent.incarnation, self._seq)
        with self._writer.read_cursor() as cursor:
            try:
                found = reading.changes_behind(
                    cursor, self._history.view, token, visible=self._visible, seal=self._seal
                )
            except HistoryLostError:
                raise self._lost() from None
        if not found and self._history.ended is not None:
            raise self._history.ended
        return found

    def _lost(self) -> SqlError:
        if self._history.ended is not None:
            return self._history.ended
        with self._writer.read_cursor() as cursor:
            error = too_old(self._view, reading.kept(cursor, self._history.view))
        return error if self._visible is None else to_who_sees_some_rows(error)

    # --- the end ------------------------------------------------------------------------------------------------------
    def interrupt(self) -> None:
        """Whoever waits, or is about to, does so no longer (57014)."""
        self.stop(SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request"))

    def stop(self, error: SqlError) -> None:
        """The same with another reason; the first counts."""
        self._stop = self._stop or error
        if self._snapshot is not None and not self._closed:
            self._snapshot.interrupt()
        self._history.wake()

    def _refuse_stopped(self) -> None:
        if self._stop is not None:
            raise self._stop

    def close(self) -> None:
        """Frees all it holds; safe to call again."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        if self._snapshot is not None:
            self._snapshot.close()
        self._on_close()
