"""Random expressions at the edges of types answer as a real PostgreSQL: names, types, values as text, SQLSTATEs."""

from __future__ import annotations

import os
import random
from typing import Any

import psycopg
import pytest

from tests.clients.random_values import FAMILIES, expressions
from tests.clients.ways import WAYS, outcome

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]
COUNT = 40  # of a family, with a seed that is the same each time; by night more, with one that is not
SLOW = {"patterns": 6}  # a plan for each pattern is long in the making
FIXED_SEED = 7
EACH_WAY = 3  # of a family, in each form, by every way
FORMS = {  # where a value stands, for its ways out
    "alone": "SELECT {} AS x", "in an array": "SELECT ARRAY[{}, NULL] AS x", "in a document": "SELECT to_json({}) AS x",
    "in rows": "SELECT x FROM (SELECT {} AS x UNION ALL SELECT NULL) AS q",
}  # fmt: skip


def answer(connection: Connection, expression: str) -> Any:
    try:
        result = connection.execute(f"SELECT {expression}").pgresult
    except psycopg.Error as error:
        return error.sqlstate
    assert result is not None
    cell = result.get_value(0, 0)
    return (
        bytes(result.fname(0) or b""),
        result.ftype(0),
        result.fmod(0),
        None if cell is None else bytes(cell).decode(),
    )


def differences(our_shop: Connection, their_shop: Connection, family: str, seed: int, count: int) -> list[Any]:
    found = []
    for expression in expressions(family, seed, count):
        mine, wanted = answer(our_shop, expression), answer(their_shop, expression)
        if mine != wanted:
            found.append((expression, mine, wanted))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_postgresqls(our_shop: Connection, their_shop: Connection, family: str) -> None:
    assert differences(our_shop, their_shop, family, FIXED_SEED, SLOW.get(family, COUNT)) == []


@pytest.mark.night
@pytest.mark.parametrize("family", FAMILIES)
def test_other_values_are_postgresqls(our_shop: Connection, their_shop: Connection, family: str) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", random.randrange(1_000_000)))
    print(f"MVSERVER_TEST_SEED={seed}")
    assert differences(our_shop, their_shop, family, seed, 10 * SLOW.get(family, COUNT)) == []


def different_ways(our_shop: Connection, their_shop: Connection, family: str, seed: int, count: int) -> list[Any]:
    found = []
    for expression in expressions(family, seed, count):
        for form in FORMS.values():
            text = form.format(expression)
            for way in WAYS:
                mine, wanted = outcome(way, our_shop, text), outcome(way, their_shop, text)
                if mine != wanted:
                    found.append((way, text, mine, wanted))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_postgresqls_by_every_way(our_shop: Connection, their_shop: Connection, family: str) -> None:
    assert different_ways(our_shop, their_shop, family, FIXED_SEED, EACH_WAY) == []


@pytest.mark.night
@pytest.mark.parametrize("family", FAMILIES)
def test_other_values_are_postgresqls_by_every_way(our_shop: Connection, their_shop: Connection, family: str) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", random.randrange(1_000_000)))
    print(f"MVSERVER_TEST_SEED={seed}")
    assert different_ways(our_shop, their_shop, family, seed, 10 * EACH_WAY) == []
