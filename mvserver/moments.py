"""Moments within the life of this process, which no change of the system's clock moves: ages are told by them.

They are seconds since the epoch as the clock was when the process began. Nothing keeps them beyond the process.
"""

from __future__ import annotations

import time

_BEGUN_NS = time.time_ns() - time.monotonic_ns()


def now() -> float:
    return now_ns() / 1_000_000_000


def now_ns() -> int:
    return _BEGUN_NS + time.monotonic_ns()


def by_the_clock(moment: float) -> float:
    """The moment as the system's clock would tell it by now: for people, and for what others have dated."""
    return moment + clock_set_by()


def clock_set_by() -> float:
    """By how much the system's clock was put forward since the process began; negative if back."""
    return time.time() - now()
