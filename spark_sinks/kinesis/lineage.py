"""What the parents of a shard say about it: since when it can have records, and what has expired between them and it.

A shard is made when its parents are closed. So it has no record that is older than the mark of a parent, and a parent's
moment is what is promised of a shard of which nothing is read yet. Parents leave the stream's list before their
children do: the moment is therefore written into the children's marks as soon as the parents are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_sinks.kinesis.api import Service, Shard, Summary
from spark_sinks.kinesis.failures import records_expired
from spark_sinks.kinesis.marks import Mark
from spark_sinks.kinesis.positions import Marks, last_number, mark_in, shard_number

Shards = Mapping[str, Shard]


def floor_of(shard: str, marks: Marks, shards: Shards) -> Mark:
    """The shard's mark in a position; of one that is read from its beginning, with the latest moment of its parents."""
    mark = mark_in(marks, shard)
    known = shards.get(shard)
    if known is None or not mark.is_beginning or mark.moment_ms:
        return mark
    return mark.renewed(max((floor_of(p, marks, shards).moment_ms for p in known.parents), default=0))


def with_floors(marks: Marks, shards: Shards) -> Marks:
    """The same place, which keeps its promises when shards that are read to their end are listed no more."""
    found = dict(marks)
    for shard in sorted(marks):  # parents come before their children
        known = shards.get(shard)
        if known is not None and all(marks[parent].ended for parent in known.parents if parent in marks):
            found[shard] = floor_of(shard, found, shards)
    return found


def promised(shard: str, marks: Marks) -> Mark | None:
    """What a position promises of a shard that is not there any more; None where that is nothing."""
    if shard in marks or shard_number(shard) <= last_number(marks):
        mark = mark_in(marks, shard)
        return mark if mark.moment_ms and not mark.ended else None
    return min((mark for mark in marks.values() if mark.moment_ms), key=lambda mark: mark.moment_ms, default=None)


def expired_between(marks: Marks, shards: Shards) -> Mapping[str, Mark]:
    """Shards that were made behind all that a position names, and have gone before they were read; with what is
    promised of them. They are known as parents of those that are there."""
    above = last_number(marks)
    gone = {
        parent
        for shard in shards.values()
        for parent in shard.parents
        if parent not in shards and parent not in marks and shard_number(parent) > above
    }
    found = {shard: promised(shard, marks) for shard in sorted(gone)}
    return {shard: mark for shard, mark in found.items() if mark is not None}


def check_none_expired_between(service: Service, summary: Summary, marks: Marks, shards: Shards) -> None:
    """55000 where there are such shards."""
    for shard, mark in expired_between(marks, shards).items():
        raise records_expired(service.store, summary.name, shard, mark, summary.retention_hours)
