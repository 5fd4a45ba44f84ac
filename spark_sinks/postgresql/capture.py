"""The thread that takes the changes of a slot into the spool, and tells the slot what is confirmed."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.postgresql.changes import ChangeRecords, KnownTable
from spark_sinks.postgresql.limits import RECONNECT_PAUSE_S, SPOOL_AHEAD_BYTES, STATUS_INTERVAL_S
from spark_sinks.postgresql.pgoutput import parse
from spark_sinks.postgresql.replication import Data, ReplicationStream
from spark_sinks.postgresql.spool import Spool

_log = logging.getLogger(__name__)
_WAIT_S = 1.0
_FULL_PAUSE_S = 0.1


class Capture:
    """Connects again as often as the connection ends. ``read`` is the LSN that the live reader has come to."""

    def __init__(
        self,
        connect: Callable[[], ReplicationStream],
        slot: str,
        spool: Spool,
        records: ChangeRecords,
        read: Callable[[], int],
    ) -> None:
        self._connect = connect
        self._slot = slot
        self._spool = spool
        self._records = records
        self._read = read
        self._stopping = threading.Event()
        self._asked = threading.Event()
        self._again = threading.Event()
        self._wake_end, self._woken_end = os.pipe()
        os.set_blocking(self._wake_end, False)
        os.set_blocking(self._woken_end, False)
        self._problem: SqlError | None = None
        self._thread = threading.Thread(target=self._loop, name=f"capture-{slot[-8:]}", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> SqlError | None:
        """Why nothing comes at present."""
        return self._problem

    def ask(self) -> None:
        """The server is to say how far it has sent all, and is told what is confirmed."""
        self._asked.set()
        self._wake()

    def connect_again(self) -> None:
        """The server has ended another connection. If it is being shut down, it waits for whoever has not confirmed all
        that he was sent, until he is gone."""
        self._again.set()
        self._wake()

    def stop(self) -> None:
        self._stopping.set()
        self._wake()
        self._thread.join()
        os.close(self._wake_end)
        os.close(self._woken_end)

    def know(self, known: KnownTable) -> None:
        """A view was begun with what is known of the table now."""
        self._records.know(known)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is woken already
            os.write(self._woken_end, b"x")

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                self._run()
            except Exception as failure:  # noqa: BLE001 - shown as the source's state, and tried again
                error = failure if isinstance(failure, SqlError) else None
                if error is None:
                    _log.exception("the stream of slot %s has ended", self._slot)
                    words = f"{type(failure).__name__}: {words_of(failure)}"
                    error = SqlError(sqlstates.IO_ERROR, "reading the changes failed", detail=words)
                self._records.cut_off()
                self._problem = error
                self._spool.wake()
                self._stopping.wait(RECONNECT_PAUSE_S)

    def _run(self) -> None:
        self._again.clear()
        stream = self._connect()
        try:
            stream.start(self._slot, self._slot, self._spool.end)
            self._problem = None
            self._asked.set()
            told_at = 0.0
            while not self._stopping.is_set():
                if self._again.is_set():
                    raise SqlError(sqlstates.CONNECTION_FAILURE, "the server has ended its connections")
                asked = self._asked.is_set()
                if asked or time.monotonic() - told_at >= STATUS_INTERVAL_S:
                    self._asked.clear()
                    stream.confirm(self._spool.end, self._spool.start, answer=asked)
                    told_at = time.monotonic()
                if self._spool.bytes_behind(self._read()) > SPOOL_AHEAD_BYTES:
                    self._stopping.wait(_FULL_PAUSE_S)
                    continue
                came = False
                for message in stream.messages():
                    came = True
                    if isinstance(message, Data):
                        self._records.take(parse(message.content))
                    else:
                        if not self._records.in_transaction:
                            self._spool.received(message.lsn)
                        if message.wanted:
                            self._asked.set()
                if not came:
                    stream.wait(_WAIT_S, self._wake_end)
                    self._clear_wakes()
        finally:
            stream.close()

    def _clear_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_end, 4096)
