"""Pull queries: sqlglot's Postgres parser, fed with our tokens.

The tree has to regenerate as text for DuckDB, so sqlglot's own nodes are what is wanted here. What is added: our lexer
(typographic quotes, exact positions, names folded), PostgreSQL's error text, source properties, refusal of what is no
query, and cheap ways through long lists and long chains of AND and OR.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token as GlotToken
from sqlglot.tokenizer_core import TokenType

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql import guard
from mvserver.sql.cursor import Cursor
from mvserver.sql.lexer import (
    BIT_STRING,
    END,
    HEX_STRING,
    IDENTIFIER,
    NUMBER,
    OPERATOR,
    PARAMETER,
    STRING,
    WORD,
    Token,
)
from mvserver.sql.properties import property_list
from mvserver.sql.split import StatementTokens
from mvserver.sql.statements import Properties

# sqlglot's words that PostgreSQL does not know as keywords of a query: they are names like any other.
_PLAIN_NAMES = frozenset(
    {
        "alter", "analyze", "anti", "apply", "asof", "autoincrement", "auto_increment", "begin", "bigdecimal",
        "bignumeric", "bignum", "byte", "cache", "call", "clob", "comment", "commit", "copy", "create", "cstring",
        "database", "datetime", "dec", "decfloat", "declare", "delete", "describe", "do", "drop", "enum", "exec",
        "execute", "explain", "file", "fixed", "format", "function", "geography", "geometry", "glob", "grant", "index",
        "inout", "insert", "keep", "kill", "list", "load", "lock", "long", "longblob", "longtext", "longvarchar", "map",
        "mediumblob", "mediumint", "mediumtext", "merge", "money", "name", "namespace", "next", "nullable", "number",
        "nvarchar", "nvarchar2", "object", "optimize", "out", "overwrite", "percent", "pivot", "point", "pragma",
        "prepare", "procedure", "qualify", "ref", "refresh", "regexp", "reindex", "rename", "replace", "reset",
        "revoke", "rlike", "rollback", "schema", "semi", "sequence", "serial", "session", "settings", "short", "show",
        "smallserial", "sql", "straight_join", "struct", "tinyblob", "tinytext", "trigger", "truncate", "type",
        "uncache", "unpivot", "update", "use", "vacuum", "variant", "vector", "view", "volatile", "xor", "decimal32",
        "decimal64", "decimal128", "decimal256", "bigserial", "partitioned_by", "str", "column", "set", "unknown",
        "stream",
    }
)  # fmt: skip
_WORDS: dict[str, TokenType] = {
    word.lower(): kind
    for word, kind in Postgres.Tokenizer.KEYWORDS.items()
    if word[0].isalpha() and " " not in word and word.lower() not in _PLAIN_NAMES
}
_PAIRS: dict[str, dict[str, TokenType]] = {
    "group": {"by": TokenType.GROUP_BY},
    "order": {"by": TokenType.ORDER_BY},
    "partition": {"by": TokenType.PARTITION_BY},
    "similar": {"to": TokenType.SIMILAR_TO},
    "grouping": {"sets": TokenType.GROUPING_SETS},
    "double": {"precision": TokenType.DOUBLE},
    "character": {"varying": TokenType.VARCHAR},
    "char": {"varying": TokenType.VARCHAR},
}
_REFUSED_OPERATORS = frozenset({"`", "\\", "{", "}", ":="})
_SINGLES = {
    text: kind for text, kind in Postgres.Tokenizer.SINGLE_TOKENS.items() if text not in ("'", '"', "`", "$", "@", "?")
}
_OPERATORS: dict[str, tuple[TokenType, ...]] = {
    **{text: (kind,) for text, kind in _SINGLES.items()},
    **{text: (kind,) for text, kind in Postgres.Tokenizer.KEYWORDS.items() if not text[0].isalpha()},
    "<<": (TokenType.LT, TokenType.LT),
    ">>": (TokenType.GT, TokenType.GT),
    "!~": (TokenType.NOT, TokenType.RLIKE),
    "!~*": (TokenType.NOT, TokenType.IRLIKE),
    "!~~": (TokenType.NOT, TokenType.LIKE),
    "!~~*": (TokenType.NOT, TokenType.ILIKE),
}
_LITERALS = frozenset({TokenType.NUMBER, TokenType.STRING})
_BALANCE_FROM = 32
_QUERY_WITH = re.compile(r"\bquery\b", re.IGNORECASE)  # a quick look before the tokens are searched
_CHANGES = frozenset({"insert", "update", "delete", "merge"})


class PullError(ParseError):
    """A syntax error at a token; sqlglot's own text is of no use to a PostgreSQL user."""

    def __init__(self, token: GlotToken, description: str) -> None:
        super().__init__(description)
        self.token = token


