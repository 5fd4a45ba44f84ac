"""The state that the threads of a pipeline share: who subscribes, how far it has read, and what stands in its way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.awaited_ends import AwaitedEnds
from mvserver.streaming.pipeline.batch_size import BatchSize
from mvserver.streaming.pipeline.stall import Stall
from mvserver.streaming.pipeline.subscribers import Rate, Subscriber
from mvserver.streaming.spark.batch_watch import BatchOverran
from mvserver.streaming.spark.errors import error_line, is_too_large
from mvserver.streaming.spark.isolation import IsolatedError
from mvserver.streaming.spark.session import LIVE_S
from spark_sinks.base import Position, SourceReader
from spark_sinks.duckdb.ledger.ledger import encode
from spark_sinks.duckdb.writer import Writer

_log = logging.getLogger(__name__)

JOIN_RECORDS_MAX = 50_000  # a view this close to a batch's start is taken in with it
_JOIN_RECORDS = 20_000  # rounds bring it so close, where they can


class RunningState:
    """Guarded by ``lock``; ``changed`` is its condition.

    ``position`` is committed, None while the subscribers' own positions are to decide; ``next`` is where the next batch
    begins. ``error`` ends the present generation. ``records_max`` bounds a batch and a round of filling.
    """

    def __init__(
        self,
        reader: SourceReader,
        writer: Writer,
        *,
        records_max: int,
        failed: Callable[[], None] = lambda: None,
        is_suspect: Callable[[], bool] = lambda: False,
    ) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.subscribers: dict[str, Subscriber] = {}
        self.position: Position | None = None
        self.next: Position = {}
        self.error: BaseException | None = None
        self.stall = Stall()  # of the generations; a query that is filled has a cause of its own
        self.latest: Position | None = None
        self.latest_at: float | None = None  # when the source was asked that, by time.monotonic
        self.last_batch_at: float | None = None  # when the last live batch was taken, by time.monotonic
        self.awaited = AwaitedEnds()
        self.rate = Rate()  # of the records that are committed, each counted once however many views it is for
        self._size = BatchSize(records_max)
        self._reader = reader
        self._writer = writer
        self._failed = failed
        self._is_suspect = is_suspect

    @property
    def records_max(self) -> int:
        return self._size.records_max

    @property
    def running(self) -> bool:
        """Whether a generation reads the source."""
        return self.stall.running

    @running.setter
    def running(self, running: bool) -> None:
        self.stall.running = running

    @property
    def stalled(self) -> str | None:
        """What keeps the pipeline from going on, or its filling."""
        if self.stall.cause is not None:
            return self.stall.cause
        with self.lock:
            return next((s.stalled for s in self.subscribers.values() if s.stalled and s.wants_batches), None)

    def stalled_of(self, subscriber: Subscriber) -> str | None:
        """What keeps one query from going on: the filling of others does not."""
        return self.stall.cause or subscriber.stalled

    def seen_well(self, position: Position, latest: Position | None) -> None:
        """The source was looked at and ends at ``latest``, as far as it has said that; all before ``position`` is
        committed."""
        self.stall.seen_well(lambda: None if latest is None else self._reader.positions.distance(position, latest))

    def met(self, cause: str, filling: Sequence[Subscriber] = ()) -> None:
        """An attempt failed: a round of those who are filled, or else a generation."""
        with self.lock:
            for subscriber in filling:
                subscriber.stalled = cause
            if not filling:
                self.stall.failed(cause)

    def all(self) -> Sequence[Subscriber]:
        with self.lock:
            return list(self.subscribers.values())

    def wanted(self) -> Sequence[Subscriber]:
        with self.lock:
            return [s for s in self.subscribers.values() if s.wants_batches]

    def has(self, subscriber: Subscriber) -> bool:
        """Whether it is still there: a query that is made anew is another subscriber of the same id."""
        with self.lock:
            return self.subscribers.get(subscriber.query_id) is subscriber

    def is_live(self) -> bool:
        """Whether a live batch is to be expected at any moment."""
        return self.last_batch_at is not None and time.monotonic() - self.last_batch_at < LIVE_S

    def joins(self, subscriber: Subscriber, start: Position) -> bool:
        """Whether a batch that begins at ``start`` reads what a subscriber lacks before it. Not where that may be what
        Spark ends of, or what takes too long: the others would have to wait for it."""
        if not subscriber.wants_batches or subscriber.busy or subscriber.unverified or self._is_suspect():
            return False
        most = min(JOIN_RECORDS_MAX, self.records_max) if self._size.is_reduced else JOIN_RECORDS_MAX
        return self._reader.positions.distance(subscriber.claimed, start) <= most

    def leaves_to_batch(self, subscriber: Subscriber) -> bool:
        """Whether the next batch will take it in, and another round would not bring it nearer."""
        if not subscriber.kept or not self.is_live() or not self.joins(subscriber, self.next):
            return False
        near = self._reader.positions.distance(subscriber.claimed, self.next) <= _JOIN_RECORDS
        return near or subscriber.left_by_round == 0

    def known_position(self) -> Position | None:
        """Where the pipeline stands, or would begin; None while nobody wants to know."""
        with self.lock:
            wanted = self.wanted()
            return (self.position or wanted[0].position) if wanted else None

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Until the condition holds, looked at whenever something changes."""
        with self.lock:
            return self.changed.wait_for(condition, timeout_s)

    @contextmanager
    def awaiting(self, end: Position | None) -> Iterator[None]:
        """Somebody waits until all before ``end`` is committed; None: he waits to learn the end first."""
        with self.lock:
            self.awaited.add(end)
            self.changed.notify_all()
        try:
            yield
        finally:
            with self.lock:
                self.awaited.remove(end)

    def standstill(self) -> str | None:
        """What stands in the way, as a sentence; None where nothing does."""
        with self.lock:
            cause = (self.stalled or "").rstrip(".")
            if not cause:
                return None
            if self.stall.is_silence:
                return f"The source does not answer: {cause}."
            return f"{cause[0].upper()}{cause[1:]}."

    def shrink_batches(self, error: BaseException, filling: Sequence[Subscriber] = ()) -> bool:
        """After a batch that came to more bytes, or took longer, than it may, or has refused records at its end: True
        where a smaller one can be tried."""
        with self.lock:
            if isinstance(error, BatchOverran):
                self.met(str(error), filling)
                self._size.overran()
            elif not _is_for_size(error) or not self._size.was_too_large():
                return False
            _log.warning("%s: at most %s records from now on", error_line(error), self.records_max)
            return True

    def grow_batches(self, records: int) -> None:
        """After a batch in good time, the next ones may be larger again, up to the first limit."""
        with self.lock:
            self._size.succeeded(records)

    def fail(self, subscriber: Subscriber, error: SqlError) -> None:
        """A query fails where it stands; its siblings go on."""
        _log.warning("query %s failed: %s", subscriber.query_id, error)
        with self.lock:
            subscriber.fail(error)
            subscriber.claimed = subscriber.position
            self.changed.notify_all()
        self._record_failures([subscriber])

    def fail_at(self, position: Position, cause: str) -> None:
        """The source does not have what comes next at ``position``: the queries that stand there fail, durably. The
        pipeline begins anew where the others need it to, or waits until one does."""
        with self.lock:
            failed = [s for s in self.wanted() if encode(s.position) == encode(position)]
            for subscriber in failed:
                subscriber.fail(cause)
            if self.position is not None and encode(self.position) == encode(position):
                self.position = None
                self.error = SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, cause)
            self.changed.notify_all()
        if failed:
            _log.warning("queries %s failed: %s", [s.query_id for s in failed], cause)
            self._record_failures(failed)

    def notice(self, error: BaseException) -> bool:
        """Whether the error is a sign that the views' file is damaged, of which the writer's watch is told."""
        return self._writer.damage.notice(error)

    def _record_failures(self, subscribers: Sequence[Subscriber]) -> None:
        """Durably; not of one that was taken away, since its successor has the same id."""
        self._failed()
        kept = [subscriber for subscriber in subscribers if subscriber.kept]
        if kept:
            with self._writer.transaction() as ledger:
                for subscriber in filter(self.has, kept):
                    ledger.set_failure(subscriber.query_id, subscriber.failure)

    def add(self, subscriber: Subscriber) -> None:
        """One that stands nowhere yet is read for when :meth:`verify_new` has settled where it begins."""
        with self.lock:
            if not self._is_settled(subscriber):
                subscriber.unverified = True
            self.subscribers[subscriber.query_id] = subscriber
            self.changed.notify_all()

    def follow_ledger(self, pipeline_id: str) -> None:
        """After an error, which may have come behind a commit: what the ledger has counts, whoever was told of it. A
        query that has taken nothing yet stands where it was settled, of which the ledger knows nothing."""
        rows = {row.query_id: row for row in self._writer.ledger_subscribers()}
        position = self._writer.pipeline_position(pipeline_id)
        with self.lock:
            if self.position is not None and position is not None:
                self.position = position
            for subscriber in filter(lambda each: each.kept, self.subscribers.values()):
                row = rows.get(subscriber.query_id)
                if row is None or row.version != subscriber.version or row.epoch == 0:
                    continue
                if encode(row.position) != encode(subscriber.position):
                    subscriber.position = row.position
                    subscriber.changed()
            self.changed.notify_all()

    def verify_new(self) -> None:
        """A view whose state was lost is rebuilt only where its source still has all that it was made of. Those that
        begin with all that there is begin together."""
        self._settle_new()
        # One that has come meanwhile is settled and verified the next time.
        for subscriber in [s for s in self.wanted() if s.unverified and self._is_settled(s)]:
            try:
                self._reader.health.check_history(subscriber.position)
            except SqlError as error:
                if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
                    raise
                self.fail(subscriber, error)
            subscriber.unverified = False

    def stands_elsewhere(self, subscriber: Subscriber) -> bool:
        """Whether it stands in a source that was made anew since, and the pipeline reads the new one: no place in the
        one can be compared with a place in the other."""
        with self.lock:
            others = [self.position, *(each.position for each in self.wanted() if each is not subscriber)]
        try:
            for other in others:
                if other is not None:
                    self._reader.positions.reached(subscriber.position, other)
        except SqlError as error:
            if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
                raise
            return True
        return False

    def _is_settled(self, subscriber: Subscriber) -> bool:
        held = self._reader.held
        return held is None or held.is_settled(subscriber.position)

    def _settle_new(self) -> None:
        held = self._reader.held
        if held is None:
            return
        waiting: dict[str, list[Subscriber]] = {}
        for subscriber in self.wanted():
            if subscriber.unverified and not self._is_settled(subscriber):
                waiting.setdefault(encode(subscriber.position), []).append(subscriber)
        for together in waiting.values():
            held.settle(together[0].position, partial(self._begin_at, together))

    def _begin_at(self, subscribers: Sequence[Subscriber], position: Position) -> None:
        with self.lock:
            for subscriber in subscribers:
                subscriber.position = subscriber.claimed = position

    def release(self, pipeline_id: str) -> None:
        """The source is told what is durable: in the ledger, which has also those that were not taken up yet."""
        held = self._reader.held
        if held is not None:
            held.release(partial(self._needed, pipeline_id))

    def _needed(self, pipeline_id: str) -> Sequence[Position]:
        kept = [row for row in self._writer.ledger_subscribers() if row.pipeline_id == pipeline_id]
        with self.lock:
            present = [subscriber.position for subscriber in self.subscribers.values()]
            others = [row.position for row in kept if row.query_id not in self.subscribers]
            return [*present, *others, *([] if self.position is None else [self.position])]

    def is_filled(self, subscriber: Subscriber) -> bool:
        target = subscriber.fill_target
        return target is not None and self._reader.positions.reached(subscriber.position, target)

    def set_filled(self, subscribers: Sequence[Subscriber]) -> None:
        """They have the whole history: durable, since reads no longer wait for them."""
        if not subscribers:
            return
        with self._writer.transaction() as ledger:
            for subscriber in subscribers:
                ledger.set_filled(subscriber.query_id)
        with self.lock:
            for subscriber in subscribers:
                subscriber.filled = True
            self.changed.notify_all()


def _is_for_size(error: BaseException) -> bool:
    return is_too_large(error) or (isinstance(error, IsolatedError) and error.ahead)
