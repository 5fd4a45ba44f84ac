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
