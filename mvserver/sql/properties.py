"""``WITH ('key' = value, ...)``: the same list in DDL, after a source, after QUERY, and in store statements."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.lexer import IDENTIFIER, NUMBER, OPERATOR, STRING, WORD, Token
from mvserver.sql.names import identifier
from mvserver.sql.statements.base import Properties, Property, Value


def optional_properties(cursor: Cursor) -> Properties:
    """The list after WITH, or the empty one when there is none."""
    if not at_properties(cursor):
        return Properties()
    cursor.advance()
    return property_list(cursor)


def required_properties(cursor: Cursor) -> Properties:
    cursor.expect_word("with")
    return property_list(cursor)


def at_properties(cursor: Cursor) -> bool:
    following = cursor.peek()
    return cursor.at_word("with") and following.kind is OPERATOR and following.text == "("


def property_list(cursor: Cursor) -> Properties:
    """``('key' = value, 'key', ...)``; keys are text in quotes and not case-sensitive."""
    cursor.expect_operator("(")
    items: list[Property] = []
    seen: set[str] = set()
    while True:
        key_token = cursor.current
        if key_token.kind is not STRING:
            hint = (
                "Property keys are written in single quotes, as in WITH ('key' = value)." if cursor.at_name() else None
            )
            raise cursor.syntax_error(hint=hint)
        key = cursor.advance().text.strip().lower()
        if not key:
            raise SqlError(sqlstates.SYNTAX_ERROR, "property key must not be empty", position=key_token.position)
        if key in seen:
            raise SqlError(
                sqlstates.SYNTAX_ERROR, f'property "{key}" specified more than once', position=key_token.position
            )
        seen.add(key)
        value: Value = None
        if cursor.accept_operator("="):
            value = _value(cursor)
        items.append(Property(key, value, key_token.position))
        if cursor.accept_operator(")"):
            return Properties(tuple(items))
        cursor.expect_operator(",")


def _value(cursor: Cursor) -> Value:
    token = cursor.current
    if token.kind is STRING:
        return cursor.advance().text
    if token.kind in (WORD, IDENTIFIER) and _is_dot(cursor.peek()):
        return _dotted(cursor)
    if token.kind is IDENTIFIER:
        return cursor.advance().text
    if token.kind is WORD:
        cursor.advance()
        if token.text in ("true", "false"):
            return token.text == "true"
        if token.text == "null":
            raise cursor.syntax_error(token)
        return cursor.raw(token)  # a bare keyword keeps its case: formats and types compare without regard to it
    negative = cursor.at_operator("-")
    if negative or cursor.at_operator("+"):
        cursor.advance()
    number = cursor.current
    if number.kind is not NUMBER:
        raise cursor.syntax_error()
    cursor.advance()
    return _number(("-" if negative else "") + number.text, number.position)


def _is_dot(token: Token) -> bool:
    return token.kind is OPERATOR and token.text == "."


def _dotted(cursor: Cursor) -> str:
    """``source."Message"``: a name of several parts."""
    parts = [identifier(cursor)]
    while cursor.accept_operator("."):
        parts.append(cursor.advance().text if cursor.current.kind is IDENTIFIER else cursor.raw(cursor.advance()))
    return ".".join(parts)


def _number(text: str, position: int) -> int | float:
    digits = text.lstrip("-")
    if digits.isdigit():
        if len(digits) > 18:
            raise SqlError(
                sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
                f'value "{text[:40]}" is out of range for type bigint',
                position=position,
            )
        return int(text)
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
            f'value "{text[:40]}" is out of range for type double precision',
            position=position,
        )
    return value
