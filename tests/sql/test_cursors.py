"""DECLARE, FETCH, MOVE, CLOSE as they are written."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.sql import parse_one
from mvserver.sql.statements.cursors import CloseCursor, DeclareCursor, Fetch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FETCH c", ("forward", 1)),
        ("FETCH FROM c", ("forward", 1)),
        ("FETCH IN c", ("forward", 1)),
        ("FETCH NEXT FROM c", ("forward", 1)),
        ("FETCH PRIOR c", ("backward", 1)),
        ("FETCH FIRST IN c", ("absolute", 1)),
        ("FETCH LAST c", ("absolute", -1)),
        ("FETCH ABSOLUTE -7 FROM c", ("absolute", -7)),
        ("FETCH RELATIVE +2 c", ("relative", 2)),
        ("FETCH 10 FROM c", ("forward", 10)),
        ("FETCH -10 c", ("forward", -10)),
        ("FETCH ALL c", ("forward", None)),
        ("FETCH FORWARD FROM c", ("forward", 1)),
        ("FETCH FORWARD 100 FROM c", ("forward", 100)),
        ("FETCH FORWARD ALL IN c", ("forward", None)),
        ("FETCH BACKWARD c", ("backward", 1)),
        ("FETCH BACKWARD 0 c", ("backward", 0)),
        ("FETCH BACKWARD ALL FROM c", ("backward", None)),
    ],
)
def test_directions(text: str, expected: tuple[str, int | None]) -> None:
    fetch = parse_one(text)
    assert isinstance(fetch, Fetch)
    assert (fetch.name, fetch.direction, fetch.count, fetch.move) == ("c", *expected, False)
    move = parse_one(text.replace("FETCH", "move", 1))
    assert isinstance(move, Fetch)
    assert (move.direction, move.count, move.move) == (*expected, True)


def test_a_cursor_may_have_the_name_of_a_direction() -> None:
    for word in ("next", "first", "forward", "absolute"):
        statement = parse_one(f"FETCH {word}")
        assert isinstance(statement, Fetch)
        assert (statement.name, statement.direction, statement.count) == (word, "forward", 1)
    statement = parse_one('FETCH FIRST FROM "Odd name"')
    assert isinstance(statement, Fetch)
    assert statement.name == "Odd name"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("CURSOR FOR", (False, False, False)),
        ("NO SCROLL CURSOR WITHOUT HOLD FOR", (False, False, False)),
        ("BINARY INSENSITIVE SCROLL CURSOR WITH HOLD FOR", (True, True, True)),
        ("SCROLL ASENSITIVE CURSOR FOR", (True, False, False)),
    ],
)
def test_declare(options: str, expected: tuple[bool, bool, bool]) -> None:
    text = f"DECLARE c {options} SELECT a FROM v ORDER BY a"
    statement = parse_one(text)
    assert isinstance(statement, DeclareCursor)
    assert (statement.name, statement.scroll, statement.hold, statement.binary) == ("c", *expected)
    assert (statement.text, statement.query.text) == (text, "SELECT a FROM v ORDER BY a")


def test_close() -> None:
    assert parse_one("CLOSE ALL") == CloseCursor(None, text="CLOSE ALL")
    assert parse_one("CLOSE c") == CloseCursor("c", text="CLOSE c")


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "position"),
    [
        ("DECLARE c SCROLL NO SCROLL CURSOR FOR SELECT 1", "42P11", "cannot specify both SCROLL and NO SCROLL", 9),
        ("DECLARE c INSENSITIVE ASENSITIVE CURSOR FOR SELECT 1", "42P11",
         "cannot specify both INSENSITIVE and ASENSITIVE", 9),
        ("DECLARE c CURSOR FOR LIST STORES", "42601", 'syntax error at or near "LIST"', 22),
        ("DECLARE c CURSOR", "42601", "syntax error at end of input", 17),
        ("DECLARE c CURSOR WITH FOR SELECT 1", "42601", 'syntax error at or near "FOR"', 23),
        ("FETCH ABSOLUTE FROM c", "42601", 'syntax error at or near "FROM"', 16),
        ("FETCH 1.5 FROM c", "42601", 'syntax error at or near "1.5"', 7),
        ("FETCH", "42601", "syntax error at end of input", 6),
        ("MOVE 5", "42601", "syntax error at end of input", 7),
        ("CLOSE", "42601", "syntax error at end of input", 6),
    ],
)  # fmt: skip
def test_wrong(text: str, sqlstate: str, message: str, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        parse_one(text)
    assert (caught.value.sqlstate, caught.value.message, caught.value.position) == (sqlstate, message, position)
