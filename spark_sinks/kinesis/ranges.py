"""Closed ranges of a stream, read beside the feed: for views that are filled, and for reads that end.

Shards are read side by side, parents before their children. Where a range is to have a bound of records, its end is
found by reading it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.kinesis.api import Service, Shard, Summary
from spark_sinks.kinesis.errors import could_not_connect
from spark_sinks.kinesis.failures import place_refused, records_expired
from spark_sinks.kinesis.feed import Taken, identified
from spark_sinks.kinesis.limits import (
    KINESIS_BUFFER_BYTES_MAX,
    KINESIS_FETCH_THREADS_MAX,
    KINESIS_GET_RECORDS_MAX,
)
from spark_sinks.kinesis.lineage import check_none_expired_between, floor_of, promised, with_floors
from spark_sinks.kinesis.marks import Mark
from spark_sinks.kinesis.positions import created_of, last_number, make_position, mark_in, marks_of, shard_number
from spark_sinks.kinesis.shard_reading import Entry, Found, QuotaExceededError, ShardGoneError, ShardReading

_QUOTA_TIMEOUT_S = 60.0  # of a shard whose quota others use up
_SLEEP_S = 0.1
_EMPTY_MAX = 25  # answers without records though a known one lies ahead


@dataclass
class _Part:
    """Of a range: one shard as it is read. ``records_max`` is None where it is read to ``stop``; else ``bytes_max`` is
    a bound, too."""

    shard: str
    mark: Mark
    stop: Mark
    floor: Mark
    records_max: int | None = None
    entries: list[Entry] = field(default_factory=list)
    records: int = 0
    bytes_max: int = 0
    size: int = 0

    @property
    def is_done(self) -> bool:
        return self.mark.reaches(self.stop)

    @property
    def is_full(self) -> bool:
        return self.records_max is not None and (self.records >= self.records_max or self.size >= self.bytes_max)


class RangeReader:
    """For several threads. ``given_up`` ends a read soon, with 57014."""

    def __init__(self, service: Service, stream: str, given_up: Callable[[], bool]) -> None:
        self._service = service
        self._stream = stream
        self._given_up = given_up

    def read(self, start: Position, end: Position, records_max: int | None = None) -> Taken:
        """From ``start`` on, up to ``end``; or about so many records, fewer where they are large. The end that is given
        has the marks of ``end`` wherever it was reached."""
        summary, shards = identified(self._service, self._stream, created_of(start))
        first, last = marks_of(start), marks_of(end)
        parts = {shard: _part(shards, first, shard, stop) for shard, stop in sorted(last.items())}
        within = {name: shard for name, shard in shards.items() if shard_number(name) <= last_number(last)}
        check_none_expired_between(self._service, summary, first, within)
        for part in parts.values():
            self._settle_expired(part, part.shard in shards, first, summary)
        left, read, room = records_max, set[str](), KINESIS_BUFFER_BYTES_MAX
        while left is None or (left > 0 and room > 0):
            wave = [p for p in parts.values() if not p.is_done and p.shard not in read and _is_free(p, parts, shards)]
            if not wave:
                break
            for part in wave:
                part.records_max = None if left is None else -(-left // len(wave))
                part.bytes_max = max(1, room // len(wave))
            self._read_all(summary, shards, wave)
            read.update(part.shard for part in wave)
            left = None if left is None else left - sum(part.records for part in wave)
            room -= sum(part.size for part in wave)
        reached = {p.shard: p.stop for p in parts.values() if p.is_done and p.stop.reaches(p.mark)}
        marks = {**with_floors({p.shard: p.mark for p in parts.values()}, shards), **reached}
        return Taken(make_position(created_of(end), marks), [e for part in parts.values() for e in part.entries])

    def _settle_expired(self, part: _Part, is_there: bool, first: Mapping[str, Mark], summary: Summary) -> None:
        if is_there or part.is_done:
            return
        place = promised(part.shard, first)
        if place is not None:
            raise records_expired(self._service.store, self._stream, part.shard, place, summary.retention_hours)
        part.mark = part.stop

    def _read_all(self, summary: Summary, shards: Mapping[str, Shard], parts: list[_Part]) -> None:
        if len(parts) == 1:
            self._read_part(summary, shards, parts[0])
            return
        with ThreadPoolExecutor(min(len(parts), KINESIS_FETCH_THREADS_MAX)) as pool:
            list(pool.map(partial(self._read_part, summary, shards), parts))

    def _read_part(self, summary: Summary, shards: Mapping[str, Shard], part: _Part) -> None:
        reading = ShardReading(
            self._service, summary, shards[part.shard], part.mark, floor=part.floor, sleep_until=self._sleep_until
        )
        stop, empty = part.stop, 0
        timed = stop.sequence is None and not stop.ended  # with nothing more there, all before its moment is read
        for answer in self._answers(reading, summary, part):
            for entry in answer.entries:
                following = part.mark.behind(entry.record.sequence, entry.record.arrived_ms)
                if not stop.reaches(following):  # all before the end is read
                    part.mark = stop
                    return
                if part.is_full:
                    return
                part.mark = following
                part.entries.append(entry)
                part.records += len(entry.parts)
                part.size += entry.size
            if part.is_done or answer.mark.ended or (answer.is_all and timed):
                part.mark = stop
                return
            if part.is_full:
                return
            empty = empty + 1 if answer.is_all else 0
            if empty > _EMPTY_MAX and not stop.ended:
                words = f"The record {stop.sequence} is not there any more"
                raise place_refused(self._service.store, self._stream, part.shard, words)

    def _answers(self, reading: ShardReading, summary: Summary, part: _Part) -> Iterator[Found]:
        refused_until = time.monotonic() + _QUOTA_TIMEOUT_S
        while True:
            if self._given_up():
                raise SqlError(sqlstates.QUERY_CANCELED, "reading was given up")
            wanted = KINESIS_GET_RECORDS_MAX if part.records_max is None else max(1, part.records_max - part.records)
            try:
                answer = reading.read(min(wanted, KINESIS_GET_RECORDS_MAX))
            except QuotaExceededError as refused:
                if time.monotonic() > refused_until:
                    raise could_not_connect(self._service.store, str(refused)) from refused
                self._sleep_until(refused.until)
                continue
            except ShardGoneError as gone:
                identified(self._service, self._stream, summary.created_ms)
                raise could_not_connect(self._service.store, str(gone)) from gone
            refused_until = time.monotonic() + _QUOTA_TIMEOUT_S
            yield answer

    def _sleep_until(self, moment: float) -> None:
        while not self._given_up() and (left := moment - time.monotonic()) > 0:
            time.sleep(min(left, _SLEEP_S))


def _part(shards: Mapping[str, Shard], first: Mapping[str, Mark], shard: str, stop: Mark) -> _Part:
    return _Part(shard, mark_in(first, shard), stop, floor_of(shard, first, shards))


def _is_free(part: _Part, parts: Mapping[str, _Part], shards: Mapping[str, Shard]) -> bool:
    """Whether its parents are read to their end."""
    return all(parent not in parts or parts[parent].is_done for parent in shards[part.shard].parents)
