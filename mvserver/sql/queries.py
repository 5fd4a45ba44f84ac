"""Continuous queries as objects, and the statements that hold another statement: DESCRIBE, EXPLAIN."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.explain_options import NAMES, explain_options
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.lexer import IDENTIFIER, NUMBER, STRING, WORD
from mvserver.sql.names import NOT_A_NAME, label, object_name
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.queries import (
    DescribeQuery,
    DescribeStatement,
    Explain,
    ListQueries,
    Pull,
    RestartQuery,
    TerminateQuery,
)
from mvserver.sql.statements.relations import (
    CreateChangelog,
    CreateChangelogAs,
    CreateMaterializedView,
    CreateStream,
    CreateStreamAs,
    CreateTableAs,
    DescribeRelation,
    InsertInto,
)
from mvserver.sql.statements.settings import ExecutePrepared

_DESCRIBABLE = (
    CreateStream, CreateStreamAs, CreateChangelog, CreateChangelogAs, CreateMaterializedView, CreateTableAs, InsertInto,
    Pull,
)  # fmt: skip
_EXPLAINABLE = (*_DESCRIBABLE, ExecutePrepared)


def _list(_: Cursor) -> Statement:
    return ListQueries()


def query_id(cursor: Cursor) -> str:
    """A query's id: bare, in double quotes or as text."""
    token = cursor.current
    if token.kind is STRING and not token.text:
        raise SqlError(sqlstates.INVALID_NAME, "query id must not be empty", position=token.position)
    if token.kind in (STRING, IDENTIFIER, NUMBER) or (token.kind is WORD and token.text not in NOT_A_NAME):
        return cursor.advance().text
    raise cursor.syntax_error()


def _describe_query(cursor: Cursor) -> Statement:
    what = cursor.current
    if cursor.at_any({"metrics", "events", "state"}) and cursor.peek().text not in ("", ";"):
        raise cursor.not_supported(
            f"DESCRIBE QUERY {what.text.upper()} is not supported",
            hint="DESCRIBE QUERY id shows state, rates, positions and the last error.",
        )
    return DescribeQuery(query_id(cursor))


def _terminate(cursor: Cursor) -> Statement:
    return TerminateQuery(query_id(cursor))


def _restart(cursor: Cursor) -> Statement:
    query = query_id(cursor)
    if cursor.accept_word("with", "snapshot"):
        return RestartQuery(query, with_snapshot=True)
    return RestartQuery(query, cursor.accept_word("skip", "rejected"))


def heads(nested: StatementParser) -> Heads:
    """The table; ``nested`` reads any statement at the cursor."""

    def describe(cursor: Cursor) -> Statement:
        token = cursor.current
        if cursor.at_any({"create", "insert", "select", "with", "values"}) or cursor.at_operator("("):
            statement = nested(cursor)
            if not isinstance(statement, _DESCRIBABLE):
                raise cursor.syntax_error(token)
            return DescribeStatement(statement)
        return DescribeRelation(object_name(cursor))

    def explain(cursor: Cursor) -> Statement:
        options: list[tuple[str, str]] = []
        if cursor.at_operator("(") and cursor.peek().kind is WORD and cursor.peek().text not in _QUERY_WORDS:
            options = _options(cursor)
        else:
            for word in ("analyze", "analyse", "verbose"):
                if cursor.accept_word(word):
                    options.append((word.replace("analyse", "analyze"), "true"))
        token = cursor.current
        if cursor.at_word("explain"):
            raise cursor.syntax_error()
        statement = nested(cursor)
        if not isinstance(statement, _EXPLAINABLE):
            raise cursor.syntax_error(token)
        explain_options(options)  # raises for those that are wrong
        return Explain(statement, tuple(options))

    return {
        ("list", "queries"): _list,
        ("show", "queries"): _list,
        ("describe", "query"): _describe_query,
        ("terminate", "query"): _terminate,
        ("restart", "query"): _restart,
        ("describe",): describe,
        ("explain",): explain,
    }


_QUERY_WORDS = frozenset({"select", "with", "values", "table"})


def _options(cursor: Cursor) -> list[tuple[str, str]]:
    """``(ANALYZE, FORMAT json)``."""
    cursor.expect_operator("(")
    options: list[tuple[str, str]] = []
    while True:
        token = cursor.current
        name = label(cursor).replace("analyse", "analyze")
        if name not in NAMES:
            raise SqlError(sqlstates.SYNTAX_ERROR, f'unrecognized EXPLAIN option "{name}"', position=token.position)
        value = "" if name == "format" else "true"
        if not cursor.at_operator(",") and not cursor.at_operator(")"):
            if cursor.current.kind not in (WORD, STRING, NUMBER, IDENTIFIER) or cursor.at_any(_QUERY_WORDS):
                raise cursor.syntax_error()
            value = cursor.advance().text
        options.append((name, value))
        if cursor.accept_operator(")"):
            return options
        cursor.expect_operator(",")
