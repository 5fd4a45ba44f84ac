"""The places where the interpreter's work can be stopped: lexing, parsing and rewriting a statement.

Python cannot end the work of another thread. So whoever runs a statement says for its thread how a request to stop is
seen, and long loops ask, as PostgreSQL's ``CHECK_FOR_INTERRUPTS`` does. Asking costs some 0.1 microseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

Check = Callable[[], None]
"""Raises where the work is to stop."""

EVERY = 256
"""Steps of a loop (tokens, nodes) from one question to the next: well below a millisecond."""


class _OfThread(threading.local):
    check: Check | None = None


_of_thread = _OfThread()


def check() -> None:
    """Raises what the statement's owner raises (57014, say) if the thread's work is to stop; nothing elsewhere."""
    asked = _of_thread.check
    if asked is not None:
        asked()


def asking(items: Iterable[T]) -> Iterator[T]:
    """The same items; before the first of every ``EVERY`` it is asked whether the work is to stop."""
    for at, item in enumerate(items):
        if not at % EVERY:
            check()
        yield item


def set_check(asked: Check | None) -> Check | None:
    """From now on ``check`` of this thread asks ``asked``; returns whom it asked before, to be set again."""
    before, _of_thread.check = _of_thread.check, asked
    return before


@contextmanager
def interruptible(asked: Check) -> Iterator[None]:
    """Around work of this thread."""
    before = set_check(asked)
    try:
        yield
    finally:
        set_check(before)
