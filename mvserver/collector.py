"""Python's collector of cycles, kept from holding up the server.

A full collection looks at every object while all threads wait. Python begins one whenever enough objects are new,
which is just while a large statement is being parsed, and looks through all that the server has for nothing. Here the
young generations are left to Python (a collection of those takes a millisecond). What outlives them is looked at once
more by a thread, a little at a time, and what is then still there stays, unlooked at, as what the server is made of
does. While a large statement is at work, what outlives them is its tree, and stays without that look. Only when much
has come to stay, all of it is looked at again: rarely, and when no large statement is at work.

Objects are counted, and never taken into our hands: ``gc.get_objects`` and its like would hold tuples that another
thread is still filling, and Python then fails that thread's ``tuple(...)`` with a SystemError.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

from mvserver import limits

_LOOK_EVERY_S = 0.05
_SHARE = 4  # a quarter of what there was is much, as Python has it
_NEVER = 1_000_000_000  # collections of the middle generation until Python would begin a full one by itself


class Collector:
    def __init__(self, busy: Callable[[], bool]) -> None:
        """``busy`` tells whether a large statement is at work; looking at everything waits for it, within bounds."""
        self._busy = busy
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)
        self._before = gc.get_threshold()
        self._staying = 0  # objects, when all were last looked at
        self._added = 0  # to those since then, at most

    def start(self) -> None:
        """What there is now stays: modules, classes, settings."""
        self._collect_all()
        gc.set_threshold(*self._before[:2], _NEVER)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)
        gc.set_threshold(*self._before)
        gc.unfreeze()

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            if gc.get_count()[2] >= limits.COLLECT_AFTER_MIDDLE_COLLECTIONS:
                self._collect_new()
            if self._have_many_come():
                self._added = gc.get_freeze_count() - self._staying  # without those that have gone by themselves
                if self._have_many_come():
                    self._collect_all()

    def _collect_new(self) -> None:
        self._added += gc.get_count()[2] * _objects_a_middle_collection()
        if not self._busy():
            gc.collect()
        gc.freeze()

    def _collect_all(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._staying, self._added = gc.get_freeze_count(), 0

    def _have_many_come(self) -> bool:
        if self._busy():
            return self._added > limits.COLLECT_ALL_ANYWAY_AFTER_OBJECTS
        return self._added > max(limits.COLLECT_ALL_AFTER_OBJECTS, self._staying // _SHARE)


def _objects_a_middle_collection() -> int:
    """New objects between two collections of the middle generation: at most so many of them have outlived it."""
    young, middle, _ = gc.get_threshold()
    return young * middle
