"""Calls, operators and casts at the edges of their arguments answer as a real PostgreSQL: types, values, SQLSTATEs."""

from __future__ import annotations

import json
import math
import os
import random
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import psycopg
import pytest

from mvserver import sqlstates
from mvserver.types import oids
from tests.clients.edge_calls import statements

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]
Answer = str | tuple[int, Sequence[str | None]]
FIXED_SEED = 11
COUNT = 500  # in the normal set; by night all of several calls of each form, with a seed that is not the same
NIGHT_CALLS = 3
REFUSED_SHARE_MAX = 0.03  # what is not supported is refused by name (0A000): no wrong answer, but it must stay rare
PRECISION = 1e-6  # numerics have fewer digits than PostgreSQL's: docs/sql/postgresql.md
_NUMBERS = (oids.NUMERIC, oids.FLOAT8, oids.FLOAT4)

VALUE, TYPE, ACCEPTED, REFUSED, ERROR = "another value", "another type", "no error", "an error", "another error"
KNOWN: tuple[tuple[str, str, str], ...] = (
    (VALUE, r"array\[1\.5", "numerics of one array have the digits of the one with most"),
    (VALUE, r"regexp_\w+\(.*'(\^|x\*|)'", "empty matches of RE2"),
    (VALUE, r"right\(.*-2147483648\)", "a number of characters that has no opposite"),
)
"""Differences by kind and by a pattern of the statement, with the reason."""


def answer(connection: Connection, text: str) -> Answer:
    try:
        result = connection.execute(text).pgresult
    except psycopg.Error as error:
        return error.sqlstate or ""
    assert result is not None
    cells = [result.get_value(row, 0) for row in range(result.ntuples)]
    return result.ftype(0), [None if cell is None else bytes(cell).decode() for cell in cells]


def difference(mine: Answer, wanted: Answer) -> str | None:
    """Its kind; None where both are the same, or ours is a refusal by name."""
    if mine == wanted or mine == sqlstates.FEATURE_NOT_SUPPORTED:
        return None
    if isinstance(mine, str):
        return ERROR if isinstance(wanted, str) else REFUSED
    if isinstance(wanted, str):
        return ACCEPTED
    if len(mine[1]) != len(wanted[1]) or not all(map(_alike, mine[1], wanted[1], [wanted[0]] * len(mine[1]))):
        return VALUE
    return TYPE if mine[0] != wanted[0] else None


def _alike(mine: str | None, wanted: str | None, oid: int) -> bool:
    if mine == wanted or mine is None or wanted is None:
        return mine == wanted
    if oid == oids.JSON:  # blanks are not kept
        return bool(json.loads(mine) == json.loads(wanted))
    if oid in _NUMBERS:
        one, other = float(mine), float(wanted)
        return math.isclose(one, other, rel_tol=PRECISION, abs_tol=PRECISION) or (one != one and other != other)
    return False


def differences(ours: Connection, theirs: Connection, texts: Iterator[str]) -> list[tuple[str, str, Answer, Answer]]:
    found, asked, refused = [], 0, 0
    for text in texts:
        mine, wanted = answer(ours, text), answer(theirs, text)
        asked += 1
        refused += mine == sqlstates.FEATURE_NOT_SUPPORTED != wanted
        kind = difference(mine, wanted)
        if kind is not None and not any(kind == known and re.search(pattern, text) for known, pattern, _ in KNOWN):
            found.append((kind, text, mine, wanted))
    assert refused <= REFUSED_SHARE_MAX * asked
    return found


def test_calls_are_answered_as_by_postgresql(our_shop: Connection, their_shop: Connection) -> None:
    made = list(statements(FIXED_SEED, 1))
    random.Random(FIXED_SEED).shuffle(made)
    assert differences(our_shop, their_shop, islice(iter(made), COUNT)) == []


@pytest.mark.night
def test_other_calls_are_answered_as_by_postgresql(our_shop: Connection, their_shop: Connection) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", random.randrange(1_000_000)))
    print(f"MVSERVER_TEST_SEED={seed}")
    assert differences(our_shop, their_shop, statements(seed, NIGHT_CALLS)) == []