class PullParser(PostgresParser):
    """sqlglot's parser with our errors and a few overridden productions."""

    # Nothing but queries: INSERT and its like are names here, so a CTE cannot change data.
    STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {}

    statement: StatementTokens

    def raise_error(self, message: str, token: GlotToken | None = None) -> None:
        raise PullError(self._curr, message)

    def validate_expression(self, expression: Any, args: Any = None) -> Any:
        if args is not None and isinstance(expression, exp.Func):
            errors = expression.error_messages(args)
            if errors:
                raise SqlError(
                    sqlstates.UNDEFINED_FUNCTION,
                    f"function {expression.sql_name().lower()} does not exist with {len(args)} arguments",
                    position=self._prev.start + 1,
                )
            return expression
        return super().validate_expression(expression, args)

    def _parse_statement(self) -> exp.Expr | None:
        """The inside of a CTE."""
        if self._curr.token_type == TokenType.VAR and self._curr.text in _CHANGES:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"{self._curr.text.upper()} in WITH is not supported",
                position=self._curr.start + 1,
            )
        return super()._parse_statement()

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._curr.token_type == TokenType.FROM:
            self.raise_error("FROM without SELECT")  # DuckDB's order, not PostgreSQL's
        return super()._parse_select_query(*args, **kwargs)

    def _parse_into(self) -> exp.Into | None:
        if self._curr.token_type == TokenType.INTO:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "SELECT INTO is not supported",
                hint="Use CREATE MATERIALIZED VIEW ... AS SELECT.",
                position=self._curr.start + 1,
            )
        return None

    # --- long lists and chains --------------------------------------------------------------------------------------
    def _parse_disjunction(self) -> exp.Expr | None:
        this = self._parse_conjunction()
        if self._curr.token_type == TokenType.OR:
            return self._chain(this, TokenType.OR, exp.Or, self._parse_conjunction)
        return this

    def _parse_conjunction(self) -> exp.Expr | None:
        this = self._parse_equality()
        if self._curr.token_type == TokenType.AND:
            return self._chain(this, TokenType.AND, exp.And, self._parse_equality)
        return this

    def _chain(self, first: exp.Expr | None, operator: TokenType, node: type[exp.Connector], operand: Any) -> exp.Expr:
        """The operands of one chain; a long one becomes a balanced tree, whose depth is the logarithm of its length."""
        operands: list[Any] = [first]
        while self._match(operator):
            operands.append(operand())
        if None in operands:
            self.raise_error("operand expected")
        if len(operands) < _BALANCE_FROM:
            left = operands[0]
            for right in operands[1:]:
                left = node(this=left, expression=right)
            return left  # type: ignore[no-any-return]
        while len(operands) > 1:
            paired = [node(this=operands[i], expression=operands[i + 1]) for i in range(0, len(operands) - 1, 2)]
            operands = paired + operands[len(operands) - len(operands) % 2 :]
        return operands[0]  # type: ignore[no-any-return]

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        literals = self._literal_list()
        return super()._parse_in(this, alias) if literals is None else exp.In(this=this, expressions=literals)

    def _literal_list(self) -> list[exp.Literal] | None:
        """``(1, 2, 3)`` of numbers and texts only, or None and nothing read."""
        if self._curr.token_type != TokenType.L_PAREN:
            return None
        items: list[exp.Literal] = []
        index = self._index + 1
        sequence, size = self._tokens, self._tokens_size
        while index + 1 < size:
            token = sequence[index]
            if token.token_type not in _LITERALS:
                return None
            items.append(exp.Literal(this=token.text, is_string=token.token_type == TokenType.STRING))
            following = sequence[index + 1].token_type
            index += 2
            if following == TokenType.R_PAREN:
                self._advance(index - self._index)
                return items
            if following != TokenType.COMMA:
                return None
        return None

    # --- source properties ------------------------------------------------------------------------------------------
    def _parse_table_hints(self) -> list[exp.Expr] | None:
        return None  # WITH (...) after a source is ours

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        table = super()._parse_table(*args, **kwargs)
        if (
            isinstance(table, exp.Table)
            and self._curr.token_type == TokenType.WITH
            and self._next.token_type == TokenType.L_PAREN
        ):
            self._advance()
            table.meta["properties"] = self._properties()
            if not table.args.get("alias"):
                table.set("alias", self._parse_table_alias())
        return table

    def _properties(self) -> Properties:
        cursor = Cursor(self.statement, _index_at(self.statement, self._curr.start))
        properties = property_list(cursor)
        end = cursor.current.start
        while self._curr and self._curr.start < end:
            self._advance()
        return properties


