"""Closed ranges of a stream, read beside the feed: for views that are filled, and for reads that end.

A range is read shard by shard, parents first. Where it is to have a bound of records, its end is found by reading it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.kinesis.api import Service, Shard, Summary
from spark_sinks.kinesis.errors import could_not_connect
from spark_sinks.kinesis.failures import place_refused, records_expired
from spark_sinks.kinesis.feed import Taken, identified
from spark_sinks.kinesis.limits import KINESIS_GET_RECORDS_MAX
from spark_sinks.kinesis.marks import Mark
from spark_sinks.kinesis.positions import created_of, make_position, mark_in, marks_of
from spark_sinks.kinesis.shard_reading import Entry, Found, QuotaExceededError, ShardGoneError, ShardReading

_QUOTA_TIMEOUT_S = 60.0  # of a shard whose quota others use up
_SLEEP_S = 0.1
_EMPTY_MAX = 25  # answers without records though a known one lies ahead


@dataclass
class _Filling:
    """A range as it is read."""

    marks: dict[str, Mark]
    entries: list[Entry] = field(default_factory=list)
    records: int = 0


class RangeReader:
    """For several threads. ``given_up`` ends a read soon, with 57014."""

    def __init__(self, service: Service, stream: str, given_up: Callable[[], bool]) -> None:
        self._service = service
        self._stream = stream
        self._given_up = given_up

    def read(self, start: Position, end: Position, records_max: int | None = None) -> Taken:
        """From ``start`` on, up to ``end`` or about so many records. The end that is given has the marks of ``end``
        wherever it was reached."""
        summary, shards = identified(self._service, self._stream, created_of(start))
        first, last = marks_of(start), marks_of(end)
        found = _Filling({})
        unfinished: set[str] = set()
        for shard in sorted(last):
            begin, stop = mark_in(first, shard), last[shard]
            parents = shards[shard].parents if shard in shards else ()
            if begin.reaches(stop):
                found.marks[shard] = stop if stop.reaches(begin) else begin
            elif unfinished.intersection(parents) or _is_full(found, records_max):
                found.marks[shard] = begin
                unfinished.add(shard)
            elif shard not in shards:
                if begin.moment_ms:
                    raise records_expired(self._service.store, self._stream, shard, begin, summary.retention_hours)
                found.marks[shard] = stop
            else:
                self._read_shard(summary, shards, first, shard, stop, found, records_max)
                if not found.marks[shard].reaches(stop):
                    unfinished.add(shard)
        return Taken(make_position(created_of(end), found.marks), found.entries)

    def _read_shard(
        self,
        summary: Summary,
        shards: Mapping[str, Shard],
        first: Mapping[str, Mark],
        shard: str,
        stop: Mark,
        found: _Filling,
        records_max: int | None,
    ) -> None:
        begin = mark_in(first, shard)
        floor = begin
        if begin.is_beginning and not begin.moment_ms:
            ended_parents = [first[p] for p in shards[shard].parents if p in first and first[p].ended]
            floor = min(ended_parents, key=lambda mark: mark.moment_ms, default=begin)
        reading = ShardReading(self._service, summary, shards[shard], begin, floor=floor, sleep_until=self._sleep_until)
        found.marks[shard] = begin
        empty = 0
        for answer in self._answers(reading, summary, records_max, found):
            for entry in answer.entries:
                following = found.marks[shard].behind(entry.record.sequence, entry.record.arrived_ms)
                if not stop.reaches(following):  # all before the end is read
                    found.marks[shard] = stop
                    return
                if _is_full(found, records_max):
                    return
                found.marks[shard] = following
                found.entries.append(entry)
                found.records += len(entry.parts)
            if (
                found.marks[shard].reaches(stop)
                or answer.mark.ended
                or (answer.is_all and stop.sequence is None and not stop.ended)
            ):
                found.marks[shard] = stop
                return
            if _is_full(found, records_max):
                return
            empty = empty + 1 if answer.is_all else 0
            if empty > _EMPTY_MAX and not stop.ended:
                raise place_refused(
                    self._service.store, self._stream, shard, f"The record {stop.sequence} is not there any more"
                )

    def _answers(
        self, reading: ShardReading, summary: Summary, records_max: int | None, found: _Filling
    ) -> Iterator[Found]:
        refused_until = time.monotonic() + _QUOTA_TIMEOUT_S
        while True:
            if self._given_up():
                raise SqlError(sqlstates.QUERY_CANCELED, "reading was given up")
            wanted = KINESIS_GET_RECORDS_MAX if records_max is None else max(1, records_max - found.records)
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


def _is_full(found: _Filling, records_max: int | None) -> bool:
    return records_max is not None and found.records >= records_max
