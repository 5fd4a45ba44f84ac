"""What the server allows of live lanes: whether there are any, and task slots for how many partitions."""

from __future__ import annotations

import threading


class LiveLanes:
    """Of all pipelines. A task of a live lane holds its slot as long as the lane goes on.

    ``refusal`` says why there are no live lanes; None where there are. ``cores`` are what batches may take of Spark's
    slots, so that the slots of live lanes are left to these.
    """

    def __init__(self, slots: int, *, cores: int | None = None, refusal: str | None = None) -> None:
        self.slots = slots
        self.cores = cores
        self.refusal = refusal
        self._lock = threading.Lock()
        self._taken = 0

    def take(self, count: int) -> bool:
        """Slots for so many partitions; False where fewer are left."""
        with self._lock:
            if self.refusal is not None or self._taken + count > self.slots:
                return False
            self._taken += count
            return True

    def give_back(self, count: int) -> None:
        with self._lock:
            self._taken -= count

    @property
    def left(self) -> int:
        with self._lock:
            return self.slots - self._taken


NO_LANES = LiveLanes(0, refusal="the setting live_lane is off")
