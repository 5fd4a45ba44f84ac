"""Arithmetic on positions of shards that split, merge and expire."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver.errors import SqlError
from spark_sinks.kinesis.feed import Tips
from spark_sinks.kinesis.health import StreamHealth
from spark_sinks.kinesis.marks import Mark
from spark_sinks.kinesis.positions import KinesisPositions

POSITIONS = KinesisPositions()


def at(created: int = 7, **marks: str) -> Mapping[str, Any]:
    """``s3`` stands for shardId-000000000003."""
    return {"created": created, "shards": {f"shardId-{int(shard[1:]):012}": mark for shard, mark in marks.items()}}


ORDER = ["TRIM", "5@100", "6@200", "60@300", "END@400"]


def test_marks_of_one_shard_have_an_order() -> None:
    for low, first in enumerate(ORDER):
        for high, second in enumerate(ORDER):
            assert Mark.of(second).reaches(Mark.of(first)) == (high >= low)


def test_marks_by_moments() -> None:
    moment = Mark.of("@150")
    marks = ("TRIM", "5@149", "5@150", "@149", "@150", "END@0", "TRIM@200")
    assert [Mark.of(text).reaches(moment) for text in marks] == [False, False, True, False, True, True, True]
    assert [moment.reaches(Mark.of(text)) for text in ("TRIM", "TRIM@900", "5@149", "5@150", "END@0")] == [
        True, True, True, False, False]  # fmt: skip


@pytest.mark.parametrize("text", [*ORDER, "@150", "TRIM@9", "4968047822812923070459381039461@1795402226588"])
def test_texts_of_marks(text: str) -> None:
    assert Mark.of(text).text == text


@pytest.mark.parametrize("text", ["", "5", "END", "x@1", "-5@1", "5@", 5, None])
def test_texts_that_are_no_marks(text: object) -> None:
    with pytest.raises(ValueError):
        Mark.of(text)


@pytest.mark.parametrize("wrong", [{}, {"created": 1}, {"created": "x", "shards": {}}, at(s1="nonsense"),
                                   {"created": 1, "shards": {"1": "TRIM"}}, {"created": 1, "shards": {}}])  # fmt: skip
def test_what_is_no_position(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(SqlError) as refused:
        POSITIONS.reached(wrong, wrong)
    assert refused.value.sqlstate == "XX001"


def test_a_child_is_reached_when_it_is_read_and_not_before() -> None:
    before, parent_read = at(s0="5@1"), at(s0="END@2", s1="TRIM", s2="TRIM")
    child_read = at(s0="END@2", s1="8@3", s2="9@3")
    assert POSITIONS.reached(parent_read, before)
    assert not POSITIONS.reached(before, parent_read)
    assert not POSITIONS.reached(parent_read, child_read)
    assert not POSITIONS.reached(before, child_read)
    assert POSITIONS.reached(child_read, before)


def test_an_expired_parent_counts_as_read() -> None:
    """Shard 0 was read to its end and is not listed any more; shard 1 stays open all the time."""
    old, new = at(s0="5@1", s1="5@1"), at(s1="7@9", s2="8@9")
    assert POSITIONS.reached(new, old)
    assert not POSITIONS.reached(old, new)
    assert POSITIONS.advance(old, new) == new
    # a shard of a higher number that is not named was made later, whoever its parents are
    assert not POSITIONS.reached(at(s1="7@9", s3="8@9"), at(s4="9@9"))


def test_advance_takes_the_marks_of_the_end_where_they_are_not_behind() -> None:
    """A view that was created at a moment joins a pipeline that knows the shard by its last record."""
    assert POSITIONS.advance(at(s0="@150", s1="TRIM"), at(s0="5@150", s1="6@100")) == at(s0="5@150", s1="6@100")
    assert POSITIONS.advance(at(s0="@150"), at(s0="5@149")) == at(s0="@150")
    assert POSITIONS.advance(at(s0="5@100"), at(s0="5@180")) == at(s0="5@180")
    assert POSITIONS.advance(at(s0="5@180"), at(s0="5@100")) == at(s0="5@100")
    assert POSITIONS.advance(at(s0="END@1", s1="TRIM"), at(s0="4@1")) == at(s0="END@1", s1="TRIM")


def test_a_pipeline_begins_at_the_least_of_its_queries() -> None:
    assert POSITIONS.initial([at(s0="5@1", s1="TRIM"), at(s0="4@1", s1="9@9")]) == at(s0="4@1", s1="TRIM")
    assert POSITIONS.initial([at(s0="5@1"), at(s0="END@1", s1="3@1")]) == at(s0="5@1", s1="TRIM")
    assert POSITIONS.initial([at(s0="5@1", s1="2@2"), at(s1="3@3")]) == at(s0="5@1", s1="2@2")


def test_of_equal_places_a_pipeline_has_the_later_moment() -> None:
    """It promises more: nothing older is left to read there, for none of the queries."""
    several = [at(s0="5@9", s1="TRIM", s2="END@4"), at(s0="5@1", s1="TRIM@7", s2="END@3")]
    for positions in (several, several[::-1]):
        assert POSITIONS.initial(positions) == at(s0="5@9", s1="TRIM@7", s2="END@4")


def test_distances_are_counted_where_they_are_known_and_else_the_most() -> None:
    positions = KinesisPositions()
    first, second, third = at(s0="TRIM"), at(s0="5@1000"), at(s0="9@2000")
    assert positions.distance(second, third) == 1000
    assert positions.distance(third, second) == 0
    positions.remember(first, second, 4)
    positions.remember(second, third, 3)
    assert [positions.distance(first, third), positions.distance(second, third)] == [7, 3]
    assert positions.divisible(first, third, 6)
    assert not positions.divisible(first, third, 7)


def test_shards_that_ended_hold_no_watermark_back() -> None:
    assert POSITIONS.partitions(at(s0="END@9", s1="TRIM", s2="77@5")) == {
        "shardId-000000000001": 0,
        "shardId-000000000002": 77,
    }
    assert POSITIONS.segment_ranks(["shardId-000000000011", "shardId-000000000002"]) == [11, 2]


def test_positions_of_another_stream_of_the_same_name() -> None:
    for call in (POSITIONS.reached, POSITIONS.advance, POSITIONS.distance):
        with pytest.raises(SqlError) as refused:
            call(at(created=1, s0="TRIM"), at(created=2, s0="TRIM"))
        assert refused.value.sqlstate == "55000"


def test_what_is_taken_while_the_end_is_asked_for_waits_no_more() -> None:
    """The look waits for the next read of each shard; a batch may take records meanwhile, and others may come."""
    begun, taken, tip = (at(s0=f"{sequence}@5") for sequence in (1, 31, 41))
    positions = KinesisPositions()

    def tips(since: float, timeout_s: float) -> Any:
        positions.remember(begun, taken, 30)
        feed.base = taken
        return Tips(taken, tip, 10)

    feed = SimpleNamespace(base=begun, failure=None, problem=None, note=lambda summary: None, tips=tips)
    service = SimpleNamespace(summary_or_none=lambda stream: SimpleNamespace(created_ms=7))
    health = StreamHealth(cast(Any, service), "s", positions, lambda: cast(Any, feed))
    assert health.look(begun).latest == tip
    assert positions.distance(taken, tip) == 10
    assert positions.distance(begun, tip) == 40
