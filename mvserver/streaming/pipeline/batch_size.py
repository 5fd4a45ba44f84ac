"""The number of records that a batch may have: fewer after one that failed for its size, and then more again."""

from __future__ import annotations

from mvserver.streaming.pipeline.evaluator import GROWTH, RECORDS_MIN

_PARTS = 4  # a batch of too many bytes is tried with one part in so many of its records
_GOOD_BATCHES = 100  # full ones at the ceiling, before more are tried


class BatchSize:
    """Of one reading. What has failed is not tried again soon: a *ceiling* of half of it holds for a hundred batches.

    Whoever uses it from several threads guards it.
    """

    def __init__(self, most: int, *, first: int | None = None, growth: int = GROWTH) -> None:
        """``most`` records at any time, and ``first`` at the beginning."""
        self._most = self._ceiling = most
        self._growth = growth
        self._good = 0
        self.records_max = most if first is None else min(most, first)

    @property
    def is_reduced(self) -> bool:
        return self.records_max < self._most

    def overran(self) -> None:
        """A batch took too long: the next has few records, so that what holds it up is found soon."""
        self._failed(min(self.records_max, RECORDS_MIN))

    def was_too_large(self, records: int | None = None) -> bool:
        """A batch, of so many ``records`` where that is known, came to too many bytes. False where it cannot have
        fewer."""
        if self.records_max <= 1:
            return False
        self._failed(max(1, min(self.records_max, records or self.records_max) // _PARTS))
        return True

    def succeeded(self, records: int) -> None:
        """A batch was evaluated. One of few records says nothing of more."""
        if not self.is_reduced or records * 2 < self.records_max:
            return
        if self.records_max >= self._ceiling:
            self._good += 1
            if self._good < _GOOD_BATCHES:
                return
            self._ceiling, self._good = min(self._most, self._ceiling * 2), 0
        self.records_max = min(self._ceiling, self.records_max * self._growth)

    def _failed(self, following: int) -> None:
        self._ceiling = max(following, min(self._ceiling, self.records_max // 2))
        self._good = 0
        self.records_max = following
