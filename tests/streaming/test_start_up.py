"""Queries that cannot be set up: their own causes are theirs, and damage of the views' file is everybody's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from mvserver.errors import SqlError
from mvserver.streaming.queries.start_up import StartUp
from spark_sinks.duckdb.ledger.damage import DamagedViewsError, DamageWatch

CORRUPT = "Corrupt database file: computed checksum 1 does not match stored checksum 2 in block at location 798720"


def start_up(error: Exception, damage: DamageWatch) -> StartUp:
    def store_versions(query: Any) -> Any:
        raise error

    services = SimpleNamespace(store_versions=store_versions, writer=SimpleNamespace(damage=damage))
    none = cast("Any", None)
    return StartUp(cast("Any", services), none, none, none, none, none)


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
