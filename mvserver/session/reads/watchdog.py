"""Interrupts a query that was to be short and is not, while it runs on the event loop: everybody waits for it.

Arming a timer for each look-up would cost as much as the look-up's own work here; so one thread looks at intervals at
what runs, and sleeps when nothing has run for a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mvserver import limits
from mvserver.threads import started

_TICK_S = limits.EVENT_LOOP_HELD_S_MAX / 2
_TICKS_AWAKE = 100


@dataclass
class Held:
    interrupt: Callable[[], None]
    since: float
    expired: bool = False


class Watchdog:
    """For one thread's queries, the event loop's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # an interrupt after the query's end would hit the next one
        self._held: Held | None = None
        self._used = False
        self.asleep = threading.Event()  # its thread waits for the next query
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, interrupt: Callable[[], None]) -> Iterator[Held]:
        if self._thread is None:
            self._thread = started(self._run, "loop-watchdog")
        held = Held(interrupt, time.monotonic())
        self._held, self._used = held, True
        if self.asleep.is_set():
            self._wake.set()
        try:
            yield held
        finally:
            with self._lock:
                self._held = None

    def _run(self) -> None:
        quiet = 0
        while True:
            time.sleep(_TICK_S)
            self._look()
            used, self._used = self._used, False
            quiet = 0 if used or self._held is not None else quiet + 1
            if quiet >= _TICKS_AWAKE:
                quiet = 0
                self.asleep.set()
                if self._held is None:
                    self._wake.wait()
                self._wake.clear()
                self.asleep.clear()

    def _look(self) -> None:
        with self._lock:
            held = self._held
            if held is not None and time.monotonic() - held.since > limits.EVENT_LOOP_HELD_S_MAX:
                held.expired = True
                held.interrupt()
