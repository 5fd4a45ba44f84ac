"""Long lists of literals as one node of the tree each: 100,000 numbers behind IN or in an ARRAY, thousands of rows of
VALUES.

A node per literal costs far more than the literal: each pass over the tree holds up the threads of everyone else. What
is so long is data, and nothing that is asked of the tree depends on it; its text goes to the engine as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token as GlotToken
from sqlglot.tokenizer_core import TokenType

from mvserver import interrupts, limits
from mvserver.quoting import constant

_LITERALS = frozenset({TokenType.NUMBER, TokenType.STRING})

Literal = tuple[GlotToken, bool]  # and whether a minus stands before it


def bracketed(
    tokens: Sequence[GlotToken],
    index: int,
    size: int,
    brackets: tuple[TokenType, TokenType] = (TokenType.L_PAREN, TokenType.R_PAREN),
) -> tuple[list[Literal], int] | None:
    """The literals of ``(1, -2, 3)`` from ``index`` on, and where it goes on behind; None for anything else there."""
    opening, closing = brackets
    if index >= size or tokens[index].token_type != opening:
        return None
    found: list[Literal] = []
    index += 1
    while index + 1 < size:
        if not len(found) % interrupts.EVERY:
            interrupts.check()
        token = tokens[index]
        negative = token.token_type == TokenType.DASH and tokens[index + 1].token_type == TokenType.NUMBER
        if negative:
            index += 1
            token = tokens[index]
            if index + 1 >= size:
                return None
        elif token.token_type not in _LITERALS:
            return None
        found.append((token, negative))
        following = tokens[index + 1].token_type
        index += 2
        if following == closing:
            return found, index
        if following != TokenType.COMMA:
            return None
    return None


def items(found: Sequence[Literal]) -> list[exp.Expr]:
    """For the tree: a node each, or one for all of them."""
    if len(found) > limits.LITERALS_APART_MAX:
        return [exp.Var(this=", ".join(map(_text, found)))]
    return [_node(token, negative) for token, negative in found]


def rows(tokens: Sequence[GlotToken], index: int, size: int, width: int) -> tuple[exp.Var, int] | None:
    """Rows of ``width`` literals each, with a comma before each, as one node, and where it goes on behind them."""
    texts: list[str] = []
    while index < size and tokens[index].token_type == TokenType.COMMA:
        row = bracketed(tokens, index + 1, size)
        if row is None or len(row[0]) != width:
            break
        texts.append(f"({', '.join(map(_text, row[0]))})")
        index = row[1]
    return (exp.Var(this=", ".join(texts)), index) if texts else None


def _node(token: GlotToken, negative: bool) -> exp.Expr:
    literal = exp.Literal(this=token.text, is_string=token.token_type == TokenType.STRING)
    return exp.Neg(this=literal) if negative else literal


def _text(literal: Literal) -> str:
    token, negative = literal
    if token.token_type == TokenType.NUMBER:
        return f"-{token.text}" if negative else str(token.text)
    return constant(str(token.text))
