"""One thread that calls back at given moments: statement time-outs and idle transactions of all sessions.

A thread per pending time-out would be a thread per session; here it is one for the server, asleep until the next one.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

from mvserver.threads import started

_log = logging.getLogger(__name__)

_COMPACT_FROM = 1_024  # pending entries


class Deadline:
    """A pending call; ``cancel`` may come from any thread, and after the call has begun it has no effect."""

    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Deadlines:
    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._heap: list[tuple[float, int, Deadline]] = []
        self._order = itertools.count()
        self._closed = False
        self._compact_at = _COMPACT_FROM
        self._thread: threading.Thread | None = None

    def after(self, delay_s: float, callback: Callable[[], None]) -> Deadline:
        """Calls ``callback`` once, ``delay_s`` from now; it must be short and not raise."""
        deadline = Deadline(callback)
        with self._condition:
            if self._closed:
                return deadline
            if len(self._heap) >= self._compact_at:
                self._compact()
            heapq.heappush(self._heap, (time.monotonic() + delay_s, next(self._order), deadline))
            if self._thread is None:
                self._thread = started(self._run, "session-deadlines")
            self._condition.notify()
        return deadline

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._heap.clear()
            self._condition.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while True:
            with self._condition:
                self._drop_cancelled()
                while not self._closed and (not self._heap or self._heap[0][0] > time.monotonic()):
                    self._condition.wait(self._heap[0][0] - time.monotonic() if self._heap else None)
                    self._drop_cancelled()
                if self._closed:
                    return
                deadline = heapq.heappop(self._heap)[2]
            if not deadline.cancelled:
                try:
                    deadline.callback()
                except Exception:  # noqa: BLE001 - logged;
                    # a callback's fault must not stop the time-outs of all other sessions
                    _log.exception("a deadline's action failed")

    def _compact(self) -> None:
        """Most time-outs are cancelled long before they are due: without this they would pile up until then."""
        self._heap = [entry for entry in self._heap if not entry[2].cancelled]
        heapq.heapify(self._heap)
        self._compact_at = max(_COMPACT_FROM, 2 * len(self._heap))

    def _drop_cancelled(self) -> None:
        while self._heap and self._heap[0][2].cancelled:
            heapq.heappop(self._heap)
