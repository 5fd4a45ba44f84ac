"""Pull queries: a sqlglot dialect over Postgres, fed with our tokens.

The tree has to regenerate as text for DuckDB, so sqlglot's own nodes are what is wanted here. What is added: our lexer
(typographic quotes, exact positions, names folded), PostgreSQL's error text, source properties, and refusal of what
is no query.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token as GlotToken

from mvserver.errors import SqlError
from mvserver.sql import guard
from mvserver.sql.cursor import Cursor
from mvserver.sql.lexer import OPERATOR, WORD, Token
from mvserver.sql.properties import property_list
from mvserver.sql.pull_parser import ContinuousOnly, PullError, PullParser, index_at
from mvserver.sql.pull_tokens import convert
from mvserver.sql.split import StatementTokens
from mvserver.sql.statements.base import Properties
from mvserver.sql.statements.queries import NO_TREE, Pull
from mvserver.sql.trees import without_parents

# sqlglot is not written for damaged text: where it stumbles over something missing, that is where the syntax is wrong.
_CRASHES = (AttributeError, IndexError, KeyError, TypeError, ValueError, AssertionError)


class MvDialect(Postgres):
    """Postgres as pull queries are read and written."""

    Parser = PullParser
    INDEX_OFFSET = 0  # subscripts stay as they are written


def query_statement(statement: StatementTokens) -> Pull:
    """A SELECT, VALUES or TABLE as a statement."""
    try:
        return Pull(without_parents(pull_query(statement)), text=statement.text, start=statement.tokens[0].start)
    except ContinuousOnly as found:
        start = statement.tokens[0].start
        return Pull(NO_TREE, found.with_traceback(None), text=statement.text, start=start)


def pull_query(statement: StatementTokens) -> exp.Expression:
    """The tree of a SELECT, VALUES or TABLE."""
    cut, query_properties = _query_properties(statement)
    parser = _parser(statement, cut)
    tree = _run(statement, cut, parser, parser._parse_statement)
    if not isinstance(tree, (exp.Query, exp.Values)):
        first = statement.tokens[0].text
        raise Cursor(statement).syntax_error(statement.tokens[1 if first in ("values", "table") else 0])
    if query_properties is not None:
        tree.meta["query_properties"] = query_properties
    return tree  # type: ignore[return-value]


def pull_expression(statement: StatementTokens) -> exp.Expression:
    """One scalar expression; EXECUTE's arguments."""
    parser = _parser(statement, len(statement.tokens) - 1)
    tree = _run(statement, len(statement.tokens) - 1, parser, parser._parse_assignment)
    if tree is None:
        raise Cursor(statement).syntax_error()
    return tree  # type: ignore[no-any-return]


def _parser(statement: StatementTokens, cut: int) -> PullParser:
    parser = PullParser(dialect=_DIALECT)
    parser.statement = statement
    parser.sql = statement.source
    parser._chunks = [convert(statement, cut)]
    parser._advance_chunk()
    return parser


def _run(statement: StatementTokens, cut: int, parser: PullParser, method: Any) -> Any:
    first = statement.tokens[0]
    with guard.no_recursion_error(first.position):
        try:
            tree = method()
            if parser._index < parser._tokens_size:
                raise PullError(parser._curr, "unexpected token")
            if not _balanced(statement, cut):  # sqlglot forgives a missing bracket behind CAST and its like
                raise PullError(parser._curr, "a bracket is missing")
        except PullError as error:
            _refuse_emit(statement)
            raise _syntax_error(statement, cut, error.token) from None
        except (ParseError, *_CRASHES) as error:
            raise _syntax_error(statement, cut, parser._curr) from error
    return tree


def _refuse_emit(statement: StatementTokens) -> None:
    """EMIT FINAL and EMIT CHANGES end a continuous query; they are looked for where the text is no pull query."""
    for token, following in pairwise(statement.tokens):
        if _is_word(token, "emit") and any(_is_word(following, word) for word in ("final", "changes")):
            raise ContinuousOnly(f"EMIT {following.text.upper()}", token.start) from None


def _syntax_error(statement: StatementTokens, cut: int, token: GlotToken) -> SqlError:
    index = index_at(statement, token.start) if token else cut
    return Cursor(statement).syntax_error(statement.tokens[index])


def _balanced(statement: StatementTokens, cut: int) -> bool:
    depth = 0
    for token in statement.tokens[:cut]:
        if token.kind is OPERATOR:
            if token.text == "(":
                depth += 1
            elif token.text == ")":
                depth -= 1
    return depth == 0


def _query_properties(statement: StatementTokens) -> tuple[int, Properties | None]:
    """Where the query proper ends, and the properties of a QUERY WITH (...) behind it."""
    own = statement.tokens
    if "query" not in statement.source[own[0].start : own[-1].start].lower():  # before the tokens are searched
        return len(own) - 1, None
    for index in range(len(own) - 3, 0, -1):
        token = own[index]
        if (
            token.kind is WORD
            and token.text == "query"
            and _is_word(own[index + 1], "with")
            and own[index + 2].text == "("
        ):
            cursor = Cursor(statement, index + 2)
            properties = property_list(cursor)
            cursor.expect_end()
            return index, properties
    return len(own) - 1, None


def _is_word(token: Token, word: str) -> bool:
    return token.kind is WORD and token.text == word


_DIALECT = MvDialect()
