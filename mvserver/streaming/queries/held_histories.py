"""Sources that keep a history for readers of this server: noted before they begin to, and until they have let it go.

A statement that is cut off between the catalog's commit and its last step leaves a history that nobody reads, and so
does a source that does not answer when its last reader goes. Each reconciliation compares the notes with what reads.
The rest is let go in the background, tried again for as long as the source does not answer.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Sequence

from catalog.model import Store
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.held_history import forget_history
from mvserver.streaming.queries.engine_services import EngineServices
from mvserver.threads import started
from spark_sinks.base import SourceReader
from spark_sinks.duckdb.ledger.ledger import HistoryRow

_log = logging.getLogger(__name__)

RETRY_S = 60.0  # between two attempts at a source that does not answer
_END_S = 60.0  # the longest that a query waits which begins over a source that is letting go


class HeldHistories:
    """``hold`` and ``let_go`` are called in the turn of a statement."""

    def __init__(self, services: EngineServices, *, retry_s: float = RETRY_S) -> None:
        self._services = services
        self._retry_s = retry_s
        self._lock = threading.Lock()
        self._left: dict[str, HistoryRow] = {}  # those that nobody reads, by reader
        self._ending: dict[str, threading.Event] = {}  # attempts under way
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def hold(self, reader_id: str, store: Store, entity: str, reader: SourceReader) -> None:
        """Before the reader is used. What it has left behind is its own again."""
        if reader.held is None:
            return
        with self._lock:
            self._left.pop(reader_id, None)
            ending = self._ending.get(reader_id)
        if ending is not None and not ending.wait(_END_S):
            raise SqlError(
                sqlstates.OBJECT_IN_USE,
                f'entity "{entity}" of store "{store.name}" is still busy',
                detail="What it keeps for a query that was dropped is being taken away.",
                hint="Try again.",
            )
        with self._services.writer.transaction() as ledger:
            ledger.hold_history(HistoryRow(reader_id, store.id, entity))

    def let_go(self, left: Sequence[HistoryRow]) -> None:
        """All that nobody reads now."""
        with self._lock:
            self._left = {row.reader_id: row for row in left}
            self._begin()

    def _begin(self) -> None:
        if self._left and self._thread is None and not self._stopping.is_set():
            self._thread = started(self._loop, "let-go-histories")

    def left(self, reader_id: str) -> None:
        """Its source has not let go of it."""
        rows = {row.reader_id: row for row in self._services.writer.ledger_histories() if row.reader_id == reader_id}
        with self._lock:
            self._left.update(rows)
            self._begin()

    def stop(self) -> None:
        """What is left is seen to at the next start."""
        self._stopping.set()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            with self._lock:
                waiting = list(self._left)
                if not waiting:
                    self._thread = None
                    return
            refused = [reader_id for reader_id in waiting if not self._try(reader_id)]
            if refused:
                self._stopping.wait(self._retry_s)

    def _try(self, reader_id: str) -> bool:
        """False where it is to be tried again."""
        with self._lock:
            row = self._left.get(reader_id)
            if row is None:  # it is read again
                return True
            ended = self._ending[reader_id] = threading.Event()
        gone = False
        try:
            gone = self._is_forgotten(row)
        except Exception:  # noqa: BLE001 - tried again
            if not self._stopping.is_set():  # at the end of the server nothing is written any more
                _log.exception("the history of reader %s could not be let go", reader_id)
        finally:
            with self._lock:
                if gone:
                    self._left.pop(reader_id, None)
                del self._ending[reader_id]
            ended.set()
        return gone

    def _is_forgotten(self, row: HistoryRow) -> bool:
        services, work = self._services, self._services.work_directory / row.reader_id
        store = services.catalog.stores.by_id(row.store_id)
        if store is None:
            _log.warning("the store of reader %s is gone, and may still keep a history for it", row.reader_id)
            with services.writer.transaction() as ledger:
                ledger.drop_history(row.reader_id)
        elif not forget_history(row.reader_id, services.stores.held_reader(store, row.entity, work), services.writer):
            return False
        shutil.rmtree(work, ignore_errors=True)
        return True
