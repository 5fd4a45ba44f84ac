"""What the server allows of live lanes: whether there are any, and task slots for how many partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mvserver.streaming.spark.options import LOOPBACK, SparkOptions, local_slots

BATCH_SLOTS = 2  # of a cluster's, which live lanes leave to batches: as many as run at a time


class LiveLanes:
    """Of all pipelines. A task of a live lane holds its slot as long as the lane goes on.

    ``slots`` counts the slots that there are now: executors elsewhere come and go. ``refusal`` says why there are no
    live lanes; None where there are. ``cores`` are what batches may take of Spark's slots, so that the slots of live
    lanes are left to these; None where Spark may take all. ``addresses`` are that by which tasks reach the server,
    and that at which it listens for them.
    """

    def __init__(
        self,
        slots: Callable[[], int],
        *,
        cores: int | None = None,
        refusal: str | None = None,
        addresses: tuple[str, str] = (LOOPBACK, LOOPBACK),
    ) -> None:
        self._slots = slots
        self.cores = cores
        self.refusal = refusal
        self.addresses = addresses
        self._lock = threading.Lock()
        self._taken = 0

    def take(self, count: int) -> Slots | None:
        """Slots for so many partitions; None where fewer are left."""
        with self._lock:
            if self.refusal is not None or self._left < count:
                return None
            self._taken += count
            return Slots(self, count)

    @property
    def left(self) -> int:
        """Below zero where executors have gone whose slots are taken."""
        with self._lock:
            return self._left

    @property
    def _left(self) -> int:
        return self._slots() - self._taken


class Slots:
    """Those of one live run, until they are given back."""

    def __init__(self, lanes: LiveLanes, count: int) -> None:
        self._lanes = lanes
        self._count = count

    def give_back(self) -> None:
        with self._lanes._lock:
            self._give_back()

    def give_up(self) -> bool:
        """Gives them back where executors have gone, and not all runs can keep theirs. Then this run is to end."""
        with self._lanes._lock:
            lacking = self._lanes._left < 0 < self._count
            if lacking:
                self._give_back()
            return lacking

    def _give_back(self) -> None:
        self._lanes._taken -= self._count
        self._count = 0


def no_lanes(refusal: str) -> LiveLanes:
    return LiveLanes(lambda: 0, refusal=refusal)


NO_LANES = no_lanes("the setting live_lane is off")


def live_lanes(spark: SparkOptions, executor_cores: Callable[[], int]) -> LiveLanes:
    """``executor_cores`` is asked where Spark's executors are elsewhere."""
    if not spark.live_slots:
        return NO_LANES
    cores = local_slots(spark.master)
    if cores is not None:
        return LiveLanes(lambda: spark.live_slots, cores=cores)
    if spark.encrypts:
        return no_lanes("Spark's connections are encrypted, and those of a live lane are not")
    return LiveLanes(
        lambda: max(0, min(spark.live_slots, executor_cores() - BATCH_SLOTS)),
        addresses=(spark.host, spark.bind_address),
    )
