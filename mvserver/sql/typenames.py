"""The beginning and the end of a type among the tokens; ``mvserver.sql.types.parse_type`` knows what it means."""

from __future__ import annotations

from sqlglot import exp

from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.guard import check_nesting
from mvserver.sql.lexer import NUMBER, OPERATOR, STRING, WORD, Token
from mvserver.sql.names import RESERVED
from mvserver.sql.nodes import data_type
from mvserver.sql.types import SqlType, decimal, parse_type

_GENERIC = frozenset({"array", "map", "struct", "row"})


def type_name(cursor: Cursor) -> SqlType:
    """Reads a type as it is written in a column definition or a cast."""
    first = cursor.current
    if first.kind is not WORD or (first.text in RESERVED and first.text not in _GENERIC):
        raise cursor.syntax_error()
    cursor.advance()
    parts = [cursor.raw(first)]
    if first.text in _GENERIC and cursor.at_operator("<"):
        parts.extend(_angle_brackets(cursor))
    else:
        parts.extend(_modifiers(cursor, first.text))
    dimensions = 0
    while cursor.at_operator("["):
        dimensions += 1
        check_nesting(dimensions, cursor.current)
        parts.append(cursor.advance().text)
        parts.append(cursor.expect_operator("]").text)
    try:
        return parse_type(" ".join(parts))
    except SqlError as error:
        raise SqlError(
            error.sqlstate, error.message, detail=error.detail, hint=error.hint, position=first.position
        ) from None


def cast_type(cursor: Cursor) -> exp.DataType:
    """A cast's target as a node. NUMERIC without a precision is marked ``unbounded``: PostgreSQL keeps all digits."""
    bare = cursor.at_word("numeric") or cursor.at_word("decimal") or cursor.at_word("dec")
    found = type_name(cursor)
    node = data_type(found)
    if bare and found == decimal() and cursor.previous.text != ")":
        node.meta["unbounded"] = True
    return node


def at_type_literal(cursor: Cursor) -> bool:
    """Whether a word is followed by what makes it a typed literal: ``DATE '...'``, ``TIMESTAMP(3) '...'``."""
    mark = cursor.mark
    cursor.advance()
    if cursor.at_operator("("):
        cursor.advance()
        while cursor.current.kind is NUMBER or cursor.at_operator(","):
            cursor.advance()
        if not cursor.accept_operator(")"):
            cursor.reset(mark)
            return False
    for words in (
        ("with", "local", "time", "zone"),
        ("with", "time", "zone"),
        ("without", "time", "zone"),
        ("precision",),
    ):
        if cursor.accept_word(*words):
            break
    found = cursor.current.kind is STRING
    cursor.reset(mark)
    return found


def _modifiers(cursor: Cursor, word: str) -> list[str]:
    parts: list[str] = []
    if (word == "double" and cursor.at_word("precision")) or (word == "character" and cursor.at_word("varying")):
        parts.append(cursor.advance().text)
    if cursor.at_operator("("):
        parts.append(cursor.advance().text)
        while True:
            if cursor.current.kind is not NUMBER:
                raise cursor.syntax_error()
            parts.append(cursor.advance().text)
            if cursor.at_operator(")"):
                parts.append(cursor.advance().text)
                break
            parts.append(cursor.expect_operator(",").text)
    if word in ("timestamp", "time"):
        for words in (("with", "local", "time", "zone"), ("with", "time", "zone"), ("without", "time", "zone")):
            if cursor.accept_word(*words):
                parts.extend(words)
                break
    return parts


def _angle_brackets(cursor: Cursor) -> list[str]:
    """``<...>`` with all that is nested in it."""
    parts: list[str] = []
    depth = round_depth = 0
    while True:
        token = cursor.current
        if cursor.at_end:
            raise cursor.syntax_error()
        if token.kind is OPERATOR:
            round_depth += {"(": 1, ")": -1}.get(token.text, 0)
            if round_depth < 0:
                raise cursor.syntax_error()
            depth += _depth_change(cursor, token)
            check_nesting(depth, token)
            if depth < 0:
                raise cursor.syntax_error()
        cursor.advance()
        parts.append(cursor.source[token.start : token.end])
        if depth == 0:
            return parts


def _depth_change(cursor: Cursor, token: Token) -> int:
    if token.text == "<":
        return 1
    if token.text and set(token.text) == {">"}:
        return -len(token.text)
    if token.text not in ("(", ")", ",", ":", "[", "]"):
        raise cursor.syntax_error()
    return 0
