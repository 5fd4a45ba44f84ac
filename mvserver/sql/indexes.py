"""CREATE INDEX and DROP INDEX, in PostgreSQL's spelling: over columns alone."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import cascade, identifier, if_exists, listed, object_name
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.relations import CreateIndex, DropIndex, IndexedColumn

_HINT = "Views are indexed by their keys; other columns are found by reading the view."


def _create_index(cursor: Cursor, *, unique: bool = False) -> Statement:
    cursor.accept_word("concurrently")
    guarded = cursor.accept_word("if", "not", "exists")
    name = None if cursor.at_word("on") and not guarded else identifier(cursor)
    cursor.expect_word("on")
    cursor.accept_word("only")
    on = object_name(cursor)
    method = identifier(cursor) if cursor.accept_word("using") else "btree"
    cursor.expect_operator("(")
    columns = listed(cursor, _column)
    cursor.expect_operator(")")
    distinct = not cursor.accept_word("nulls", "not", "distinct")
    if distinct:
        cursor.accept_word("nulls", "distinct")
    if cursor.at_any({"include", "with", "tablespace", "where"}):
        raise cursor.not_supported(f"{cursor.current.text.upper()} in CREATE INDEX is not supported", hint=_HINT)
    return CreateIndex(name, on, columns, unique, method, distinct, guarded)


def _create_unique_index(cursor: Cursor) -> Statement:
    return _create_index(cursor, unique=True)


def _column(cursor: Cursor) -> IndexedColumn:
    token = cursor.current
    if cursor.at_operator("(") or cursor.peek().text == "(":
        raise cursor.not_supported("indexes of expressions are not supported", hint=_HINT)
    name = identifier(cursor)
    if cursor.at_word("collate") or not (cursor.at_operator(",") or cursor.at_operator(")") or _at_order(cursor)):
        raise cursor.not_supported("collations and operator classes of an index are not supported", hint=_HINT)
    descending = cursor.accept_word("desc")
    if not descending:
        cursor.accept_word("asc")
    nulls_first = descending
    if cursor.accept_word("nulls"):
        nulls_first = cursor.expect_any("first", "last") == "first"
    return IndexedColumn(name, descending, nulls_first, token.position)


def _at_order(cursor: Cursor) -> bool:
    return cursor.at_any({"asc", "desc", "nulls"})


def _drop_index(cursor: Cursor) -> Statement:
    cursor.accept_word("concurrently")
    guarded = if_exists(cursor)
    names = listed(cursor, object_name)
    cascade(cursor)
    return DropIndex(names, guarded)


HEADS: Heads = {
    ("create", "index"): _create_index,
    ("create", "unique", "index"): _create_unique_index,
    ("drop", "index"): _drop_index,
}
