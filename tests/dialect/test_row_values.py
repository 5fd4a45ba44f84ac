"""Rows among those of a query: by DuckDB's hash, but where the query is correlated."""

from __future__ import annotations

import pytest

from tests.serving.world import World

_ARRAY = "concat(ARRAY[1], url) IS NOT NULL"  # which DuckDB does not bind


@pytest.mark.parametrize("operator", ["IN", "= ANY"])
def test_a_membership_goes_on_being_one(world: World, operator: str) -> None:
    text = f"SELECT visits FROM visits WHERE (url, visits) {operator} (SELECT url, visits FROM visits) AND {_ARRAY}"
    assert "_members" not in world.plan(text).sql
    assert sorted(world.rows(text)) == [(1,), (3,)]


@pytest.mark.parametrize("operator", ["IN", "= ANY"])
def test_a_correlated_membership(world: World, operator: str) -> None:
    query = "SELECT i.url, i.visits FROM visits i WHERE i.visits >= o.visits"
    text = f"SELECT visits FROM visits o WHERE (url, visits) {operator} ({query}) AND {_ARRAY}"
    assert sorted(world.rows(text)) == [(1,), (3,)]
