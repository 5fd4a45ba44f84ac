"""The end of readers whose sources keep their history for them."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from mvserver.errors import words_of
from spark_sinks.base import SourceReader

_log = logging.getLogger(__name__)


def forget_history(reader: SourceReader) -> None:
    """What a source keeps for a reader that is needed no more goes. One that does not answer keeps it: it is shown
    there, under the server's name, and nothing is to wait for it."""
    if reader.held is None:
        return
    try:
        reader.held.forget()
    except Exception as error:  # noqa: BLE001 - what reads is dropped all the same
        _log.warning("a source still keeps the history of a reader that is gone: %s", words_of(error))


class EndedReaders:
    """Readers that are needed no more. Each source is told by a thread of its own: one that does not answer holds up
    nobody but who begins the same reading anew.

    Readers are ended in the turn of a statement. Whoever has ended some may wait for them when that is over.
    """

    def __init__(self) -> None:
        self._ending: dict[str, threading.Event] = {}  # by the id of what was read
        self._own = threading.local()  # those that a thread has ended and not waited for

    def end(self, reading_id: str, reader: SourceReader, folder: Path) -> None:
        """It is stopped. ``folder`` has its files, which go as well."""
        if reader.held is None:
            shutil.rmtree(folder, ignore_errors=True)
            return
        ended = threading.Event()
        self._ending = {key: event for key, event in self._ending.items() if not event.is_set()}
        self._ending[reading_id] = ended
        self._own.events = [event for event in getattr(self._own, "events", ()) if not event.is_set()] + [ended]
        threading.Thread(
            target=self._end, args=(reader, folder, ended), name=f"forget-{reading_id[:8]}", daemon=True
        ).start()

    def _end(self, reader: SourceReader, folder: Path, ended: threading.Event) -> None:
        try:
            forget_history(reader)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            ended.set()

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
