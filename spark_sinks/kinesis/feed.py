"""The reading of a stream as it grows: one for all queries over it, by a few threads that take turns at its shards.

What is fetched waits in memory, within a bound, until a batch takes it. A shard is read when its parents are read to
their end, and taken into a batch when they are taken: so the records of a partition key keep their order over splits
and merges. New shards are looked for whenever one has ended, since no other shards come to be.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from mvserver.errors import SqlError, words_of
from spark_sinks.base import Position
from spark_sinks.kinesis.api import Service, Shard, Summary
from spark_sinks.kinesis.errors import reported
from spark_sinks.kinesis.failures import records_expired, stream_gone, stream_recreated
from spark_sinks.kinesis.limits import KINESIS_BUFFER_BYTES_MAX, KINESIS_FETCH_THREADS_MAX
from spark_sinks.kinesis.marks import TRIM, Mark, ended
from spark_sinks.kinesis.positions import created_of, last_number, make_position, marks_of, shard_number
from spark_sinks.kinesis.shard_reading import Entry, QuotaExceededError, ShardGoneError, ShardReading, lasting

_log = logging.getLogger(__name__)
_RETRY_S = 1.0
_RELIST_S = 1.0
_LOOK_S = 0.5
_RENEWAL_MARGIN_MS = 5_000  # by which the service's clock may go back
_RENEWAL_MS = 3_600_000  # so often the place in a stream that is quiet is committed again
_SILENCE_S = 10.0  # of a shard whose quota others use up, until it is said


@dataclass
class _Cursor:
    """Of one shard. Guarded by the feed's lock, but for ``reading``, which belongs to the thread that is busy."""

    shard: str
    mark: Mark  # behind what is fetched
    taken: Mark  # behind what batches have
    reading: ShardReading | None = None
    waiting: deque[Entry] = field(default_factory=deque)
    busy: bool = False
    due: float = 0.0
    tip_at: float | None = None  # when the last read began that found nothing more, by time.monotonic
    tip_ms: int = 0  # the same by the service's clock
    refused_since: float | None = None


@dataclass(frozen=True)
class Taken:
    """A batch: its entries in the order of their shards, and where it ends."""

    end: Position
    entries: Sequence[Entry]

    @property
    def records(self) -> int:
        return sum(len(entry.parts) for entry in self.entries)


def identified(service: Service, stream: str, created_ms: int) -> tuple[Summary, Mapping[str, Shard]]:
    """The stream as it is, and its shards. 42704 where it is gone, 55000 where it is not the one of that creation."""
    shards = _shards(service, stream)
    summary = service.summary_or_none(stream)
    if summary is None:
        raise stream_gone(service.store, stream)
    if summary.created_ms != created_ms:
        raise stream_recreated(service.store, stream)
    return summary, {shard.id: shard for shard in shards}


def _shards(service: Service, stream: str) -> Sequence[Shard]:
    try:
        return service.shards(stream)
    except SqlError as error:
        if error.sqlstate == "42704":
            raise stream_gone(service.store, stream) from error
        raise


