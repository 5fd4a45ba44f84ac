"""Going on behind records that have expired unread, where a store says so: each gap is a record that is rejected.

A gap begins at the moment up to which a shard was read, and ends at one from which on the stream still keeps its
records. Reading goes on there, and a shard that is gone counts as read to its end. So positions only ever advance.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from botocore.exceptions import BotoCoreError, ClientError

from spark_sinks.base import Position
from spark_sinks.kinesis.aggregated import UserRecord
from spark_sinks.kinesis.api import Record, Service, Summary
from spark_sinks.kinesis.errors import reported
from spark_sinks.kinesis.feed import Taken, identified
from spark_sinks.kinesis.lineage import Shards, expired_between, floor_of, promised
from spark_sinks.kinesis.marks import Mark, ended
from spark_sinks.kinesis.positions import (
    Marks,
    created_of,
    last_number,
    make_position,
    mark_in,
    marks_of,
    shard_number,
)
from spark_sinks.kinesis.shard_reading import HOUR_MS, Entry, expired, still_there
from spark_sinks.oversize import mark_of_words

_EDGE_MS = 60_000  # what expires next is not begun with


def beyond_gaps(service: Service, stream: str, start: Position, end: Position | None = None) -> Taken | None:
    """What is there instead of records that have expired behind ``start``, up to ``end``; None where none have."""
    summary, shards = identified(service, stream, created_of(start))
    marks, stops = marks_of(start), None if end is None else marks_of(end)
    lost = _lost(service, summary, shards, marks, stops)
    if not lost:
        return None
    kept_ms = service.now_ms() - summary.retention_hours * HOUR_MS + _EDGE_MS
    new = dict(marks) if stops is None else {shard: mark_in(marks, shard) for shard in stops}
    for shard in lost:
        following = Mark(None, min(kept_ms, service.now_ms())) if shard in shards else ended(kept_ms)
        if stops is None:
            new[shard] = following
        elif shard in stops:
            new[shard] = stops[shard] if following.reaches(stops[shard]) else following
    entries = [_entry(shard, mark.moment_ms, kept_ms, shard in shards) for shard, mark in sorted(lost.items())]
    return Taken(make_position(created_of(start), new), entries)


def _lost(service: Service, summary: Summary, shards: Shards, marks: Marks, stops: Marks | None) -> Mapping[str, Mark]:
    """Shards of which records may have expired unread, with the mark behind which they were promised."""
    most = None if stops is None else last_number(stops)
    within = {name: shard for name, shard in shards.items() if most is None or shard_number(name) <= most}
    found = dict(expired_between(marks, within))
    for shard in {*marks, *within}:
        mark = mark_in(marks, shard)
        is_read = mark.ended or (stops is not None and mark.reaches(mark_in(stops, shard)))
        if is_read or (most is not None and shard_number(shard) > most):
            continue
        floor = floor_of(shard, marks, shards) if shard in shards else promised(shard, marks)
        if floor is None or (shard in shards and _has_all(service, summary, shard, mark, floor)):
            continue
        found[shard] = floor
    return found


def _has_all(service: Service, summary: Summary, shard: str, mark: Mark, floor: Mark) -> bool:
    if not expired(floor, summary, service.now_ms()):
        return True
    try:
        return bool(mark.sequence) and still_there(service, summary.name, shard, mark.sequence or 0)
    except (ClientError, BotoCoreError) as error:
        raise reported(service.store, summary.name, error) from error


def _entry(shard: str, from_ms: int, until_ms: int, is_there: bool) -> Entry:
    """Its place has a moment instead of a sequence number, which is much longer."""
    until = f"before {_moment(until_ms)}" if is_there else "and the shard is gone"
    words = f"records that arrived since {_moment(from_ms)} may have expired unread, {until}"
    data = mark_of_words(words)
    return Entry(shard, Record(from_ms, "", data, until_ms), (UserRecord("", data),))


def _moment(ms: int) -> str:
    return f"{dt.datetime.fromtimestamp(ms / 1000, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
