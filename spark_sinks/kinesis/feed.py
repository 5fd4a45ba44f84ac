"""The reading of a stream as it grows: one for all queries over it, by a few threads that take turns at its shards.

What is fetched waits in memory, within a bound, until a batch takes it. A shard is read when its parents are read to
their end, and taken into a batch when they are taken: so the records of a partition key keep their order over splits
and merges. New shards are looked for whenever one has ended, since no other shards come to be. Nothing is fetched
while nobody takes anything, and after a failure that lasts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mvserver.errors import SqlError, words_of
from spark_sinks.base import Position
from spark_sinks.kinesis.api import Service, Shard, Summary
from spark_sinks.kinesis.failures import records_expired, stream_gone, stream_recreated
from spark_sinks.kinesis.limits import KINESIS_BUFFER_BYTES_MAX, KINESIS_FETCH_THREADS_MAX, KINESIS_UNREAD_S
from spark_sinks.kinesis.lineage import check_none_expired_between, promised, with_floors
from spark_sinks.kinesis.marks import TRIM, Mark, ended
from spark_sinks.kinesis.positions import created_of, last_number, make_position, marks_of, shard_number
from spark_sinks.kinesis.shard_reading import Entry, QuotaExceededError, ShardGoneError, ShardReading, lasting

_log = logging.getLogger(__name__)
_RETRY_S = 1.0
_RELIST_S = 1.0
_LOOK_S = 0.5
_RENEWAL_MS = 1_500_000  # older than this, the place in a stream that is quiet is committed again
_OPEN_S = 1_800.0  # so often the shards are listed though none has ended, for which of them are open
_CLOCK_MARGIN_MS = 5_000  # by which the service's clock may go back
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
    open_ms: int = 0  # a moment at which it was listed as open, by the service's clock; 0 where it never was
    problem: str | None = None  # of its last read
    refused_since: float | None = None


@dataclass(frozen=True)
class Taken:
    """A batch: its entries in the order of their shards, and where it ends."""

    end: Position
    entries: Sequence[Entry]

    @property
    def records(self) -> int:
        return sum(len(entry.parts) for entry in self.entries)


@dataclass(frozen=True)
class Tips:
    """Where a stream ended at a moment, where the next batch began then, and how many records waited in between."""

    base: Position
    end: Position
    waiting: int


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
        listed_ms = self._now_ms()
        self.summary, listed = identified(service, stream, self._created_ms)
        self.base = start
        self.failure: SqlError | None = None
        self._listing_problem: str | None = None
        self._used_at = time.monotonic()  # when somebody last took records, or wanted to know what there is
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._buffered = 0  # bytes
        self._relist_at: float | None = None  # None while no shard is missed
        self._listed_at = time.monotonic()
        self._listing = False
        self._shards: dict[str, Shard] = dict(listed)
        self._cursors: dict[str, _Cursor] = {}
        self._threads: list[threading.Thread] = []
        marks = marks_of(start)
        for shard, mark in marks.items():
            if shard in listed or mark.ended:
                self._cursors[shard] = _Cursor(shard, mark, mark)
            elif (place := promised(shard, marks)) is not None:
                raise records_expired(service.store, stream, shard, place, self.summary.retention_hours)
            else:  # it has gone with all its records
                self._cursors[shard] = _Cursor(shard, ended(0), mark)
        self._add(listed_ms, above=last_number(marks))
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
            self._note_use()
            self._changed.wait_for(lambda: self._has_news() or self._stopping.is_set(), timeout_s)

    def take(self, records: int) -> Taken:
        """At most about so many records. The end is ``base`` itself where there is nothing; else it is the new one."""
        with self._changed:
            self._note_use()
            self._raise_failure()
            entries = self._take_entries(records)
            if entries or self._renewal_is_due():
                self._renew()
            places = with_floors({c.shard: c.taken for c in self._cursors.values()}, self._shards)
            end = make_position(self._created_ms, {c.shard: places[c.shard] for c in self._kept()})
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
            known_ms = max(self._renewed_ms(cursor), cursor.mark.moment_ms)
            cursor.taken = cursor.mark = cursor.taken.renewed(known_ms)
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
        """A moment before which all is read, and at which the shard was open: so its children have nothing older. A
        closed shard may be read at its tip some times before it is known to have ended."""
        return 0 if cursor.reading is None else min(cursor.reading.tip_ms, cursor.open_ms)

    def _kept(self) -> list[_Cursor]:
        """Without those that were read to their end and have expired."""
        return [c for c in self._cursors.values() if c.shard in self._shards or not c.taken.ended]

    def knows(self, shard: Shard) -> bool:
        """Whether it is one of this stream's: another stream's of the same name have other sequence numbers."""
        known = self._shards.get(shard.id)
        return known is not None and known.first == shard.first

    # --- the end ----------------------------------------------------------------------------------------------------
    def tips(self, since: float, timeout_s: float) -> Tips | None:
        """At a moment after ``since``; None where the stream was not read so far in time."""
        with self._changed:
            self._note_use()
            self._changed.wait_for(lambda: self._at_tips(since) or self._hindrance() or self.failure, timeout_s)
            if not self._at_tips(since):
                return None
            marks = {c.shard: c.mark for c in self._kept()}
            waiting = sum(len(entry.parts) for c in self._cursors.values() for entry in c.waiting)
            return Tips(self.base, make_position(self._created_ms, marks), waiting)

    def _at_tips(self, since: float) -> bool:
        return self._relist_at is None and all(
            c.mark.ended or (c.tip_at is not None and c.tip_at >= since) for c in self._cursors.values()
        )

    @property
    def problem(self) -> str | None:
        """Why the service does not answer at the moment."""
        with self._changed:
            hindrance = self._hindrance()
            if hindrance is not None:
                return hindrance
            refused = [c.refused_since for c in self._cursors.values() if c.refused_since is not None]
            if refused and time.monotonic() - min(refused) > _SILENCE_S:
                return f'other readers use up the quota of stream "{self._stream}"'
            return None

    def _hindrance(self) -> str | None:
        """Why a shard, or their list, could not be read when that was last tried. Another shard may do well."""
        problems = [self._listing_problem, *(cursor.problem for cursor in self._cursors.values())]
        return next((problem for problem in problems if problem is not None), None)

    def note(self, summary: Summary) -> None:
        """The stream as it is now: how long it keeps records may change."""
        with self._changed:
            self.summary = summary
            for cursor in self._cursors.values():
                if cursor.reading is not None:
                    cursor.reading.summary = summary

    def _note_use(self) -> None:
        if self._is_unused():
            self._changed.notify_all()
        self._used_at = time.monotonic()

    def _is_unused(self) -> bool:
        """As when all queries over the stream have failed: what it has is asked for again when one goes on."""
        return time.monotonic() - self._used_at > KINESIS_UNREAD_S

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    # --- fetching ---------------------------------------------------------------------------------------------------
    def _fetch_all(self) -> None:
        while not self._stopping.is_set():
            cursor = self._next()
            try:
                if cursor is None:
                    self._list_again()
                else:
                    self._fetch(cursor)
            except SqlError as error:
                if lasting(error):
                    self._fail(error, cursor)
                else:
                    self._put_off(cursor, words_of_error(error))
            except Exception as error:  # noqa: BLE001 - shown as the source's state, and tried again
                _log.exception("reading stream %s failed", self._stream)
                self._put_off(cursor, f"{type(error).__name__}: {words_of(error)}")

    def _next(self) -> _Cursor | None:
        """A shard that is due, now busy; None where the shards are to be listed again, or all is over."""
        with self._changed:
            while not self._stopping.is_set():
                now = time.monotonic()
                if self.failure is not None or self._is_unused():
                    self._changed.wait(_LOOK_S)
                    continue
                if self._listing_is_due(now):
                    self._listing = True
                    return None
                ready = [c for c in self._cursors.values() if self._is_readable(c)]
                if self._buffered < self._buffer_bytes_max and ready:
                    first = min(ready, key=lambda each: each.due)
                    if first.due <= now:
                        first.busy = True
                        return first
                    self._changed.wait(min(first.due - now, _LOOK_S))
                else:
                    self._changed.wait(_LOOK_S)
            return None

    def _listing_is_due(self, now: float) -> bool:
        if self._listing:
            return False
        return now - self._listed_at > _OPEN_S if self._relist_at is None else self._relist_at <= now

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
        began = time.monotonic()
        try:
            if cursor.reading is None:
                cursor.reading = self._reading(cursor)
            found = cursor.reading.read()
        except QuotaExceededError as refused:
            with self._changed:
                cursor.due, cursor.problem = refused.until, None
                cursor.refused_since = cursor.refused_since or began
                self._release(cursor)
            return
        except ShardGoneError:
            self._settle_gone(cursor)
            return
        with self._changed:
            if not self._stopping.is_set():
                cursor.refused_since = cursor.problem = None
                cursor.waiting.extend(found.entries)
                self._buffered += sum(entry.size for entry in found.entries)
                cursor.mark = found.mark
                if found.is_all:
                    cursor.tip_at = began
                    cursor.due = began + self._poll_s
                else:
                    cursor.due = began
                if found.mark.ended:
                    cursor.mark = ended(max(found.mark.moment_ms, cursor.open_ms))
                    self._note_floors()
                    self._relist_at = 0.0
            self._release(cursor)

    def _reading(self, cursor: _Cursor) -> ShardReading:
        with self._changed:
            shard = self._shards.get(cursor.shard)
            if shard is None:
                raise ShardGoneError(cursor.shard)
            return ShardReading(
                self._service, self.summary, shard, cursor.mark, floor=cursor.mark, sleep_until=self._sleep_until
            )

    def _note_floors(self) -> None:
        """As long as the parents are listed."""
        for shard, mark in with_floors(self._marks(), self._shards).items():
            if self._cursors[shard].reading is None:
                self._cursors[shard].mark = mark

    def _marks(self) -> dict[str, Mark]:
        return {cursor.shard: cursor.mark for cursor in self._cursors.values()}

    def _now_ms(self) -> int:
        return self._service.now_ms() - _CLOCK_MARGIN_MS

    def _sleep_until(self, moment: float) -> None:
        self._stopping.wait(max(0.0, moment - time.monotonic()))

    def _release(self, cursor: _Cursor) -> None:
        cursor.busy = False
        self._changed.notify_all()

    def _put_off(self, cursor: _Cursor | None, problem: str | None) -> None:
        """The same read, or the listing where there is no cursor, is tried again after a while."""
        again = time.monotonic() + _RETRY_S
        with self._changed:
            if cursor is None:
                self._listing, self._listing_problem, self._relist_at = False, problem, again
                self._changed.notify_all()
            else:
                cursor.problem, cursor.due = problem, again
                self._release(cursor)

    def _fail(self, error: SqlError, cursor: _Cursor | None) -> None:
        with self._changed:
            self.failure = self.failure or error
        self._put_off(cursor, None)

    def _settle_gone(self, cursor: _Cursor) -> None:
        """The shard has expired, or the stream is gone or another one."""
        summary, shards = identified(self._service, self._stream, self._created_ms)
        if cursor.shard in shards:
            self._put_off(cursor, None)
            return
        if cursor.mark.moment_ms:
            raise records_expired(self._service.store, self._stream, cursor.shard, cursor.mark, summary.retention_hours)
        with self._changed:  # nothing of it was promised
            cursor.mark, cursor.problem, self._relist_at = ended(0), None, 0.0
            self._release(cursor)

    def _list_again(self) -> None:
        """After a shard has ended: its children, which may be told some moments later. And now and then."""
        if self._stopping.is_set():
            return
        listed_ms = self._now_ms()
        summary, shards = identified(self._service, self._stream, self._created_ms)
        self.note(summary)
        with self._changed:
            self._shards = dict(shards)
            self._add(listed_ms, above=max(map(shard_number, self._cursors)))
            self._listing, self._listing_problem = False, None
            self._listed_at, self._relist_at = time.monotonic(), self._when_to_list()
            self._changed.notify_all()

    def _when_to_list(self) -> float | None:
        """A shard that has ended always has children, but the list of shards may not have them yet."""
        parents = {parent for shard in self._shards.values() for parent in shard.parents}
        for cursor in self._cursors.values():
            if cursor.mark.ended and cursor.shard in self._shards and cursor.shard not in parents:
                return time.monotonic() + _RELIST_S
        return None

    def _add(self, listed_ms: int, *, above: int) -> None:
        """Of those that are listed since that moment. 55000 where others were there in between."""
        check_none_expired_between(self._service, self.summary, self._marks(), self._shards)
        for shard, known in self._shards.items():
            if shard_number(shard) > above:
                self._cursors[shard] = _Cursor(shard, TRIM, TRIM)
            if not known.closed and shard in self._cursors:
                self._cursors[shard].open_ms = listed_ms
        self._note_floors()


def words_of_error(error: SqlError) -> str:
    """Message and detail in one line; the hint is for those who can act on it at once."""
    return error.message if error.detail is None else f"{error.message}: {error.detail}"
