"""The moment of the next batch: it is evaluated just as the commit thread is free for it.

While a commit takes longer than an evaluation, a batch that is read at once waits for the commits before it, and its
records only grow old: they are visible after three commits, or four where they came just too late for it. Read in
time for the end of the commit before, they wait for an evaluation and one commit, or two. A batch then has more
records, which costs little: a commit takes its time by its views.

Estimates are medians of the last durations. One that is too short lets the commit thread wait as long as one that is
too long lets the records.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable

_REMEMBERED = 5


class Pace:
    """Of one pipeline: between the thread that evaluates its batches and the one that commits them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._evaluations: deque[float] = deque(maxlen=_REMEMBERED)  # in seconds, from when a batch could be read
        self._commits: deque[float] = deque(maxlen=_REMEMBERED)
        self._released: float | None = None  # since when the next batch may be read; None: nobody knows
        self._began: float | None = None  # the commit under way
        self._queued = 0

    # --- the thread that evaluates ----------------------------------------------------------------------------------
    def begin(self) -> None:
        """A generation begins, and Spark with it."""
        with self._changed:
            self._released = None

    def evaluated(self) -> None:
        """A batch is evaluated, before it waits for its commit."""
        with self._changed:
            if self._released is not None:
                self._evaluations.append(self._clock() - self._released)

    def await_turn(self, given_up: Callable[[], bool]) -> None:
        """Returns when the next batch may be read."""
        with self._changed:
            while (early := self._early()) > 0 and not given_up():
                self._changed.wait(early)
        self.release()

    def release(self) -> None:
        """The next batch may be read at once: in a backlog, say, where it is full however soon it is read."""
        with self._changed:
            self._released = self._clock()

    def wake(self) -> None:
        """A turn that is awaited may be given up now."""
        with self._changed:
            self._changed.notify_all()

    # --- the thread that commits ------------------------------------------------------------------------------------
    def queued(self) -> None:
        with self._changed:
            self._queued += 1

    def began(self) -> None:
        with self._changed:
            self._queued -= 1
            self._began = self._clock()

    def ended(self) -> None:
        """The batch is committed or given up."""
        with self._changed:
            if self._began is not None:
                self._commits.append(self._clock() - self._began)
                self._began = None
            self._changed.notify_all()

    def _early(self) -> float:
        """By how many seconds: until what is left to commit takes as long as an evaluation."""
        if not self._commits or not self._evaluations or (self._began is None and self._queued <= 0):
            return 0.0
        commit, left = statistics.median(self._commits), 0.0
        if self._began is not None:
            left = max(0.0, self._began + commit - self._clock())
        return left + self._queued * commit - statistics.median(self._evaluations)
