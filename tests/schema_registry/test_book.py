"""The schemas of an entity: each is fetched once, an absent id again after a while, a silent registry left in peace."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from mvserver.errors import SqlError
from spark_sinks.schema_registry import limits
from spark_sinks.schema_registry.base import AVRO, RegisteredSchema
from spark_sinks.schema_registry.book import SchemaBook


@dataclass
class Registry:
    """In memory, since a test of time must not wait for it."""

    schemas: dict[int, str] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    silent: bool = False

    def check(self) -> None: ...

    def schema(self, id_: int) -> RegisteredSchema | None:
        self.asked.append(id_)
        if self.silent:
            raise SqlError("08006", "no answer")
        return RegisteredSchema(id_, AVRO, self.schemas[id_]) if id_ in self.schemas else None

    def latest(self, subject: str) -> None: ...

    def is_compatible(self, subject: str, kind: str, text: str) -> bool:
        return True

    def register(self, subject: str, kind: str, text: str) -> int:
        return 1

    def close(self) -> None: ...


@dataclass
class World:
    registry: Registry
    now: float = 0.0

    def __post_init__(self) -> None:
        self.book = SchemaBook(lambda: self.registry, clock=lambda: self.now)

    def ids(self) -> tuple[list[int], list[int]]:
        known = self.book.known()
        return [schema.id for schema in known.schemas], list(known.absent)


def test_each_schema_is_fetched_once_and_an_absent_one_again() -> None:
    world = World(Registry({1: "x"}))
    version = world.book.known().version
    world.book.fetch([1, 2])
    assert world.ids() == ([1], [2])
    assert world.book.known().version != version
    world.book.fetch([1])
    assert world.registry.asked == [1, 2]
    world.now = limits.ABSENCE_KEPT_S + 1
    assert world.ids() == ([1], [])
    world.registry.schemas[2] = "y"
    world.book.fetch([2])
    assert world.ids() == ([1, 2], [])


def test_a_silent_registry_is_asked_again_after_a_pause_or_by_the_reading_itself() -> None:
    world = World(Registry({1: "x"}, silent=True))
    world.book.known()
    for _ in range(3):
        with pytest.raises(SqlError, match="no answer"):
            world.book.fetch([1])
    assert world.registry.asked == [1]
    with pytest.raises(SqlError, match="no answer"):
        world.book.catch_up()
    assert world.registry.asked == [1, 1]
    world.registry.silent = False
    world.book.catch_up()
    assert world.ids() == ([1], [])
    world.book.catch_up()
    assert world.registry.asked == [1, 1, 1]


def test_another_registry_has_other_schemas() -> None:
    world = World(Registry({1: "x"}))
    world.book.known()
    world.book.fetch([1])
    world.registry = Registry({1: "other"})
    assert world.ids() == ([], [])
    world.book.fetch([1])
    assert [schema.text for schema in world.book.known().schemas] == ["other"]


def test_an_answer_of_the_former_registry_that_comes_late_says_nothing_of_the_other() -> None:
    """Another thread, which reads the same entity, has met the change meanwhile."""
    former, other = Registry({1: "x"}), Registry({1: "other"})
    world = World(former)
    world.book.known()
    answer = former.schema

    def late(id_: int) -> RegisteredSchema | None:
        world.registry = other
        world.book.known()
        return answer(id_)

    former.schema = late  # type: ignore[method-assign]
    world.book.fetch([1])
    assert [schema.text for schema in world.book.known().schemas] == ["other"]


def test_absent_ids_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ABSENT_IDS_MAX", 3)
    world = World(Registry())
    world.book.known()
    world.book.fetch(range(10))
    assert world.ids() == ([], [7, 8, 9])
