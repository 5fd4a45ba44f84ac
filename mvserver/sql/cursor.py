"""A place in a statement's tokens, and the errors that are said there.

All hand-written parsers of this package move one of these, so "syntax error at or near" names the same token and
position everywhere, as PostgreSQL would.
"""

from __future__ import annotations

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.lexer import END, IDENTIFIER, NUMBER, OPERATOR, STRING, WORD, Token
from mvserver.sql.split import StatementTokens


class Cursor:
    """``current`` is the token to be read next; at the end it stays the END token."""

    __slots__ = ("_index", "_tokens", "current", "source")

    def __init__(self, statement: StatementTokens, start: int = 0) -> None:
        self.source = statement.source
        self._tokens = statement.tokens
        self._index = start
        self.current: Token = statement.tokens[start]

    # --- looking ----------------------------------------------------------------------------------------------------
    @property
    def at_end(self) -> bool:
        return self.current.kind is END

    @property
    def previous(self) -> Token:
        return self._tokens[self._index - 1]

    def peek(self, ahead: int = 1) -> Token:
        index = self._index + ahead
        return self._tokens[index] if index < len(self._tokens) else self._tokens[-1]

    def at_word(self, *words: str) -> bool:
        """Whether the current token and those after it are these keywords."""
        for offset, word in enumerate(words):
            token = self.peek(offset) if offset else self.current
            if token.kind is not WORD or token.text != word:
                return False
        return True

    def at_any(self, words: frozenset[str] | set[str]) -> bool:
        return self.current.kind is WORD and self.current.text in words

    def at_operator(self, operator: str) -> bool:
        return self.current.kind is OPERATOR and self.current.text == operator

    def at_name(self) -> bool:
        return self.current.kind is WORD or self.current.kind is IDENTIFIER

    # --- moving -----------------------------------------------------------------------------------------------------
    def advance(self) -> Token:
        """Reads the current token."""
        token = self.current
        if token.kind is not END:
            self._index += 1
            self.current = self._tokens[self._index]
        return token

    @property
    def mark(self) -> int:
        return self._index

    def rest(self) -> StatementTokens:
        """What is not read yet, as a statement of its own (it ends where this one does)."""
        return StatementTokens(self.source, self._tokens[self._index :])

    def finish(self) -> None:
        """Everything has been read by another parser."""
        self.reset(len(self._tokens) - 1)

    def text_since(self, mark: int) -> str:
        """The text from a mark to the last token that was read."""
        return self.source[self._tokens[mark].start : self._tokens[self._index - 1].end]

    def reset(self, mark: int) -> None:
        self._index = mark
        self.current = self._tokens[mark]

    def accept_word(self, *words: str) -> bool:
        """Reads these keywords if all of them follow."""
        if not self.at_word(*words):
            return False
        for _ in words:
            self.advance()
        return True

    def accept_operator(self, operator: str) -> bool:
        if self.current.kind is OPERATOR and self.current.text == operator:
            self.advance()
            return True
        return False

    def expect_word(self, *words: str) -> None:
        for word in words:
            if not self.accept_word(word):
                raise self.syntax_error()

    def expect_any(self, *words: str) -> str:
        if self.current.kind is WORD and self.current.text in words:
            return self.advance().text
        raise self.syntax_error()

    def expect_operator(self, operator: str) -> Token:
        if self.current.kind is OPERATOR and self.current.text == operator:
            return self.advance()
        raise self.syntax_error()

    def expect_string(self) -> str:
        if self.current.kind is not STRING:
            raise self.syntax_error()
        return self.advance().text

    def expect_integer(self) -> int:
        token = self.current
        if token.kind is not NUMBER or not token.text.isdigit():
            raise self.syntax_error()
        if len(token.text) > 18:
            raise SqlError(
                sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
                f'value "{token.text[: limits.ERROR_EXCERPT_CHARACTERS_MAX]}" is out of range for type bigint',
                position=token.position,
            )
        self.advance()
        return int(token.text)

    def expect_end(self) -> None:
        if self.current.kind is not END:
            raise self.syntax_error()

    # --- saying what is wrong ---------------------------------------------------------------------------------------
    def raw(self, token: Token) -> str:
        """The token as it stands in the text."""
        text = self.source[token.start : token.end]
        if len(text) > limits.ERROR_EXCERPT_CHARACTERS_MAX:
            text = text[: limits.ERROR_EXCERPT_CHARACTERS_MAX]
        return text

    def syntax_error(
        self, token: Token | None = None, *, hint: str | None = None, detail: str | None = None
    ) -> SqlError:
        token = token or self.current
        raw = self.raw(token)
        message = f'syntax error at or near "{raw}"' if raw else "syntax error at end of input"
        return SqlError(sqlstates.SYNTAX_ERROR, message, hint=hint, detail=detail, position=token.position)

    def not_supported(self, what: str, *, hint: str | None = None, token: Token | None = None) -> SqlError:
        token = token or self.current
        return SqlError(sqlstates.FEATURE_NOT_SUPPORTED, what, hint=hint, position=token.position)
