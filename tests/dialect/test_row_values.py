"""Rows among those of a query: by DuckDB's hash, but where the query is correlated."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
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


@pytest.mark.parametrize("groups", ["", " GROUP BY visits"])
@pytest.mark.parametrize("value", ["visits", "1"])
def test_an_array_of_texts_is_none_of_numbers(world: World, groups: str, value: str) -> None:
    with pytest.raises(SqlError, match=r"operator does not exist: (bigint|integer) = text") as raised:
        world.rows(f"SELECT 1 FROM visits WHERE {value} = ANY (ARRAY['1', '2']){groups}")
    assert raised.value.sqlstate == "42883"


def test_arrays_beside_groups(world: World) -> None:
    text = "SELECT max(visits) FROM visits GROUP BY url HAVING {} ORDER BY 1"
    assert world.rows(text.format("url = ANY (ARRAY['./a', 'none'])")) == [(1,)]
    assert world.rows(text.format("max(url) = ANY (ARRAY['./a', 'none'])")) == [(1,)]
    assert world.rows(text.format("max(visits) = ANY (ARRAY['3', 1])")) == [(1,), (3,)]
    assert world.rows(text.format("url <> ALL (ARRAY['./a', 'none'])")) == [(3,)]
