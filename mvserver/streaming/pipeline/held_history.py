"""The end of what reads or writes a store, and of what a source keeps for a reader."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mvserver.errors import words_of
from spark_sinks.base import SourceReader
from spark_sinks.duckdb.writer import Writer

_log = logging.getLogger(__name__)


def forget_history(reader_id: str, reader: SourceReader, writer: Writer) -> bool:
    """What a source keeps for a reader that is needed no more goes, and the ledger's note of it. False where it could
    not: the note stays, and the next reconciliation sees to it. Nothing is to wait for a source that does not answer.
    """
    if reader.held is None:
        return True
    try:
        reader.held.forget()
    except Exception as error:  # noqa: BLE001 - what reads is dropped all the same
        _log.warning("a source still keeps the history of reader %s, which is gone: %s", reader_id, words_of(error))
        return False
    with writer.transaction() as ledger:
        ledger.drop_history(reader_id)
    return True


class EndedReaders:
    """Readers and writers that are needed no more. Each is ended by a thread of its own: a store that does not answer
    holds up nobody but who begins the same reading anew.

    They are ended in the turn of a statement. Whoever has ended some may wait for them when that is over. ``left`` is
    told of those whose source has not let go.
    """

    def __init__(self, writer: Writer, left: Callable[[str], None]) -> None:
        self._writer = writer
        self._left = left
        self._ending: dict[str, threading.Event] = {}  # by the id of what was read
        self._own = threading.local()  # those that a thread has ended and not waited for

    def end(self, reading_id: str, work: Callable[[], None]) -> None:
        """``work`` stops what was told to stop, which may take as long as its store does, and takes away the rest. It
        begins when what was begun of the same reading before is over."""
        ended, former = threading.Event(), self._ending.get(reading_id)
        self._ending = {key: event for key, event in self._ending.items() if not event.is_set()}
        self._ending[reading_id] = ended
        self._own.events = [event for event in getattr(self._own, "events", ()) if not event.is_set()] + [ended]
        threading.Thread(
            target=self._end, args=(reading_id, work, ended, former), name=f"end-{reading_id[:8]}", daemon=True
        ).start()

    def _end(
        self, reading_id: str, work: Callable[[], None], ended: threading.Event, former: threading.Event | None
    ) -> None:
        if former is not None:
            former.wait()
        try:
            work()
        except Exception:  # noqa: BLE001 - what is left is found by the next statement, or the next start
            _log.exception("what has ended %s could not be taken away", reading_id)
        finally:
            ended.set()

    def forget(self, reading_id: str, reader: SourceReader, folder: Path) -> None:
        """Of a reader that is stopped: what its source keeps for it goes, and ``folder``, which has its files."""
        if not forget_history(reading_id, reader, self._writer):
            self._left(reading_id)
        shutil.rmtree(folder, ignore_errors=True)

    @property
    def ending(self) -> Sequence[str]:
        return [reading_id for reading_id, event in self._ending.items() if not event.is_set()]

    def is_ending(self, reading_id: str) -> bool:
        ending = self._ending.get(reading_id)
        return ending is not None and not ending.is_set()

    def wait_ended(self, reading_id: str) -> None:
        """Before the same is read anew: the former reader has let go of its files. It ends, since what it asks of its
        source has bounds."""
        ending = self._ending.get(reading_id)
        if ending is not None:
            ending.wait()

    def wait_own(self, timeout_s: float) -> None:
        """For those that this thread has ended."""
        own, self._own.events = getattr(self._own, "events", ()), []
        _wait(own, timeout_s)

    def wait_all(self, timeout_s: float) -> None:
        _wait(list(self._ending.values()), timeout_s)


def _wait(events: Sequence[threading.Event], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    for event in events:
        event.wait(max(0.0, deadline - time.monotonic()))
