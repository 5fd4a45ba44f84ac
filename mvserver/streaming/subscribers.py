"""A subscriber: one continuous query hanging on a pipeline, and what is known about it while it runs."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError
from mvserver.streaming.targets import Target
from spark_sinks.base import Position

RATE_WINDOW_S = 10.0


@dataclass
class Rate:
    """Events per second over the last ten seconds."""

    _events: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, count: int) -> None:
        self._events.append((time.monotonic(), count))
        self._forget()

    def per_second(self) -> float:
        self._forget()
        return sum(count for _, count in self._events) / RATE_WINDOW_S

    def _forget(self) -> None:
        horizon = time.monotonic() - RATE_WINDOW_S
        while self._events and self._events[0][0] < horizon:
            self._events.popleft()


@dataclass
class Subscriber:
    """Guarded by its pipeline's lock.

    ``position`` is committed. ``claimed`` is where it will stand when all batches under way are committed: a batch
    takes in the subscribers whose claim is its start, so each record is merged exactly once into each view.
    """

    target: Target
    version: int
    position: Position
    policy: ErrorHandling
    claimed: Position = field(default_factory=dict)
    filled: bool = False
    fill_target: Position | None = None
    fill_records: int | None = None  # about how many there were to read, when the target was set
    unverified: bool = False  # its state is new: before anything is read, the source must have all that it starts from
    failure: str | None = None
    terminated: bool = False
    note: str | None = None
    busy: bool = False  # a backfill round is under way
    skip_rejected_until: Position | None = None
    epoch: int = 0
    records_in: int = 0
    rejected: int = 0
    rate_in: Rate = field(default_factory=Rate)
    rate_out: Rate = field(default_factory=Rate)
    last_change_at: float | None = None
    last_confirmed_at: float | None = None  # a moment of which it has all that its source had then
    freshness_ms: float | None = None

    def __post_init__(self) -> None:
        if not self.claimed:
            self.claimed = self.position

    @property
    def query_id(self) -> str:
        return self.target.query_id

    @property
    def wants_batches(self) -> bool:
        return self.failure is None and not self.terminated

    def fail(self, error: SqlError) -> None:
        self.failure = str(error)

    def committed(self, position: Position, records: int, rows: int, rejected: int, newest_s: float | None) -> None:
        """Bookkeeping after a commit; ``newest_s`` is the newest record's own time."""
        now = time.time()
        self.position = position
        self.epoch += 1
        self.records_in += records
        self.rejected += rejected
        self.rate_in.add(records)
        self.rate_out.add(rows)
        self.last_change_at = now
        if newest_s is not None:
            self.freshness_ms = max(0.0, (now - newest_s) * 1000)