class Feed:
    """``base`` is where the next batch begins. Made by asking the service; ``start`` begins to fetch."""

    def __init__(
        self,
        service: Service,
        stream: str,
        start: Position,
        *,
        poll_s: float,
        buffer_bytes_max: int = KINESIS_BUFFER_BYTES_MAX,
    ) -> None:
        self._service = service
        self._stream = stream
        self._poll_s = poll_s
        self._buffer_bytes_max = buffer_bytes_max
        self._created_ms = created_of(start)
        self.summary, listed = identified(service, stream, self._created_ms)
        self.base = start
        self.failure: SqlError | None = None
        self._problem: str | None = None
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._buffered = 0  # bytes
        self._relist_at: float | None = None
        self._listing = False
        self._shards: dict[str, Shard] = dict(listed)
        self._cursors: dict[str, _Cursor] = {}
        self._threads: list[threading.Thread] = []
        for shard, mark in marks_of(start).items():
            if shard in listed:
                self._cursors[shard] = _Cursor(shard, mark, mark)
            elif not mark.ended:
                if mark.moment_ms:
                    raise records_expired(service.store, stream, shard, mark, self.summary.retention_hours)
                # nothing of it was ever promised: it has gone with all its records
                self._cursors[shard] = _Cursor(shard, ended(service.now_ms()), mark)
        self._add(above=last_number(marks_of(start)))
        self._relist_at = self._when_to_list()

    def start(self) -> None:
        count = min(KINESIS_FETCH_THREADS_MAX, max(2, len(self._cursors)))
        for number in range(count):
            thread = threading.Thread(target=self._fetch_all, name=f"kinesis-{self._stream[:8]}-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """A request under way ends by itself, within its bound."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    # --- batches ----------------------------------------------------------------------------------------------------
    def wait(self, timeout_s: float) -> None:
        """Until there may be something to take."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_news() or self._stopping.is_set(), timeout_s)

    def take(self, records: int) -> Taken:
        """At most about so many records. The end is ``base`` itself where there is nothing; else it is the new one."""
        with self._changed:
            self._raise_failure()
            entries = self._take_entries(records)
            if entries or self._renewal_is_due():
                self._renew()
            end = make_position(self._created_ms, {c.shard: c.taken for c in self._kept()})
            if end == self.base:
                return Taken(self.base, ())
            self.base = end
            self._changed.notify_all()  # there is room again
            return Taken(end, entries)

    def _take_entries(self, records: int) -> list[Entry]:
        total = sum(len(cursor.waiting) for cursor in self._cursors.values())
        taken: list[Entry] = []
        for cursor in sorted(self._cursors.values(), key=lambda each: each.shard):
            if not all(self._is_taken(parent) for parent in self._parents(cursor.shard)):
                continue
            count = len(cursor.waiting)
            share = count if total <= records else -(-count * records // total)
            if share:
                part = [cursor.waiting.popleft() for _ in range(share)]
                self._buffered -= sum(entry.size for entry in part)
                taken += part
                newest = max(entry.record.arrived_ms for entry in part)
                cursor.taken = cursor.taken.behind(part[-1].record.sequence, newest)
            if not cursor.waiting:
                cursor.taken = cursor.mark if cursor.mark.ended else cursor.taken
        return taken

    def _is_taken(self, shard: str) -> bool:
        cursor = self._cursors.get(shard)
        return cursor is None or cursor.taken.ended

    def _has_news(self) -> bool:
        return (
            self.failure is not None
            or any(c.waiting or c.mark.ended != c.taken.ended for c in self._cursors.values())
            or {c.shard for c in self._kept()} != set(self.base["shards"])
            or self._renewal_is_due()
        )

    def _renewal_is_due(self) -> bool:
        return any(self._renewed_ms(c) - c.taken.moment_ms >= _RENEWAL_MS for c in self._quiet())

    def _renew(self) -> None:
        for cursor in self._quiet():
            cursor.taken = cursor.mark = cursor.taken.renewed(self._renewed_ms(cursor))
            if cursor.reading is not None:
                cursor.reading.mark = cursor.mark

    def _quiet(self) -> list[_Cursor]:
        """Those that were read to their tip, all of it taken."""
        return [
            c
            for c in self._cursors.values()
            if c.tip_at is not None and not c.waiting and not c.busy and not c.taken.ended and not c.mark.ended
        ]

    @staticmethod
    def _renewed_ms(cursor: _Cursor) -> int:
        return cursor.tip_ms - _RENEWAL_MARGIN_MS

    def _kept(self) -> list[_Cursor]:
        """Without those that were read to their end and have expired."""
        return [c for c in self._cursors.values() if c.shard in self._shards or not c.taken.ended]

    def knows(self, shard: Shard) -> bool:
        """Whether it is one of this stream's: another stream's of the same name have other sequence numbers."""
        known = self._shards.get(shard.id)
        return known is not None and known.first == shard.first

    # --- the end ----------------------------------------------------------------------------------------------------
    def tips(self, since: float, timeout_s: float) -> tuple[Position, int] | None:
        """Where the stream ended at a moment after ``since``, and how many records wait before that; None where it was
        not read so far in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._at_tips(since) or self._problem or self.failure, timeout_s)
            if not self._at_tips(since):
                return None
            marks = {c.shard: c.mark for c in self._kept()}
            waiting = sum(len(entry.parts) for c in self._cursors.values() for entry in c.waiting)
            return make_position(self._created_ms, marks), waiting

    def _at_tips(self, since: float) -> bool:
        return self._relist_at is None and all(
            c.mark.ended or (c.tip_at is not None and c.tip_at >= since) for c in self._cursors.values()
        )

    @property
    def problem(self) -> str | None:
        """Why the service does not answer at the moment."""
        with self._changed:
            if self._problem is not None:
                return self._problem
            refused = [c.refused_since for c in self._cursors.values() if c.refused_since is not None]
            if refused and time.monotonic() - min(refused) > _SILENCE_S:
                return f'other readers use up the quota of stream "{self._stream}"'
            return None

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    # --- fetching ---------------------------------------------------------------------------------------------------
    def _fetch_all(self) -> None:
        while not self._stopping.is_set():
            try:
                cursor = self._next()
                if cursor is None:
                    self._list_again()
                else:
                    self._fetch(cursor)
            except Exception as error:  # noqa: BLE001 - shown as the source's state, and tried again
                _log.exception("reading stream %s failed", self._stream)
                with self._changed:
                    self._problem = words_of(error)
                self._stopping.wait(_RETRY_S)

    def _next(self) -> _Cursor | None:
        """A shard that is due, now busy; None where the shards are to be listed again, or all is over."""
        with self._changed:
            while not self._stopping.is_set():
                now = time.monotonic()
                if self._relist_at is not None and self._relist_at <= now and not self._listing:
                    self._listing = True
                    return None
                ready = [c for c in self._cursors.values() if self._is_readable(c)]
                if self.failure is None and self._buffered < self._buffer_bytes_max and ready:
                    first = min(ready, key=lambda each: each.due)
                    if first.due <= now:
                        first.busy = True
                        return first
                    self._changed.wait(min(first.due - now, _LOOK_S))
                else:
                    self._changed.wait(_LOOK_S)
            return None

    def _is_readable(self, cursor: _Cursor) -> bool:
        return (
            not cursor.busy
            and not cursor.mark.ended
            and all(
                parent not in self._cursors or self._cursors[parent].mark.ended
                for parent in self._parents(cursor.shard)
            )
        )

    def _parents(self, shard: str) -> tuple[str, ...]:
        known = self._shards.get(shard)
        return () if known is None else known.parents

    def _fetch(self, cursor: _Cursor) -> None:
        began, began_ms = time.monotonic(), self._service.now_ms()
        problem: str | None = None
        try:
            if cursor.reading is None:
                cursor.reading = self._reading(cursor)
            found = cursor.reading.read()
        except QuotaExceededError as refused:
            with self._changed:
                cursor.due = refused.until
                cursor.refused_since = cursor.refused_since or began
                self._release(cursor)
            return
        except ShardGoneError:
            self._settle_gone(cursor)
            return
        except SqlError as error:
            if lasting(error):
                self._fail(error, cursor)
                return
            problem = words_of_error(error)
        with self._changed:
            self._problem = problem
            if problem is not None:
                cursor.due = time.monotonic() + _RETRY_S
            elif self._stopping.is_set():
                pass
            else:
                cursor.refused_since = None
                cursor.waiting.extend(found.entries)
                self._buffered += sum(entry.size for entry in found.entries)
                cursor.mark = found.mark
                if found.is_all:
                    cursor.tip_at, cursor.tip_ms = began, began_ms
                    cursor.due = began + self._poll_s
                else:
                    cursor.due = began
                if found.mark.ended:
                    self._relist_at = 0.0
            self._release(cursor)

    def _reading(self, cursor: _Cursor) -> ShardReading:
        floor = cursor.mark
        if floor.is_beginning and not floor.moment_ms:
            parents = [self._cursors[p].mark for p in self._parents(cursor.shard) if p in self._cursors]
            floor = min(parents, key=lambda mark: mark.moment_ms, default=floor)
        return ShardReading(
            self._service, self.summary, self._shards[cursor.shard], cursor.mark,
            floor=floor, sleep_until=self._sleep_until,
        )  # fmt: skip

    def _sleep_until(self, moment: float) -> None:
        self._stopping.wait(max(0.0, moment - time.monotonic()))

    def _release(self, cursor: _Cursor) -> None:
        cursor.busy = False
        self._changed.notify_all()

    def _fail(self, error: SqlError, cursor: _Cursor | None = None) -> None:
        with self._changed:
            self.failure = self.failure or error
            if cursor is not None:
                self._release(cursor)
            self._changed.notify_all()

    def _settle_gone(self, cursor: _Cursor) -> None:
        """The shard has expired, or the stream is gone or another one."""
        try:
            summary, shards = identified(self._service, self._stream, self._created_ms)
        except SqlError as error:
            if lasting(error):
                self._fail(error, cursor)
                return
            with self._changed:
                self._problem, cursor.due = words_of_error(error), time.monotonic() + _RETRY_S
                self._release(cursor)
            return
        if cursor.shard not in shards:
            mark = cursor.mark if cursor.mark.moment_ms else ended(self._service.now_ms())
            self._fail(
                records_expired(self._service.store, self._stream, cursor.shard, mark, summary.retention_hours), cursor
            )
            return
        with self._changed:
            cursor.due = time.monotonic() + _RETRY_S
            self._release(cursor)

    def _list_again(self) -> None:
        """After a shard has ended: its children, which may be told some moments later."""
        if self._stopping.is_set():
            return
        problem: str | None = None
        shards: Mapping[str, Shard] = {}
        try:
            _, shards = identified(self._service, self._stream, self._created_ms)
        except (ClientError, BotoCoreError) as error:
            problem = words_of_error(reported(self._service.store, self._stream, error))
        except SqlError as error:
            if lasting(error):
                self._fail(error)
            problem = words_of_error(error)
        with self._changed:
            self._listing = False
            if problem is not None:
                self._problem = problem
                self._relist_at = time.monotonic() + _RETRY_S
            else:
                self._shards = dict(shards)
                self._add(above=max(map(shard_number, self._cursors)))
                self._relist_at = self._when_to_list()
            self._changed.notify_all()

    def _when_to_list(self) -> float | None:
        """A shard that has ended always has children, but the list of shards may not have them yet."""
        parents = {parent for shard in self._shards.values() for parent in shard.parents}
        for cursor in self._cursors.values():
            if cursor.mark.ended and cursor.shard in self._shards and cursor.shard not in parents:
                return time.monotonic() + _RELIST_S
        return None

    def _add(self, *, above: int) -> None:
        for shard in self._shards:
            if shard_number(shard) > above:
                self._cursors[shard] = _Cursor(shard, TRIM, TRIM)


def words_of_error(error: SqlError) -> str:
    """Message and detail in one line; the hint is for those who can act on it at once."""
    return error.message if error.detail is None else f"{error.message}: {error.detail}"
