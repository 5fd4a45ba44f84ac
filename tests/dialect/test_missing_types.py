"""PostgreSQL's types that there are not, and the texts of a declared length: as docs/sql/postgresql.md says."""

from __future__ import annotations

from typing import Any

import pytest

from mvserver.errors import SqlError
from tests.serving.world import World


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("SELECT 'abcdef'::char(3), 'abcdef'::varchar(3)", ("abc", "abc")),
    ],
)
def test_texts_of_a_declared_length(world: World, text: str, row: tuple[Any, ...]) -> None:
    assert world.rows(text) == [row]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT B'101'", "0A000"),
        ("SELECT '101'::bit(3)", "0A000"),
        ("SELECT 5::bit(8)", "0A000"),
        ("SELECT '101'::varbit", "0A000"),
        ("SELECT 'happy'::mood", "42704"),
        ("SELECT 'a'::tsvector", "0A000"),
        ("SELECT '(1,2)'::point", "0A000"),
        ("SELECT '[1,2)'::int4range", "0A000"),
        ("SELECT '<a/>'::xml", "0A000"),
        ("SELECT '1.2.3.4'::inet", "0A000"),
        ("SELECT '08:00'::macaddr", "0A000"),
    ],
)
def test_types_that_there_are_not(world: World, text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        world.plan(text)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("text", ["SELECT {}", "SELECT x FROM (SELECT {} AS x) s"])
@pytest.mark.parametrize(
    ("cast", "sqlstate", "message"),
    [
        ("'a'::varchar(max)", "42601", 'syntax error at or near "max"'),
        ("'a'::varchar(n)", "42601", 'syntax error at or near "n"'),
        ("'a'::char(1.5)", "42601", 'syntax error at or near "1.5"'),
        ("'a'::varchar('5')", "42601", 'syntax error at or near "5"'),
        ("'a'::varchar(1, 2)", "42601", 'syntax error at or near ","'),
        ("'a'::varchar(99999999999)", "42601", 'syntax error at or near "99999999999"'),
        ("'a'::varchar(0)", "22023", "length for type varchar must be at least 1"),
        ("'a'::char(10485761)", "22023", "length for type char cannot exceed 10485760"),
    ],
)
def test_lengths_that_are_none(world: World, text: str, cast: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as raised:
        world.rows(text.format(cast))
    assert (raised.value.sqlstate, raised.value.message) == (sqlstate, message)
