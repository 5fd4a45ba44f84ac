"""Idle partitions: those that have had no record for a while although all that they hold was read.

They do not hold back the watermark of a view that says so. The clock begins anew with each start of the server: what
came while it was down is read first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


class Idleness:
    """Of one view. Guarded by its pipeline's lock."""

    def __init__(self, timeout_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._timeout_s = timeout_s
        self._clock = clock
        self._moved: dict[str, tuple[int, float]] = {}  # how far a partition was read, and since when

    def idle(
        self, read: Mapping[str, int], latest: Mapping[str, int] | None, seen_at: float | None = None
    ) -> frozenset[str]:
        """``latest`` is where the source ended when it last said so, None where it has not; asked at ``seen_at``,
        by default now. What has come since is not known: a source that does not answer has no idle partitions."""
        now = self._clock()
        for partition, place in read.items():
            known = self._moved.get(partition)
            if known is None or known[0] != place:
                self._moved[partition] = (place, now)
        if self._timeout_s is None or latest is None:
            return frozenset()
        until = now if seen_at is None else seen_at
        return frozenset(
            partition
            for partition, place in read.items()
            if until - self._moved[partition][1] >= self._timeout_s and place >= latest.get(partition, 0)
        )
