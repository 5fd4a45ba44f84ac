"""Arithmetic on Kinesis positions: ``{"created": milliseconds, "shards": {"shardId-000000000000": mark}}``.

``created`` tells a stream from one that was deleted and made again. The marks are those of ``marks``. A position names
all shards that its stream had at one moment, also those that are not read yet, but for shards that were read to their
end and have expired since. As shards are numbered in the order of their making, a shard that a position does not name
is one of these two:

- its number is above all that are named: it was made later, and nothing of it is read;
- its number is below: it was read to its end.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.kinesis.limits import KINESIS_RECORDS_PER_S
from spark_sinks.kinesis.marks import TRIM, Mark, ended

_SHARD = re.compile(r"shardId-(\d{12})")
_COUNTED_MAX = 4_000  # positions whose distances from each other are remembered
_UNKNOWN_SPAN_MS = 86_400_000  # from a beginning of which no moment is known: the service's default retention
_ENDED = ended(0)

Marks = Mapping[str, Mark]


def shard_number(shard: str) -> int:
    found = _SHARD.fullmatch(shard)
    if found is None:
        raise ValueError(shard)
    return int(found[1])


def make_position(created_ms: int, marks: Marks) -> Position:
    return {"created": created_ms, "shards": {shard: marks[shard].text for shard in sorted(marks)}}


def marks_of(position: Position) -> dict[str, Mark]:
    """By shard; XX001 for what is not a position in a Kinesis stream."""
    shards = position.get("shards")
    if not isinstance(position.get("created"), int) or not isinstance(shards, Mapping) or not shards:
        raise _not_a_position(position)
    try:
        for shard in shards:
            shard_number(shard)
        return {shard: Mark.of(text) for shard, text in shards.items()}
    except (TypeError, ValueError) as error:
        raise _not_a_position(position) from error


def created_of(position: Position) -> int:
    marks_of(position)
    return int(position["created"])


def last_number(marks: Marks) -> int:
    """Of the shards that a position names: those above were made later."""
    return max(map(shard_number, marks))


def mark_in(marks: Marks, shard: str) -> Mark:
    """Also of a shard that is not named."""
    found = marks.get(shard)
    if found is not None:
        return found
    return TRIM if shard_number(shard) > last_number(marks) else _ENDED


class KinesisPositions:
    """:class:`spark_sinks.base.Positions` of one stream.

    Sequence numbers do not count records. What a reader has counted is remembered; other distances are the most that
    a shard can take between two moments.
    """

    counts_records = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: OrderedDict[str, tuple[int, int]] = OrderedDict()  # the chain, and how far on it
        self._chains = 0

    def remember(self, start: Position, end: Position, records: int) -> None:
        """So many records were read between the two."""
        first, last = _text(start), _text(end)
        with self._lock:
            known = self._counted.get(first)
            if known is None:
                self._chains += 1
                known = self._counted[first] = (self._chains, 0)
            self._counted[last] = (known[0], known[1] + records)
            self._counted.move_to_end(first)
            self._counted.move_to_end(last)
            while len(self._counted) > _COUNTED_MAX:
                self._counted.popitem(last=False)

    def distance(self, start: Position, end: Position) -> int:
        _check_same_stream(start, end)
        with self._lock:
            first, last = self._counted.get(_text(start)), self._counted.get(_text(end))
        if first is not None and last is not None and first[0] == last[0]:
            return max(0, last[1] - first[1])
        begin, stop = marks_of(start), marks_of(end)
        return sum(_most_between(mark_in(begin, shard), mark) for shard, mark in stop.items())

    def reached(self, position: Position, target: Position) -> bool:
        _check_same_stream(position, target)
        have = marks_of(position)
        return all(mark_in(have, shard).reaches(mark) for shard, mark in marks_of(target).items())

    def limit(self, start: Position, end: Position, records: int) -> Position:
        """The whole: where fewer records end is known by reading them (:meth:`spark_sinks.base.Rounds.bounded`)."""
        return end

    def divisible(self, start: Position, end: Position, least: int) -> bool:
        return self.distance(start, end) > least

    def advance(self, start: Position, end: Position) -> Position:
        """The end's own marks wherever they are not behind, so that readers that meet have equal positions."""
        _check_same_stream(start, end)
        first, last = marks_of(start), marks_of(end)
        known = last_number(last)
        shards = {*last, *(shard for shard in first if shard_number(shard) > known)}
        return make_position(
            created_of(end),
            {s: mark if (mark := mark_in(last, s)).reaches(mark_in(first, s)) else first[s] for s in shards},
        )

    def initial(self, positions: Sequence[Position]) -> Position:
        """Each shard as far as the least of them."""
        for position in positions[1:]:
            _check_same_stream(positions[0], position)
        several = [marks_of(position) for position in positions]
        least: dict[str, Mark] = {}
        for shard in {shard for marks in several for shard in marks}:
            mark = mark_in(several[0], shard)
            for marks in several[1:]:
                other = mark_in(marks, shard)
                # Of two texts of one place the later moment holds for both: nothing older is left to read there.
                if mark.reaches(other) and not (other.reaches(mark) and other.moment_ms < mark.moment_ms):
                    mark = other
            least[shard] = mark
        return make_position(created_of(positions[0]), least)

    def partitions(self, position: Position) -> Mapping[str, int]:
        """Shards that are read to their end hold no watermark back."""
        return {
            shard: mark.moment_ms if mark.sequence is None else mark.sequence
            for shard, mark in marks_of(position).items()
            if not mark.ended
        }

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        """Parents come before their children, which have higher numbers."""
        return [shard_number(segment) for segment in segments]


def _most_between(start: Mark, end: Mark) -> int:
    if start.reaches(end):
        return 0
    span_ms = end.moment_ms - start.moment_ms if start.moment_ms else _UNKNOWN_SPAN_MS
    return max(1, span_ms * KINESIS_RECORDS_PER_S // 1000)


def _check_same_stream(first: Position, second: Position) -> None:
    if created_of(first) != created_of(second):
        raise SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            "positions belong to different streams of the same name",
            detail=f"One was created at {first['created']}, the other at {second['created']}: the stream was deleted "
            "and created again.",
        )


def _text(position: Position) -> str:
    return json.dumps(position, sort_keys=True)


def _not_a_position(position: Position) -> SqlError:
    return SqlError(
        sqlstates.DATA_CORRUPTED, "not a position in a Kinesis stream", detail=f"It is {json.dumps(dict(position))}."
    )
