"""A push query: the SELECT of a continuous query that goes to its client, and may end after a number of rows."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql import guard
from mvserver.sql.cursor import Cursor
from mvserver.sql.definitions import word_outside_brackets
from mvserver.sql.lexer import NUMBER, tokenize
from mvserver.sql.select import continuous_select
from mvserver.sql.split import StatementTokens, split
from mvserver.sql.statements.queries import PushQuery

BOUNDED_HINT = "SET mv.stream_reads = 'bounded' reads what is there now, with any SELECT."


def push_query(text: str) -> PushQuery:
    """Of the text of one SELECT, whose tokens another parser has checked."""
    statement = split(text, tokenize(text))[0]
    limit_at = word_outside_brackets(statement.tokens, "limit", "fetch")
    cut = len(statement.tokens) - 1 if limit_at is None else limit_at
    select = Cursor(StatementTokens(text, [*statement.tokens[:cut], statement.tokens[-1]]))
    try:
        with guard.no_recursion_error():
            tree = continuous_select(select)
        select.expect_end()
        limit = _limit(Cursor(statement, cut))
    except SqlError as error:
        raise hinted(error) from None
    return PushQuery(tree, limit, text=text)


def hinted(error: SqlError) -> SqlError:
    """What a push query cannot do, a read to the present end can."""
    if error.sqlstate == sqlstates.FEATURE_NOT_SUPPORTED:
        error.hint = f"{error.hint} {BOUNDED_HINT}" if error.hint else BOUNDED_HINT
    return error


def _limit(cursor: Cursor) -> int | None:
    """``LIMIT n``, ``LIMIT ALL`` or ``FETCH FIRST n ROWS ONLY``."""
    limit = None
    if cursor.accept_word("limit"):
        if not cursor.accept_word("all") and not cursor.accept_word("null"):
            limit = _count(cursor)
    elif cursor.accept_word("fetch"):
        cursor.expect_any("first", "next")
        limit = _count(cursor) if cursor.current.kind is NUMBER else 1
        cursor.expect_any("row", "rows")
        cursor.expect_word("only")
    if cursor.at_word("offset"):
        raise cursor.not_supported("OFFSET is not supported in a push query")
    cursor.expect_end()
    return limit


def _count(cursor: Cursor) -> int:
    if cursor.current.kind is not NUMBER:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "the LIMIT of a push query must be a number",
            hint="Write it into the statement.",
            position=cursor.current.position,
        )
    return cursor.expect_integer()
