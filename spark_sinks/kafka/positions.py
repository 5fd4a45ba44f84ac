"""Arithmetic on Kafka positions: ``{"topic_id": "...", "partitions": {"0": next offset to read}}``.

A partition that a position does not name has been added to the topic since: it begins at offset 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position


class KafkaPositions:
    """:class:`spark_sinks.base.Positions` of any topic."""

    counts_records = True

    def distance(self, start: Position, end: Position) -> int:
        return distance(start, end)

    def reached(self, position: Position, target: Position) -> bool:
        return reached(position, target)

    def limit(self, start: Position, end: Position, records: int) -> Position:
        return limited(start, end, records)

    def divisible(self, start: Position, end: Position, least: int) -> bool:
        return divisible(start, end, least)

    def advance(self, start: Position, end: Position) -> Position:
        return furthest(start, end)

    def initial(self, positions: Sequence[Position]) -> Position:
        return nearest(positions)

    def partitions(self, position: Position) -> Mapping[str, int]:
        return {str(partition): offset for partition, offset in offsets_of(position).items()}

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        """Partitions by number: which of two was written first is not known."""
        return [int(segment) for segment in segments]


def offsets_of(position: Position) -> dict[int, int]:
    """By partition number; XX001 for what is not a Kafka position."""
    partitions = position.get("partitions")
    if not isinstance(position.get("topic_id"), str) or not isinstance(partitions, Mapping):
        raise _not_a_position(position)
    try:
        return {int(partition): _offset(offset) for partition, offset in partitions.items()}
    except (TypeError, ValueError) as error:
        raise _not_a_position(position) from error


def topic_id_of(position: Position) -> str:
    offsets_of(position)
    return str(position["topic_id"])


def make_position(topic_id: str, offsets: Mapping[int, int]) -> Position:
    return {"topic_id": topic_id, "partitions": {str(partition): offsets[partition] for partition in sorted(offsets)}}


def with_partitions(position: Position, partitions: Iterable[int]) -> Position:
    """The position with partitions that were added since, from their beginning."""
    return make_position(topic_id_of(position), {**dict.fromkeys(partitions, 0), **offsets_of(position)})


def distance(start: Position, end: Position) -> int:
    """Offsets between the two; those that hold no record (compacted, transaction markers) count."""
    return sum(last - first for first, last in ranges(start, end).values())


def ranges(start: Position, end: Position) -> dict[int, tuple[int, int]]:
    """(first, last + 1) of every partition of either position; empty where end is not after start."""
    _check_same_topic(start, end)
    first, last = offsets_of(start), offsets_of(end)
    return {
        partition: (begin := first.get(partition, 0), max(begin, last.get(partition, 0)))
        for partition in sorted(first.keys() | last.keys())
    }


def limited(start: Position, end: Position, records: int) -> Position:
    """An end about ``records`` after start, partitions advancing in proportion, so that they end together."""
    spans = ranges(start, end)
    total = sum(last - first for first, last in spans.values())
    if total <= records:
        return make_position(topic_id_of(start), {partition: last for partition, (_, last) in spans.items()})
    shares = {
        # rounded up, so that every round moves every partition
        partition: first + min(last - first, -(-(last - first) * records // total))
        for partition, (first, last) in spans.items()
    }
    return make_position(topic_id_of(start), shares)


def divisible(start: Position, end: Position, least: int) -> bool:
    """Whether a bound of ``least`` records makes it fewer: each partition moves, so that one more may come of each."""
    return distance(start, end) > least + len(ranges(start, end)) - 1


def reached(position: Position, target: Position) -> bool:
    _check_same_topic(position, target)
    have = offsets_of(position)
    return all(have.get(partition, 0) >= offset for partition, offset in offsets_of(target).items())


def furthest(first: Position, second: Position) -> Position:
    """Each partition as far as the further of the two."""
    _check_same_topic(first, second)
    have, other = offsets_of(first), offsets_of(second)
    return make_position(
        topic_id_of(first), {p: max(have.get(p, 0), other.get(p, 0)) for p in have.keys() | other.keys()}
    )


def nearest(some: Sequence[Position]) -> Position:
    """Each partition as far as the least of them; they are of one topic."""
    for position in some[1:]:
        _check_same_topic(some[0], position)
    offsets = [offsets_of(position) for position in some]
    partitions = {partition for each in offsets for partition in each}
    return make_position(topic_id_of(some[0]), {p: min(each.get(p, 0) for each in offsets) for p in partitions})


def connector_offsets(topic: str, position: Position) -> str:
    """As the options startingOffsets and endingOffsets of Spark's connector want it."""
    offsets = {str(partition): offset for partition, offset in sorted(offsets_of(position).items())}
    return json.dumps({topic: offsets})


def _check_same_topic(first: Position, second: Position) -> None:
    if topic_id_of(first) != topic_id_of(second):
        raise SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            "positions belong to different topics of the same name",
            detail=f"One has the topic id {topic_id_of(first)}, the other {topic_id_of(second)}: the topic was deleted "
            "and created again.",
        )


def _offset(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value


def _not_a_position(position: Position) -> SqlError:
    return SqlError(
        sqlstates.DATA_CORRUPTED, "not a position in a Kafka topic", detail=f"It is {json.dumps(dict(position))}."
    )
