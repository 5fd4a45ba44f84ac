"""SQL's cursors: DECLARE, FETCH, MOVE, CLOSE."""

from __future__ import annotations

from collections.abc import Callable

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.lexer import END, NUMBER
from mvserver.sql.names import identifier
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.cursors import CloseCursor, DeclareCursor, Fetch
from mvserver.sql.statements.queries import Pull, Subscribe

_QUERY_WORDS = frozenset({"select", "with", "values", "table", "(", "subscribe"})
_OPTIONS = frozenset({"binary", "insensitive", "asensitive", "scroll", "no"})
_SINGLE = {
    "next": ("forward", 1),
    "prior": ("backward", 1),
    "first": ("absolute", 1),
    "last": ("absolute", -1),
}


def _declare(nested: StatementParser) -> Callable[[Cursor], Statement]:
    def parse(cursor: Cursor) -> Statement:
        start = cursor.current
        name = identifier(cursor)
        options: set[str] = set()
        while cursor.at_any(_OPTIONS):
            option = cursor.advance().text
            if option == "no":
                cursor.expect_word("scroll")
                option = "no scroll"
            options.add(option)
        for one, other in (("scroll", "no scroll"), ("insensitive", "asensitive")):
            if one in options and other in options:
                raise SqlError(
                    sqlstates.INVALID_CURSOR_DEFINITION,
                    f"cannot specify both {one.upper()} and {other.upper()}",
                    position=start.position,
                )
        cursor.expect_word("cursor")
        hold = False
        if cursor.at_any({"with", "without"}):
            hold = cursor.advance().text == "with"
            cursor.expect_word("hold")
        cursor.expect_word("for")
        token = cursor.current
        query = nested(cursor) if token.text in _QUERY_WORDS else None
        if not isinstance(query, Pull | Subscribe):
            raise cursor.syntax_error(token)
        return DeclareCursor(name, query, "scroll" in options, hold, "binary" in options)

    return parse


def _fetch(*, move: bool) -> StatementParser:
    def parse(cursor: Cursor) -> Statement:
        direction, count = _direction(cursor)
        if not cursor.accept_word("from"):
            cursor.accept_word("in")
        return Fetch(identifier(cursor), direction, count, move)

    return parse


def _direction(cursor: Cursor) -> tuple[str, int | None]:
    """None is ALL. A word that ends the statement is a cursor's name, also where it could be a direction."""
    if _at_number(cursor):
        return "forward", _signed(cursor)
    if cursor.peek().kind is END:
        return "forward", 1
    if cursor.accept_word("all"):
        return "forward", None
    if cursor.at_any(set(_SINGLE)):
        return _SINGLE[cursor.advance().text]
    if cursor.at_any({"absolute", "relative"}):
        return cursor.advance().text, _signed(cursor)
    if cursor.at_any({"forward", "backward"}):
        direction = cursor.advance().text
        if cursor.accept_word("all"):
            return direction, None
        return direction, _signed(cursor) if _at_number(cursor) else 1
    return "forward", 1


def _at_number(cursor: Cursor) -> bool:
    return cursor.current.kind is NUMBER or cursor.at_operator("-") or cursor.at_operator("+")


def _signed(cursor: Cursor) -> int:
    if cursor.accept_operator("-"):
        return -cursor.expect_integer()
    cursor.accept_operator("+")
    return cursor.expect_integer()


def _close(cursor: Cursor) -> Statement:
    return CloseCursor(None if cursor.accept_word("all") else identifier(cursor))


def heads(nested: StatementParser) -> Heads:
    """The table; ``nested`` reads any statement at the cursor."""
    return {
        ("declare",): _declare(nested),
        ("fetch",): _fetch(move=False),
        ("move",): _fetch(move=True),
        ("close",): _close,
    }
