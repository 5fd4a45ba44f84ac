"""The quota of a shard's reads, kept by all readers of this process together: 5 requests and 2 MB a second.

A refused request makes the next ones wait, longer each time, since readers elsewhere have their part of the quota.
"""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from spark_sinks.kinesis.limits import (
    KINESIS_BACKOFF_LEAST_S,
    KINESIS_BACKOFF_MOST_S,
    KINESIS_BUDGETS_MAX,
    KINESIS_READ_BYTES_PER_S,
    KINESIS_READS_PER_S,
)

_chance = random.Random()  # noqa: S311 - spreads requests, and hides nothing


class ReadBudget:
    """Of one shard. Moments are those of ``clock``, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._next = 0.0
        self._refused = 0

    def reserve(self) -> float:
        """The moment from which the caller may make one request."""
        with self._lock:
            at = max(self._clock(), self._next)
            self._next = at + 1 / KINESIS_READS_PER_S
            return at

    def answered(self, size: int) -> None:
        """The request gave so many bytes."""
        with self._lock:
            self._refused = 0
            self._next = max(self._next, self._clock() + size / KINESIS_READ_BYTES_PER_S)

    def refused(self) -> float:
        """The service refused the request for its quota; gives the moment until which nothing is asked."""
        with self._lock:
            wait = min(KINESIS_BACKOFF_MOST_S, KINESIS_BACKOFF_LEAST_S * 2**self._refused)
            self._refused = min(self._refused + 1, 16)
            self._next = max(self._next, self._clock() + wait * _chance.uniform(0.75, 1.25))
            return self._next


class Budgets:
    """One for each shard, by the place of its stream."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str, str], ReadBudget] = OrderedDict()

    def of(self, place: str, stream: str, shard: str) -> ReadBudget:
        with self._lock:
            found = self._known.setdefault((place, stream, shard), ReadBudget())
            self._known.move_to_end((place, stream, shard))
            while len(self._known) > KINESIS_BUDGETS_MAX:  # those that nobody has begun to read for longest
                self._known.popitem(last=False)
            return found


SHARED = Budgets()
