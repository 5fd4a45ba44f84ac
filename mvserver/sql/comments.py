"""COMMENT ON, in PostgreSQL's spelling, with the words for stores, streams and changelogs added."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.lexer import STRING
from mvserver.sql.names import object_name
from mvserver.sql.statements.base import ObjectName, Statement
from mvserver.sql.statements.relations import CommentOn

_KINDS: tuple[tuple[tuple[str, ...], str, str | None], ...] = (
    (("database",), "database", None),
    (("schema",), "schema", None),
    (("store",), "store", None),
    (("server",), "store", None),
    (("role",), "role", None),
    (("type",), "type", None),
    (("materialized", "view"), "relation", "materialized view"),
    (("view",), "relation", "view"),
    (("foreign", "table"), "relation", None),
    (("table",), "relation", None),
    (("stream",), "relation", "stream"),
    (("changelog",), "relation", "changelog"),
    (("relation",), "relation", None),
)
_PARTS = {"schema": 2, "relation": 3, "type": 3}


def _comment(cursor: Cursor) -> Statement:
    if cursor.accept_word("column"):
        position = cursor.current.position
        parts = object_name(cursor, parts_max=4).parts
        if len(parts) < 2:
            raise cursor.syntax_error()
        return CommentOn("relation", ObjectName(parts[:-1], position), _text(cursor), column=parts[-1])
    for words, kind, relation_kind in _KINDS:
        if cursor.accept_word(*words):
            name = object_name(cursor, parts_max=_PARTS.get(kind, 1))
            return CommentOn(kind, name, _text(cursor), relation_kind=relation_kind)
    raise cursor.not_supported(
        f"COMMENT ON {cursor.current.text.upper()} is not supported",
        hint="Comments are on databases, schemas, stores, roles, types, relations and their columns.",
    )


def _text(cursor: Cursor) -> str | None:
    cursor.expect_word("is")
    if cursor.accept_word("null"):
        return None
    if cursor.current.kind is not STRING:
        raise cursor.syntax_error()
    return cursor.advance().text


HEADS: Heads = {("comment", "on"): _comment}
