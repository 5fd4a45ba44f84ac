"""Threads of the server's own that are started when they are first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable


def started(target: Callable[[], None], name: str) -> threading.Thread:
    """A thread that runs already. Where the system allows no more, RuntimeError is raised before anybody could take
    one for running that is not: whoever needs it tries again."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread
