"""The thread that takes the changes of a slot into the spool, and tells the slot what is confirmed."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.postgresql.changes import ChangeRecords, KnownTable
from spark_sinks.postgresql.connections import stopping
from spark_sinks.postgresql.limits import (
    RECONNECT_PAUSE_S,
    SLOT_FREE_PAUSE_S,
    SLOT_FREE_S,
    SPOOL_AHEAD_BYTES,
    SPOOL_BYTES_MAX,
    STATUS_INTERVAL_S,
)
from spark_sinks.postgresql.replication import ReplicationStream
from spark_sinks.postgresql.spool import Spool

_log = logging.getLogger(__name__)
_ASK_AGAIN_S = 0.05
_REWIND_LOOK_S = 0.1
_WAIT_S = 1.0
_FULL_PAUSE_S = 0.1


@dataclass(frozen=True)
class _Rewind:
    """All behind ``lsn`` is to come again, as records of the table as it is ``known``."""

    known: KnownTable
    lsn: int
    done: threading.Event = field(default_factory=threading.Event)


class Capture:
    """Connects again as often as the connection ends. ``read`` is the LSN that the live reader has come to."""

    def __init__(
        self,
        connect: Callable[[Callable[[], bool]], ReplicationStream],
        slot: str,
        publication: str,
        spool: Spool,
        records: ChangeRecords,
        read: Callable[[], int],
    ) -> None:
        self._connect = connect
        self._slot = slot
        self._publication = publication
        self._spool = spool
        self._records = records
        self._read = read
        self._stopping = threading.Event()
        self._asked = threading.Event()
        self._again = threading.Event()
        self._wanted = 0  # the LSN that somebody waits for
        self._wake_end, self._woken_end = os.pipe()
        os.set_blocking(self._wake_end, False)
        os.set_blocking(self._woken_end, False)
        self._problem: SqlError | None = None
        self._rewind: _Rewind | None = None
        self._left_at = time.monotonic()  # when the slot was last let go of, here or by a former capture
        self._thread = threading.Thread(target=self._loop, name=f"capture-{slot[-8:]}", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> SqlError | None:
        """Why nothing comes at present."""
        return self._problem

    def ask(self, lsn: int = 0) -> None:
        """The server is to say how far it has sent all, until that is up to the LSN; and is told what is confirmed."""
        self._wanted = max(self._wanted, lsn)
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

    def begin_again(self, known: KnownTable, lsn: int) -> None:
        """The same where the rows are other ones than before: what was received behind that LSN was made of the former
        ones. Returns when nothing of it is left; 57014 where the capture ends first."""
        asked = self._rewind = _Rewind(known, lsn)
        self._wake()
        while not asked.done.wait(_REWIND_LOOK_S):
            if self._stopping.is_set():
                raise stopping()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is woken already
            os.write(self._woken_end, b"x")

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                self._records.cut_off()  # of a transaction that was under way
                self._rewound()
                self._run()
            except Exception as failure:  # noqa: BLE001 - shown as the source's state, and tried again
                if self._is_just_left(failure):
                    self._stopping.wait(SLOT_FREE_PAUSE_S)
                    continue
                error = failure if isinstance(failure, SqlError) else None
                if error is None:
                    _log.exception("the stream of slot %s has ended", self._slot)
                    words = f"{type(failure).__name__}: {words_of(failure)}"
                    error = SqlError(sqlstates.IO_ERROR, "reading the changes failed", detail=words)
                self._show(error)
                self._stopping.wait(RECONNECT_PAUSE_S)

    def _is_just_left(self, failure: Exception) -> bool:
        """Whether the server has not noticed yet that the slot's former stream has ended."""
        busy = isinstance(failure, SqlError) and failure.sqlstate == sqlstates.OBJECT_IN_USE
        return busy and time.monotonic() - self._left_at < SLOT_FREE_S

    def _rewound(self) -> None:
        asked, self._rewind = self._rewind, None
        if asked is not None:
            self._spool.rewind(asked.lsn)
            self._records.know(asked.known)
            asked.done.set()

    def _show(self, problem: SqlError | None) -> None:
        if problem is not self._problem:
            self._problem = problem
            self._spool.wake()

    def _run(self) -> None:
        self._again.clear()
        stream, begun = self._connect(self._stopping.is_set), False
        try:
            stream.start(self._slot, self._publication, self._spool.end)
            self._problem, begun = None, True
            self._asked.set()
            told_at = 0.0
            while not self._stopping.is_set() and self._rewind is None:
                if self._again.is_set():
                    raise SqlError(sqlstates.CONNECTION_FAILURE, "the server has ended its connections")
                asked = self._asked.is_set()
                if asked or time.monotonic() - told_at >= STATUS_INTERVAL_S:
                    self._asked.clear()
                    stream.confirm(self._spool.end, self._spool.start, answer=asked)
                    told_at = time.monotonic()
                if self._is_full():
                    self._stopping.wait(_FULL_PAUSE_S)
                    continue
                came = False
                for message in stream.messages():
                    came = True
                    if isinstance(message, bytes):
                        self._records.take_message(message)
                    else:
                        if not self._records.in_transaction:
                            self._spool.received(message.lsn)
                        if message.wanted:
                            self._asked.set()
                if not came:
                    lacks = self._spool.end < self._wanted  # the server had not come to it when it was asked
                    stream.wait(_ASK_AGAIN_S if lacks else _WAIT_S, self._wake_end)
                    self._clear_wakes()
                    if lacks:
                        self._asked.set()
        finally:
            stream.close()
            if begun:
                self._left_at = time.monotonic()

    def _is_full(self) -> bool:
        """Never within a transaction: nobody could read on before its end."""
        if self._records.in_transaction:
            return False
        kept = self._spool.bytes
        if kept <= SPOOL_BYTES_MAX:
            self._show(None)
            return self._spool.bytes_behind(self._read()) > SPOOL_AHEAD_BYTES
        if self._problem is None:
            self._show(_too_many(kept))
        return True

    def _clear_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_end, 4096)


def _too_many(kept: int) -> SqlError:
    return SqlError(
        sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
        "the changes that are kept come to too many bytes",
        detail=f"They are {kept} bytes of at most {SPOOL_BYTES_MAX}. Queries that have failed or were terminated may "
        "still need them.",
        hint="RESTART or REFRESH such queries, or drop those that are not needed.",
    )
