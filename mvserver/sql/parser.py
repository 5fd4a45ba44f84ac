"""The way in: text to statements."""

from __future__ import annotations

from dataclasses import replace

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql import (
    absent,
    api_tokens,
    applications,
    changelogs,
    comments,
    copying,
    cursors,
    default_privileges,
    descriptor_sources,
    entities,
    enum_types,
    function_sources,
    functions,
    guard,
    indexes,
    namespaces,
    policies,
    privileges,
    processors,
    queries,
    relations,
    roles,
    schema_registries,
    session,
    stores,
    subscribe,
    tables,
    unsupported,
    views,
)
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import HeadTable
from mvserver.sql.lexer import WORD, tokenize
from mvserver.sql.pull import query_statement
from mvserver.sql.split import StatementTokens, split
from mvserver.sql.statements.base import Statement

_QUERY_WORDS = frozenset({"select", "with", "values", "table"})


def parse(text: str) -> list[Statement]:
    """All statements of a text, in order; none for an empty one. The first error, wherever it is, refuses all."""
    guard.check_size(text)
    return [_parse(tokens) for tokens in split(text, tokenize(text))]


def parse_one(text: str) -> Statement:
    """The only statement of a text; 42601 for none or for several."""
    statements = parse(text)
    if len(statements) != 1:
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            "syntax error at end of input"
            if not statements
            else "cannot insert multiple commands into a prepared statement",
        )
    return statements[0]


def _parse(tokens: StatementTokens) -> Statement:
    guard.check_tokens(tokens.tokens)
    with guard.no_recursion_error(tokens.tokens[0].position):
        return _statement(Cursor(tokens), whole=True)


def _nested(cursor: Cursor) -> Statement:
    return _statement(cursor, whole=False)


def _statement(cursor: Cursor, *, whole: bool) -> Statement:
    """One statement up to the end of the tokens; a nested one is the last part of the one around it."""
    first = cursor.current
    if (first.kind is WORD and first.text in _QUERY_WORDS) or first.text == "(":
        query = query_statement(cursor.rest())
        cursor.finish()
        return query
    mark = cursor.mark
    statement = _HEADS.find(cursor)(cursor)
    cursor.expect_end()
    return replace(statement, text=cursor.text_since(mark), start=first.start)


_HEADS = HeadTable(
    stores.HEADS,
    schema_registries.HEADS,
    descriptor_sources.HEADS,
    function_sources.HEADS,
    api_tokens.HEADS,
    comments.HEADS,
    entities.HEADS,
    namespaces.HEADS,
    policies.HEADS,
    processors.HEADS,
    enum_types.HEADS,
    functions.HEADS,
    roles.HEADS,
    privileges.HEADS,
    default_privileges.HEADS,
    relations.HEADS,
    views.HEADS,
    indexes.HEADS,
    changelogs.HEADS,
    tables.HEADS,
    applications.HEADS,
    queries.heads(_nested),
    session.heads(_nested),
    cursors.heads(_nested),
    copying.HEADS,
    subscribe.HEADS,
    absent.HEADS,
    unsupported.HEADS,
)