class MvDialect(Postgres):
    """Postgres as pull queries are read and written."""

    Parser = PullParser


def pull_query(statement: StatementTokens) -> exp.Expression:
    """The tree of a SELECT, VALUES or TABLE."""
    cut, query_properties = _query_properties(statement)
    parser = _parser(statement, cut)
    tree = _run(statement, cut, parser, parser._parse_statement)
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise Cursor(statement).syntax_error()
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
    parser._chunks = [_convert(statement, cut)]
    parser._advance_chunk()
    return parser


def _run(statement: StatementTokens, cut: int, parser: PullParser, method: Any) -> Any:
    first = statement.tokens[0]
    with guard.no_recursion_error(first.position):
        try:
            tree = method()
            if parser._index < parser._tokens_size:
                raise PullError(parser._curr, "unexpected token")
        except PullError as error:
            raise _syntax_error(statement, cut, error.token) from None
        except ParseError as error:
            raise _syntax_error(statement, cut, parser._curr) from error
    return tree


def _syntax_error(statement: StatementTokens, cut: int, token: GlotToken) -> SqlError:
    index = _index_at(statement, token.start) if token else cut
    return Cursor(statement).syntax_error(statement.tokens[index])


def _index_at(statement: StatementTokens, start: int) -> int:
    """The index of our token that begins at an offset (or inside which one of sqlglot's begins)."""
    return bisect_right(statement.tokens, start, key=lambda token: token.start) - 1


def _query_properties(statement: StatementTokens) -> tuple[int, Properties | None]:
    """Where the query proper ends, and the properties of a QUERY WITH (...) behind it."""
    own = statement.tokens
    if _QUERY_WITH.search(statement.source, own[0].start, own[-1].start) is None:
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


def _convert(statement: StatementTokens, cut: int) -> list[GlotToken]:
    """Our tokens as sqlglot's."""
    own: Sequence[Token] = statement.tokens
    result: list[GlotToken] = []
    append, make, words, var = result.append, GlotToken, _WORDS, TokenType.VAR
    index = 0
    while index < cut:
        token = own[index]
        index += 1
        kind, text, start, end = token.kind, token.text, token.start, token.end - 1
        if kind is WORD:
            pair = _PAIRS.get(text)
            if pair is not None and own[index].kind is WORD:
                merged = pair.get(own[index].text)
                if merged is not None:
                    append(make(merged, f"{text} {own[index].text}", 1, start + 1, start, own[index].end - 1))
                    index += 1
                    continue
            append(make(words.get(text, var), text, 1, start + 1, start, end))
        elif kind is OPERATOR:
            kinds = _OPERATORS.get(text)
            if kinds is None or text in _REFUSED_OPERATORS:
                raise _no_operator(statement, token)
            for piece in kinds:
                append(make(piece, text, 1, start + 1, start, end))
        elif kind is NUMBER:
            append(make(TokenType.NUMBER, text, 1, start + 1, start, end))
        elif kind is STRING:
            if own[index].kind is STRING:
                raise Cursor(statement).syntax_error(own[index])
            append(make(TokenType.STRING, text, 1, start + 1, start, end))
        elif kind is IDENTIFIER:
            append(make(TokenType.IDENTIFIER, text, 1, start + 1, start, end))
        elif kind is PARAMETER:
            append(make(TokenType.PARAMETER, "$", 1, start + 1, start, start))
            append(make(TokenType.NUMBER, text, 1, start + 2, start + 1, end))
        elif kind is HEX_STRING:
            append(make(TokenType.HEX_STRING, text, 1, start + 1, start, end))
        elif kind is BIT_STRING:
            append(make(TokenType.BIT_STRING, text, 1, start + 1, start, end))
        elif kind is END:
            raise Cursor(statement).syntax_error(token)
    return result


def _no_operator(statement: StatementTokens, token: Token) -> SqlError:
    if token.text in _REFUSED_OPERATORS:
        return Cursor(statement).syntax_error(token)
    return SqlError(sqlstates.UNDEFINED_FUNCTION, f"operator does not exist: {token.text}", position=token.position)


_DIALECT = MvDialect()
