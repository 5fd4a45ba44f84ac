"""CREATE [OR REPLACE] VIEW: its SELECT is kept as text."""

from __future__ import annotations

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.lexer import WORD
from mvserver.sql.names import identifier, listed, object_name
from mvserver.sql.properties import at_properties
from mvserver.sql.pull import query_statement
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.relations import CreateView

_QUERY_WORDS = frozenset({"select", "with", "values", "table"})


def _create_view(cursor: Cursor, *, or_replace: bool = False) -> Statement:
    name = object_name(cursor)
    columns: tuple[str, ...] = ()
    if cursor.accept_operator("("):
        columns = listed(cursor, identifier)
        cursor.expect_operator(")")
    if at_properties(cursor):
        raise cursor.not_supported(
            "options of a view are not supported", hint="A view is read with the rights of its owner; leave out WITH."
        )
    cursor.expect_word("as")
    _refuse_check_option(cursor)
    first = cursor.current
    if not cursor.at_any(_QUERY_WORDS) and not cursor.at_operator("("):
        raise cursor.syntax_error()
    select = query_statement(cursor.rest())
    if not select.has_tree and select.continuous is not None:
        raise select.continuous
    if len(select.text) > limits.VIEW_CHARACTERS_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            "the SELECT of a view is too long",
            detail=f"The limit is {limits.VIEW_CHARACTERS_MAX} characters.",
            position=first.position,
        )
    cursor.finish()
    return CreateView(name, columns, select.text, first.start, or_replace)


def _replace_view(cursor: Cursor) -> Statement:
    return _create_view(cursor, or_replace=True)


def _refuse_check_option(cursor: Cursor) -> None:
    tokens = cursor.rest().tokens[-5:-1]
    words = [token.text if token.kind is WORD else "" for token in tokens]
    if words[-2:] == ["check", "option"] and "with" in words:
        raise cursor.not_supported(
            "WITH CHECK OPTION is not supported", hint="Rows of views cannot be written.", token=tokens[-2]
        )


HEADS: Heads = {("create", "view"): _create_view, ("create", "or", "replace", "view"): _replace_view}
