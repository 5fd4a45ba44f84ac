"""PostgreSQL's types that there are not, and those that are text: as docs/sql/postgresql.md says."""

from __future__ import annotations

from typing import Any

import pytest
from serving_world import World

from mvserver.errors import SqlError


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("SELECT 'abcdef'::char(3), 'abcdef'::varchar(3)", ("abc", "abc")),
        ("SELECT pg_typeof('ab'::char(4)), 'abc'::\"char\"", ("text", "abc")),
        ("SELECT '<a>'::xml, pg_typeof('<a/>'::xml)", ("<a>", "text")),
        ("SELECT 'any text'::inet, '1.2.3.4'::cidr, '08:00'::macaddr", ("any text", "1.2.3.4", "08:00")),
    ],
)
def test_types_that_are_text(world: World, text: str, row: tuple[Any, ...]) -> None:
    assert world.rows(text) == [row]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT B'101'", "0A000"),
        ("SELECT '101'::bit(3)", "0A000"),
        ("SELECT 5::bit(8)", "0A000"),
        ("SELECT '101'::varbit", "0A000"),
        ("SELECT 'happy'::mood", "42704"),
        ("SELECT 'a'::tsvector", "42704"),
        ("SELECT '(1,2)'::point", "42704"),
        ("SELECT '[1,2)'::int4range", "42704"),
        ("SELECT host('1.2.3.4'::inet)", "42883"),
    ],
)
def test_types_that_there_are_not(world: World, text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        world.plan(text)
    assert caught.value.sqlstate == sqlstate
