"""Statements on entities: topics, tables and directories inside a store. TOPIC is the older word for ENTITY."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.column_lists import keyed_columns
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.lexer import IDENTIFIER, STRING
from mvserver.sql.names import NOT_A_NAME, identifier, if_exists, label
from mvserver.sql.properties import at_properties, optional_properties
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.stores import (
    CreateEntity,
    DescribeEntity,
    DropEntity,
    InsertIntoEntity,
    ListEntities,
    PrintEntity,
)


def _name(cursor: Cursor) -> str:
    """``topic``, ``"Topic-1"``, ``schema.table``; as text for names longer than an identifier may be."""
    token = cursor.current
    if token.kind is STRING:
        cursor.advance()
        if not token.text:
            raise SqlError(sqlstates.INVALID_NAME, "entity name must not be empty", position=token.position)
        return token.text
    parts = [identifier(cursor)]
    while cursor.accept_operator("."):
        parts.append(label(cursor))
    return ".".join(parts)


def _in_store(cursor: Cursor) -> str | None:
    if not cursor.at_word("in"):
        return None
    cursor.advance()
    cursor.expect_word("store")
    return identifier(cursor)


def _list(cursor: Cursor) -> Statement:
    path = None
    if cursor.at_word("in") and not cursor.at_word("in", "store"):
        cursor.advance()
        path = _name(cursor)
    return ListEntities(_in_store(cursor), path)


def _describe(cursor: Cursor) -> Statement:
    return DescribeEntity(_name(cursor), _in_store(cursor))


def _create(cursor: Cursor) -> Statement:
    name = _name(cursor)
    columns = keyed_columns(cursor, "a table") if cursor.at_operator("(") else None
    definitions, key = ((), ()) if columns is None else (tuple(columns.definitions), columns.key or ())
    return CreateEntity(name, _in_store(cursor), optional_properties(cursor), definitions, key)


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropEntity(_name(cursor), _in_store(cursor), guarded, optional_properties(cursor))


def _print(cursor: Cursor) -> Statement:
    name, store = _name(cursor), _in_store(cursor)
    properties = optional_properties(cursor)
    limit = cursor.expect_integer() if cursor.accept_word("limit") else None
    if limit is not None and not properties and at_properties(cursor):
        properties = optional_properties(cursor)
    return PrintEntity(name, store, properties, limit)


def at_entity(cursor: Cursor) -> bool:
    """Whether ``INSERT INTO`` is followed by ENTITY and a name, not by a relation of that name."""
    if not cursor.at_any({"entity", "topic"}):
        return False
    following = cursor.peek()
    return following.kind in (IDENTIFIER, STRING) or (
        following.kind.name == "WORD" and following.text not in NOT_A_NAME and following.text not in ("value", "values")
    )


def insert_into_entity(cursor: Cursor) -> Statement:
    """Behind ``INSERT INTO``."""
    cursor.advance()
    name, store = _name(cursor), _in_store(cursor)
    cursor.expect_any("value", "values")
    cursor.expect_operator("(")
    value = None if cursor.accept_word("null") else cursor.expect_string()
    key = cursor.expect_string() if cursor.accept_operator(",") else None
    cursor.expect_operator(")")
    return InsertIntoEntity(name, store, value, key, optional_properties(cursor))


def _update(cursor: Cursor) -> Statement:
    raise cursor.not_supported(
        "UPDATE ENTITY is not supported",
        hint="Change the topic's configuration in the store itself.",
        token=cursor.previous,
    )


HEADS: Heads = {
    (verb, noun): parser
    for verb, nouns, parser in (
        ("list", ("entities", "topics"), _list),
        ("show", ("entities", "topics"), _list),
        ("describe", ("entity", "topic"), _describe),
        ("create", ("entity", "topic"), _create),
        ("drop", ("entity", "topic"), _drop),
        ("print", ("entity", "topic"), _print),
        ("update", ("entity", "topic"), _update),
    )
    for noun in nouns
}
