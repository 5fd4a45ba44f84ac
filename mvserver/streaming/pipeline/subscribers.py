"""A subscriber: one continuous query hanging on a pipeline, and what is known about it while it runs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.idleness import Idleness
from mvserver.views.targets import Target
from spark_sinks.base import Position
from spark_sinks.duckdb.ledger.ledger import encode
from spark_sinks.duckdb.state.windows import Standing

RATE_WINDOW_S = 10.0


class Rate:
    """Events per second over the last ten seconds. Threads that commit add to it, sessions read it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: deque[tuple[float, int]] = deque()

    def add(self, count: int) -> None:
        with self._lock:
            self._events.append((time.monotonic(), count))
            self._forget()

    def per_second(self) -> float:
        with self._lock:
            self._forget()
            return sum(count for _, count in self._events) / RATE_WINDOW_S

    def _forget(self) -> None:
        horizon = time.monotonic() - RATE_WINDOW_S
        while self._events and self._events[0][0] < horizon:
            self._events.popleft()


class Member(Protocol):
    """Of an application."""

    @property
    def obstacle(self) -> str | None:
        """Why the other queries of the application stand still; nothing where it goes, or was terminated."""
        ...


def obstacle_of(members: Iterable[Member]) -> str | None:
    return next((cause for cause in (each.obstacle for each in members) if cause is not None), None)


def stands_for(query_id: str, failure: str) -> str:
    """The failure of one query as the cause that the others of its application show."""
    return f"query {query_id} of the same application has failed: {failure}"


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
    fill_look: int = 0  # number of the look at the source, begun after it came, that says how far it has to be filled
    fill_target: Position | None = None
    fill_records: int | None = None  # about how many there were to read, when the target was set
    unverified: bool = False  # before anything is read for it, the source must have all that it starts from
    stalled: str | None = None  # why it is not filled, until it has got on
    failure: str | None = None
    terminated: bool = False
    note: str | None = None
    left_by_round: int | None = None  # how many records the last round of its history left to read
    busy: bool = False  # a backfill round is under way
    skip_rejected_until: Position | None = None
    epoch: int = 0
    records_in: int = 0
    rejected: int = 0
    rate_in: Rate = field(default_factory=Rate)
    rate_out: Rate = field(default_factory=Rate)
    last_change_at: float | None = None
    idleness: Idleness | None = None  # of a windowed view, since its first batch
    standing: Standing | None = None  # that its watermark was last moved by
    partitions: tuple[str, ...] | None = None  # that it knows as the side of a join; none since it has started
    last_confirmed_at: float | None = None  # a moment of which it has all that its source had then
    freshness_ms: float | None = None
    group: tuple[Subscriber, ...] = field(default=(), compare=False, repr=False)  # of one query: they go on together
    application: tuple[Member, ...] = field(default=(), compare=False, repr=False)  # the others: they fail together
    on_failure: Callable[[SqlError | str], None] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.claimed:
            self.claimed = self.position

    @property
    def query_id(self) -> str:
        return self.target.query_id

    @property
    def query_failure(self) -> str | None:
        """Its own, or that of another part of its query."""
        return next((each.failure for each in (self, *self.group) if each.failure is not None), None)

    @property
    def query_terminated(self) -> bool:
        return any(each.terminated for each in (self, *self.group))

    @property
    def obstacle(self) -> str | None:
        failure = None if self.query_terminated else self.query_failure
        return None if failure is None else stands_for((self.group or (self,))[0].query_id, failure)

    @property
    def cause(self) -> str | None:
        """Why it stands still: a failure of its query, or of another one of its application."""
        return self.query_failure or obstacle_of(self.application)

    @property
    def has_begun(self) -> bool:
        """Whether its query has ever taken what it reads: none of its parts failed at the first that came."""
        parts = self.group or (self,)
        failed = [each for each in parts if each.failure is not None]
        return all(each.epoch > 0 for each in failed) if failed else any(each.epoch > 0 for each in parts)

    @property
    def is_congested(self) -> bool:
        """What it has made waits to be sent, and it makes no more until then."""
        return False

    @property
    def wants_batches(self) -> bool:
        congested = self.is_congested or any(each.is_congested for each in self.group)
        return not self.query_terminated and self.cause is None and not congested

    @property
    def kept(self) -> bool:
        """Its rows and its progress are in DuckDB."""
        return True

    @property
    def records_max(self) -> int | None:
        """At most so many records at a time; None: as many as the pipeline reads."""
        return None

    def takes(self, records: int) -> bool:
        """Whether it wants so many records now; what it leaves out it reads later, by rounds of its own."""
        return True

    def deliver(self, rows: pa.Table) -> None:
        """The rows of a committed batch, where they are not kept."""

    def fail(self, error: SqlError | str) -> None:
        self.failure = str(error)
        if self.on_failure is not None:
            self.on_failure(error)

    def changed(self) -> None:
        """Its rows may be others now."""
        self.epoch += 1
        self.last_change_at = time.time()

    def committed(self, position: Position, records: int, rows: int, rejected: int, newest_s: float | None) -> None:
        """Bookkeeping after a commit; ``newest_s`` is the newest record's own time."""
        now = time.time()
        if encode(self.claimed) == encode(self.position):  # the claim was taken back while this batch was under way
            self.claimed = position
        self.position = position
        self.stalled = None
        self.changed()
        self.records_in += records
        self.rejected += rejected
        self.rate_in.add(records)
        self.rate_out.add(rows)
        if newest_s is not None:
            self.freshness_ms = max(0.0, (now - newest_s) * 1000)
