"""Queries that cannot be set up: their own causes are theirs, and damage of the views' file is everybody's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from mvserver.errors import SqlError
from mvserver.streaming.queries.source_pipelines import SourcePipelines
from mvserver.streaming.queries.start_up import StartUp
from spark_sinks.duckdb.ledger.damage import DamagedViewsError, DamageWatch

CORRUPT = "Corrupt database file: computed checksum 1 does not match stored checksum 2 in block at location 798720"


def start_up(error: Exception, damage: DamageWatch) -> StartUp:
    def store_versions(query: Any) -> Any:
        raise error

    services = SimpleNamespace(store_versions=store_versions, writer=SimpleNamespace(damage=damage))
    none = cast("Any", None)
    return StartUp(cast("Any", services), none, none, none, none, none)


class FakePipeline:
    def __init__(self, id_: str, *, started: bool = False, subscribers: int = 0) -> None:
        self.id, self.started, self.subscribers = id_, started, ["s"] * subscribers
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1


def test_what_was_made_for_a_query_that_cannot_be_set_up_goes_again() -> None:
    """The log of a join and the reading of its first side, where the second side cannot begin; not what others use."""
    known: dict[str, Any] = {"old": FakePipeline("old")}
    made = [
        FakePipeline("log"),
        FakePipeline("first"),
        FakePipeline("runs", started=True),
        FakePipeline("read", subscribers=1),
    ]
    none = cast("Any", None)
    sources = SourcePipelines(none, none, known, none, none, none)

    def fail() -> None:
        with sources.making():
            known.update({each.id: each for each in made})
            raise SqlError("55000", "the source does not have this position any more")

    with pytest.raises(SqlError, match="any more"):
        fail()
    assert set(known) == {"old", "runs", "read"}
    assert [each.stops for each in made] == [1, 1, 0, 0]
    with sources.making():
        known["log"] = FakePipeline("log")
    assert set(known) == {"old", "runs", "read", "log"}


@pytest.mark.parametrize("error", [duckdb.Error(CORRUPT), DamagedViewsError(CORRUPT)])
def test_damage_is_noted_and_raised(error: Exception) -> None:
    marked: list[str] = []
    damage = DamageWatch(marked.append)
    with pytest.raises(type(error)):
        start_up(error, damage).adopt(cast("Any", SimpleNamespace(id="q")), None)
    assert marked == [CORRUPT]
    assert damage.reason == CORRUPT


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (SqlError("08006", 'store "k" does not answer'), '08006: store "k" does not answer'),
        (KeyError("x"), "internal error: KeyError('x')"),
    ],
)
def test_other_causes_are_the_querys_own(error: Exception, cause: str) -> None:
    damage = DamageWatch()
    running = start_up(error, damage).adopt(cast("Any", SimpleNamespace(id="q")), None)
    assert running.broken == cause
    assert damage.reason is None
