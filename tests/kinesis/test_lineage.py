"""What a position promises of shards whose parents are read, or have gone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from spark_sinks.kinesis.api import Shard
from spark_sinks.kinesis.lineage import expired_between, floor_of, promised, with_floors
from spark_sinks.kinesis.marks import Mark


def name(number: int) -> str:
    return f"shardId-{number:012}"


def marks(**texts: str) -> Mapping[str, Mark]:
    """``s3`` stands for shardId-000000000003."""
    return {name(int(shard[1:])): Mark.of(text) for shard, text in texts.items()}


def shards(**parents: str) -> Mapping[str, Shard]:
    """``s3="1 2"`` was made of 1 and 2."""
    numbered = {int(shard[1:]): tuple(name(int(each)) for each in text.split()) for shard, text in parents.items()}
    return {name(number): Shard(name(number), each, 1, False, (0, 1)) for number, each in numbered.items()}


def texts(found: Mapping[str, Mark]) -> Mapping[str, str]:
    return {f"s{int(shard[-12:])}": mark.text for shard, mark in found.items()}


SPLIT = shards(s0="", s1="0", s2="0")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"s0": "END@50", "s1": "TRIM", "s2": "9@70"}, {"s0": "END@50", "s1": "TRIM@50", "s2": "9@70"}),
        ({"s0": "9@50", "s1": "TRIM", "s2": "TRIM"}, {"s0": "9@50", "s1": "TRIM", "s2": "TRIM"}),
        ({"s0": "END@0", "s1": "TRIM", "s2": "TRIM"}, {"s0": "END@0", "s1": "TRIM", "s2": "TRIM"}),
        ({"s0": "END@50", "s1": "TRIM@60", "s2": "@70"}, {"s0": "END@50", "s1": "TRIM@60", "s2": "@70"}),
        ({"s1": "TRIM", "s2": "TRIM"}, {"s1": "TRIM", "s2": "TRIM"}),
    ],
)
def test_children_of_shards_that_are_read_have_their_moment(before: dict[str, str], after: dict[str, str]) -> None:
    assert texts(with_floors(marks(**before), SPLIT)) == after


def test_a_shard_that_was_merged_is_not_older_than_the_later_of_its_parents() -> None:
    merged = shards(s0="", s1="", s2="0 1", s3="2", s4="2")
    assert texts(with_floors(marks(s0="END@50", s1="END@80", s2="TRIM"), merged))["s2"] == "TRIM@80"
    assert texts(with_floors(marks(s0="END@50", s1="END@0", s2="TRIM"), merged))["s2"] == "TRIM@50"
    assert texts(with_floors(marks(s0="END@50", s1="7@60", s2="TRIM"), merged))["s2"] == "TRIM"
    assert floor_of(name(3), marks(s0="5@50", s1="6@60"), merged) == Mark.of("TRIM@60")
    assert floor_of(name(2), marks(s0="TRIM", s1="TRIM"), merged) == Mark.of("TRIM")


def test_what_is_promised_of_a_shard_that_has_gone() -> None:
    known = marks(s1="9@70", s2="TRIM", s3="END@90", s4="TRIM@60")
    found = [promised(name(number), known) for number in range(6)]
    assert [mark and mark.text for mark in found] == [None, "9@70", None, None, "TRIM@60", "TRIM@60"]
    assert promised(name(5), marks(s1="TRIM")) is None


def test_shards_that_came_and_went_between_are_known_by_their_children() -> None:
    """1 was made of 0 and was split in 3 and 4, while nobody was there to read it."""
    left = shards(s2="0", s3="1", s4="1")
    assert texts(expired_between(marks(s0="END@50"), left)) == {"s1": "END@50"}
    assert expired_between(marks(s0="END@0"), left) == {}
    assert expired_between(marks(s0="END@50", s1="9@70", s2="TRIM"), left) == {}
    assert expired_between(marks(s2="TRIM", s3="5@70", s4="TRIM"), left) == {}
