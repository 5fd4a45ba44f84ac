"""BEGIN APPLICATION … END APPLICATION and what only stands between them: virtual streams and changelogs."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.names import identifier, object_name
from mvserver.sql.properties import at_properties, optional_properties
from mvserver.sql.select import continuous_select
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.relations import CreateVirtual
from mvserver.sql.statements.transactions import BeginApplication, EndApplication


def _begin(cursor: Cursor) -> Statement:
    return BeginApplication(identifier(cursor))


def _end(cursor: Cursor) -> Statement:
    return EndApplication(optional_properties(cursor))


def _virtual(kind: str) -> StatementParser:
    def parse(cursor: Cursor) -> Statement:
        token = cursor.current
        name = object_name(cursor)
        if len(name.parts) > 1:
            raise cursor.syntax_error(token, hint="A virtual relation belongs to its application and has no schema.")
        if cursor.at_operator("(") or at_properties(cursor):
            raise cursor.syntax_error(hint="A virtual relation has no topic: CREATE VIRTUAL STREAM name AS SELECT ...")
        cursor.expect_word("as")
        return CreateVirtual(kind, name, continuous_select(cursor))

    return parse


HEADS: Heads = {
    ("begin", "application"): _begin,
    ("end", "application"): _end,
    ("create", "virtual", "stream"): _virtual("stream"),
    ("create", "virtual", "changelog"): _virtual("changelog"),
}
