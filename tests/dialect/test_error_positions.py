"""Where errors stand in the text; each expectation is what a real PostgreSQL answers."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.serving.api import PlanRequest
from mvserver.sql.dialect import parse_pull
from tests.serving.world import SCOPE, World

ANSWERS = [
    ("SELECT nope(1)", "42883", "function nope(integer) does not exist", 8),
    ("SELECT nope()", "42883", "function nope() does not exist", 8),
    ("SELECT nope(NULL)", "42883", "function nope(unknown) does not exist", 8),
    ("SELECT 1, pg_catalog.nope('x', 1.5, now())", "42883",
     "function pg_catalog.nope(unknown, numeric, timestamp with time zone) does not exist", 11),
    ("SELECT * FROM nope(1)", "42883", "function nope(integer) does not exist", 15),
    ("SELECT length(5)", "42883", "function length(integer) does not exist", 8),
    ("SELECT sum('x'::text)", "42883", "function sum(text) does not exist", 8),
    ("SELECT 1 + true", "42883", "operator does not exist: integer + boolean", 10),
    ("SELECT 1  ,  now() + 1", "42883", "operator does not exist: timestamp with time zone + integer", 20),
    ("SELECT 1::nope", "42704", 'type "nope" does not exist', 11),
    ("SELECT CAST(1 AS nope)", "42704", 'type "nope" does not exist', 18),
    ("SELECT 'x'::int4", "22P02", 'invalid input syntax for type integer: "x"', 8),
    ("SELECT 1, cast('x' as int8)", "22P02", 'invalid input syntax for type bigint: "x"', 16),
    ("SELECT int4 'x'", "22P02", 'invalid input syntax for type integer: "x"', 13),
    ("SELECT date 'x'", "22007", 'invalid input syntax for type date: "x"', 13),
    ("SELECT '2024-13-01'::date", "22008", 'date/time field value out of range: "2024-13-01"', 8),
    ("SELECT 'x'::bool", "22P02", 'invalid input syntax for type boolean: "x"', 8),
    ("SELECT 'x'::uuid", "22P02", 'invalid input syntax for type uuid: "x"', 8),
    ("SELECT 'x'::float8", "22P02", 'invalid input syntax for type double precision: "x"', 8),
    ("SELECT interval 'bad'", "22007", 'invalid input syntax for type interval: "bad"', 17),
    ("SELECT 1 FROM visits WHERE url = 'a' AND false AND 'x'::int4 = 1", "22P02",
     'invalid input syntax for type integer: "x"', 52),
    ("SELECT nope FROM visits", "42703", 'column "nope" does not exist', 8),
]  # fmt: skip


def refused(world: World, text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        world.service.plan(PlanRequest(parse_pull(text), SCOPE, (), text=text))
    return caught.value


@pytest.mark.parametrize(("text", "sqlstate", "message", "position"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_errors_stand_where_postgresql_says(
    world: World, text: str, sqlstate: str, message: str, position: int
) -> None:
    error = refused(world, text)
    assert (error.sqlstate, error.message, error.position) == (sqlstate, message, position)


def test_the_one_that_is_wrong_is_found_among_several(world: World) -> None:
    error = refused(world, "SELECT length('x'), length(5)")
    assert (error.message, error.position) == ("function length(integer) does not exist", 21)
    assert refused(world, "SELECT 1 + 2, 1 + true").position == 17


def test_the_hint_of_dates_is_for_fields_that_may_be_swapped(world: World) -> None:
    hint = 'Perhaps you need a different "DateStyle" setting.'
    assert refused(world, "SELECT '2024-13-01'::date").hint == hint
    assert refused(world, "SELECT '2024-02-30'::date").hint is None


def test_what_a_row_holds_has_no_position(world: World) -> None:
    with pytest.raises(SqlError) as caught:
        world.rows("SELECT url::int4 FROM visits")
    assert (caught.value.sqlstate, caught.value.position) == ("22P02", None)
