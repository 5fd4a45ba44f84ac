"""Our tokens as sqlglot's: its keywords, and none of those that PostgreSQL would take for names."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import Token as GlotToken
from sqlglot.tokenizer_core import TokenType

from mvserver import interrupts, sqlstates
from mvserver.errors import SqlError
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
from mvserver.sql.split import StatementTokens

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
    "?": (TokenType.PLACEHOLDER,),
    "<<": (TokenType.LT, TokenType.LT),
    ">>": (TokenType.GT, TokenType.GT),
    "!~": (TokenType.NOT, TokenType.RLIKE),
    "!~*": (TokenType.NOT, TokenType.IRLIKE),
    "!~~": (TokenType.NOT, TokenType.LIKE),
    "!~~*": (TokenType.NOT, TokenType.ILIKE),
}


def convert(statement: StatementTokens, cut: int) -> list[GlotToken]:
    """Our tokens as sqlglot's."""
    own: Sequence[Token] = statement.tokens
    result: list[GlotToken] = []
    append, make, words, var = result.append, GlotToken, _WORDS, TokenType.VAR
    index = 0
    while index < cut:
        token = own[index]
        index += 1
        if not index % interrupts.EVERY:
            interrupts.check()
        kind, text, start, end = token.kind, token.text, token.start, token.end - 1
        if kind is WORD and text == "pg_catalog" and _is_typed_text(own, index):
            word = own[index + 1]  # a type's name before a text: sqlglot knows it without a schema
            append(make(words.get(word.text, var), word.text, 1, word.start + 1, word.start, word.end - 1))
            index += 2
        elif kind is WORD and text == "using" and (sorting := _sorting(own, index)) is not None:
            direction, passed = sorting
            append(make(words[direction], direction, 1, start + 1, start, end))
            index += passed
        elif kind is WORD:
            pair = _PAIRS.get(text)
            if pair is not None and own[index].kind is WORD:
                merged = pair.get(own[index].text)
                if merged is not None:
                    append(make(merged, f"{text} {own[index].text}", 1, start + 1, start, own[index].end - 1))
                    index += 1
                    continue
            if (text == "group" and not (result and result[-1].text in ("within", "exclude"))) or text == "order":
                raise Cursor(statement).syntax_error(own[index])
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


def _is_typed_text(own: Sequence[Token], dot: int) -> bool:
    """Whether a dot, a name and a text follow."""
    kinds = [token.kind for token in own[dot : dot + 3]]
    return len(kinds) == 3 and own[dot].text == "." and kinds[1] in (WORD, IDENTIFIER) and kinds[2] is STRING


def _sorting(own: Sequence[Token], index: int) -> tuple[str, int] | None:
    """What stands for the operator in ``ORDER BY x USING >``, and how many tokens that is; None for other words."""
    at, width = index, 1
    if own[at].text == "operator" and at + 1 < len(own) and own[at + 1].text == "(":
        at += 2
        while at + 1 < len(own) and own[at + 1].text == ".":
            at += 2
        width = at - index + 2
    if own[at].kind is not OPERATOR or own[at].text == "(":
        return None
    word = {"<": "asc", ">": "desc"}.get(own[at].text)
    if word is None:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f"operator {own[at].text} is not a valid ordering operator",
            hint='Ordering operators must be "<" or ">" members of btree operator families.',
            position=own[at].position,
        )
    return word, width


def _no_operator(statement: StatementTokens, token: Token) -> SqlError:
    if token.text in _REFUSED_OPERATORS:
        return Cursor(statement).syntax_error(token)
    return SqlError(sqlstates.UNDEFINED_FUNCTION, f"operator does not exist: {token.text}", position=token.position)
