"""``SUBSCRIBE [TO] view [WITH (SNAPSHOT | SINCE 'token')]``: the changes of a view as they come."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.lexer import PARAMETER
from mvserver.sql.names import label, object_name
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.queries import Subscribe


def subscribe(cursor: Cursor) -> Statement:
    """Behind the first word."""
    cursor.accept_word("to")
    if cursor.at_operator("("):
        raise cursor.not_supported(
            "SUBSCRIBE to a query is not supported", hint="Create a materialized view of it, and SUBSCRIBE TO that."
        )
    name = object_name(cursor)
    snapshot, since = False, None
    if cursor.accept_word("with"):
        snapshot, since = _options(cursor)
    return Subscribe(name, snapshot, since)


def _options(cursor: Cursor) -> tuple[bool, str | None]:
    cursor.expect_operator("(")
    snapshot, since = False, None
    given: set[str] = set()
    while True:
        token = cursor.current
        option = label(cursor)
        if option not in ("snapshot", "since"):
            raise SqlError(
                sqlstates.SYNTAX_ERROR,
                f'unrecognized SUBSCRIBE option "{option}"',
                hint="Options are SNAPSHOT and SINCE 'token'.",
                position=token.position,
            )
        if option in given:
            raise SqlError(sqlstates.SYNTAX_ERROR, "conflicting or redundant options", position=token.position)
        given.add(option)
        if option == "snapshot":
            snapshot = not cursor.at_any({"false", "true"}) or cursor.advance().text == "true"
        else:
            cursor.accept_operator("=")
            if cursor.current.kind is PARAMETER:
                raise cursor.not_supported(
                    "parameters are not supported in SUBSCRIBE", hint="Write the token into the text."
                )
            since = cursor.expect_string()
        if cursor.accept_operator(")"):
            break
        cursor.expect_operator(",")
    if snapshot and since is not None:
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            "SNAPSHOT and SINCE exclude each other",
            detail="Behind a token come changes alone; a snapshot has no rows of before.",
            position=token.position,
        )
    return snapshot, since


HEADS: Heads = {("subscribe",): subscribe}
