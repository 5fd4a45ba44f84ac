"""Trying again for as long as something is wanted: soon at first, and less often while it goes on failing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

_DELAYS_S = (0.5, 1.0, 2.0, 5.0, 10.0)
LASTED_S = 60.0  # an attempt that went well for so long: what ends it now is another matter


def attempts(stopping: threading.Event) -> Iterator[None]:
    """One turn for each attempt, with a pause behind it, until ``stopping`` is set."""
    failed = 0
    while not stopping.is_set():
        began = time.monotonic()
        yield
        if time.monotonic() - began > LASTED_S:
            failed = 0
        stopping.wait(_DELAYS_S[min(failed, len(_DELAYS_S) - 1)])
        failed += 1


class Reading:
    """Whether a source is read at present, and since when: what ended the attempt before may be what ends this one."""

    def __init__(self) -> None:
        self._since: float | None = None

    @property
    def running(self) -> bool:
        return self._since is not None

    @running.setter
    def running(self, running: bool) -> None:
        if running != self.running:
            self._since = time.monotonic() if running else None

    def has_recovered(self, left: int | None) -> bool:
        """Whether what ended the attempt before is over, of a source that is well: nothing is left to be read, or this
        attempt has gone on for long. Else the next commit says so. ``left`` is None where that is not known."""
        since = self._since
        if since is None:
            return False
        return left is None or left <= 0 or time.monotonic() - since >= LASTED_S
