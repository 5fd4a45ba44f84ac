"""Several statements in one text: where each begins and ends.

The lexer has already decided what is inside a literal, a quoted name or a comment, so a statement ends exactly at a
semicolon token. Offsets stay those of the whole text: an error in the third statement points into what the client sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mvserver import interrupts, limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.lexer import END, WORD, Token

_HEAD_TOKENS = 3  # BEGIN APPLICATION name


@dataclass(frozen=True)
class StatementTokens:
    """One statement: its tokens with the END token that closes it, and the whole text they point into."""

    source: str
    tokens: Sequence[Token]

    @property
    def text(self) -> str:
        """The statement's own text: without surrounding space, comments before and after it, and the semicolon."""
        return self.source[self.tokens[0].start : self.tokens[-2].end]


def split(source: str, tokens: Sequence[Token]) -> list[StatementTokens]:
    """The statements of a text, in order; empty ones (``;;``, only comments) are left out."""
    statements: list[StatementTokens] = []
    begin = 0
    for index, token in enumerate(tokens):
        if not index % interrupts.EVERY:
            interrupts.check()
        if token.kind is END:
            head = _application_head(tokens, begin, index)
            if head is not None:
                statements.append(StatementTokens(source, head))
                begin += len(head) - 1
            if index > begin:
                statements.append(StatementTokens(source, tokens[begin : index + 1]))
                if len(statements) > limits.STATEMENTS_PER_TEXT_MAX:
                    raise SqlError(
                        sqlstates.PROGRAM_LIMIT_EXCEEDED,
                        "too many statements in one text",
                        detail=f"The limit is {limits.STATEMENTS_PER_TEXT_MAX}.",
                        position=token.position,
                    )
            begin = index + 1
    return statements


def _application_head(tokens: Sequence[Token], begin: int, end: int) -> list[Token] | None:
    """BEGIN APPLICATION name, where its first statement follows without a semicolon."""
    first = [token.text for token in tokens[begin : begin + 2] if token.kind is WORD]
    if first != ["begin", "application"] or end - begin <= _HEAD_TOKENS:
        return None
    head = list(tokens[begin : begin + _HEAD_TOKENS])
    return [*head, Token(END, "", head[-1].end, head[-1].end)]
