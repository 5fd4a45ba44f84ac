"""Python's collector of cycles, kept from holding up the server.

A full collection looks at every object while all threads wait. Python begins one whenever enough objects are new,
which is just while a large statement is being parsed, and looks through its whole tree for nothing. Here the young
generations are left to Python (a collection of those takes a millisecond), what the server is made of is never looked
at again, and full collections are begun by a thread, at moments when no large statement is at work.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

from mvserver import limits

_LOOK_EVERY_S = 0.25
_NEVER = 1_000_000_000  # collections of the middle generation until Python would begin a full one by itself


class Collector:
    def __init__(self, busy: Callable[[], bool]) -> None:
        """``busy`` tells whether a collection would better wait; it does so for a while only."""
        self._busy = busy
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)
        self._before = gc.get_threshold()

    def start(self) -> None:
        """What there is now stays: modules, classes, settings."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(*self._before[:2], _NEVER)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)
        gc.set_threshold(*self._before)
        gc.unfreeze()

    def _run(self) -> None:
        wanted_since: float | None = None
        while not self._stop.wait(_LOOK_EVERY_S):
            if gc.get_count()[2] < limits.COLLECT_AFTER_MIDDLE_COLLECTIONS:
                continue
            now = time.monotonic()
            wanted_since = now if wanted_since is None else wanted_since
            if self._busy() and now - wanted_since < limits.COLLECTION_POSTPONED_S_MAX:
                continue
            wanted_since = None
            gc.collect()
