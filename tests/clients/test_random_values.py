"""Random expressions at the edges of types answer as a real PostgreSQL: names, types, values as text, SQLSTATEs."""

from __future__ import annotations

import os
import random
from typing import Any

import psycopg
import pytest

from tests.clients.random_values import FAMILIES, expressions

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]
COUNT = 40  # of a family, with a seed that is the same each time; by night more, with one that is not
SLOW = {"patterns": 6}  # a plan for each pattern is long in the making
FIXED_SEED = 7


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
