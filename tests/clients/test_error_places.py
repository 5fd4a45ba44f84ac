"""Where an error stands is counted from the beginning of the whole text, as by a real PostgreSQL."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.clients.test_wrong_selects import refusal
from tests.clients.wrong_selects import WRONG

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]

AROUND = (
    "SELECT 1; {}",
    "  {}  ;",
    "SELECT 'é', /* ; */ 2;\n;\t-- first\n{}; SELECT 3",
    "SHOW work_mem; EXPLAIN {}",
    "PREPARE wrong AS {}",
    "SELECT 1; PREPARE wrong (integer) AS\n{}",
    "BEGIN; DECLARE wrong CURSOR FOR {}",
    "SELECT 1; COPY ({}) TO STDOUT",
)


def places(connection: Connection, text: str) -> Any:
    found = refusal(connection, text)
    connection.execute("ROLLBACK")
    return found


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("text", WRONG[::7])
def test_places_are_those_of_the_whole_text(
    our_shop: Connection, their_shop: Connection, around: str, text: str
) -> None:
    whole = around.format(text)
    assert places(our_shop, whole) == places(their_shop, whole)


STATEMENTS = (
    "SELECT 1; SELECT 2 FROM nosuch; SELECT 3",
    "SELECT 1; SELECT * FROM shop x, LATERAL (SELECT y.id) AS z",
    "SELECT 1; SELECT $1::int; SELECT 3",
    "SELECT 1; SELEC 2",
    "SELECT 1; SELECT FROM WHERE",
    "SELECT 1;\n\n SELECT 'x'::nosuch",
    "SELECT 1; SELECT '1x'::int",
    "SELECT 1; SELECT 'a' COLLATE nosuch",
    "SELECT 1; SELECT (SELECT 1, 2)",
    "SELECT 1; SELECT 1 IN (SELECT 1, 2)",
    "SELECT 1; SELECT 1 + (2 - false)",
    "SELECT 1; SELECT day::integer FROM shop",
    "SELECT 1; SET nosuch.x TO 1; SELECT 2 +",
    "SELECT 1; EXECUTE nosuch; SELECT",
    "SELECT 1; SELECT 'unterminated",
    "SELECT 1; SELECT rank() FROM shop",
    "SELECT 1; SELECT pg_catalog.lower(1)",
    "SELECT 1; SELECT id FROM shop GROUP BY 7",
    "SELECT 1; SELECT name, count(*) FROM shop",
)


@pytest.mark.parametrize("text", STATEMENTS)
def test_one_of_several_statements(our_shop: Connection, their_shop: Connection, text: str) -> None:
    assert places(our_shop, text) == places(their_shop, text)


@pytest.mark.parametrize("text", ["SELECT 1; SELECT nosuch", "SELECT 1;  SELECT nosuch", "SELECT nosuch"])
def test_a_text_that_was_seen_before_has_its_own_places(
    our_shop: Connection, their_shop: Connection, text: str
) -> None:
    for _ in range(2):
        assert places(our_shop, text) == places(their_shop, text)
