"""Walks over the tokens of one statement; names with dashes and dots are put together here."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver.lenses.lexer import Token, TokenKind
from mvserver.lenses.problems import ProblemError, syntax

_ENDS = (TokenKind.SEMICOLON, TokenKind.END)


class Cursor:
    """``tokens`` ends with a SEMICOLON or an END, which is never passed."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self._tokens = tokens
        self._at = 0

    @property
    def current(self) -> Token:
        return self._tokens[self._at]

    @property
    def last_end(self) -> int:
        """Where the token before the current one ends."""
        return self._tokens[self._at - 1].end if self._at else 0

    def peek(self, ahead: int = 1) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def all_tokens(self) -> Sequence[Token]:
        return self._tokens

    def advance(self) -> Token:
        token = self.current
        if self._at < len(self._tokens) - 1:
            self._at += 1
        return token

    def at_end(self) -> bool:
        return self.current.kind in _ENDS and self._at == len(self._tokens) - 1

    def at_word(self, *words: str) -> bool:
        """Whether these words come next."""
        return all(self.peek(i).word == word for i, word in enumerate(words))

    def at_operator(self, text: str) -> bool:
        return self.current.kind is TokenKind.OPERATOR and self.current.text == text

    def accept_word(self, *words: str) -> bool:
        if not self.at_word(*words):
            return False
        for _ in words:
            self.advance()
        return True

    def accept_operator(self, text: str) -> bool:
        if not self.at_operator(text):
            return False
        self.advance()
        return True

    def expect_word(self, *words: str) -> None:
        for word in words:
            if not self.accept_word(word):
                raise self.unexpected(f"{word.upper()} is expected")

    def expect_operator(self, text: str) -> None:
        if not self.accept_operator(text):
            raise self.unexpected(f'"{text}" is expected')

    def unexpected(self, hint: str | None = None) -> ProblemError:
        token = self.current
        found = "the end of the statement" if token.kind in _ENDS else f'"{self.text[token.place.offset : token.end]}"'
        return syntax(token.place, f"syntax error at {found}", None if hint is None else hint + ".")

    # --- names ------------------------------------------------------------------------------------------------------
    def topic(self, what: str) -> str:
        """The name of a topic or of a WITH: words, numbers, dashes and dots without space, or one in back-quotes."""
        first = self.current
        if first.kind is TokenKind.NAME and first.text:
            self.advance()
            return first.text
        if first.kind is not TokenKind.WORD:
            raise self.unexpected(f"The name of {what} is expected")
        return "".join(token.text for token in self.joined())

    def joined(self) -> Sequence[Token]:
        """The word here and what is joined to it by dashes and dots, which are passed."""
        run = [self.advance()]
        while True:
            mark, after = self.current, self.peek()
            joins = mark.kind is TokenKind.OPERATOR and mark.text in ("-", ".") and run[-1].touches(mark)
            if not joins or not mark.touches(after) or after.kind not in _IN_NAMES:
                return run
            run += [self.advance(), self.advance()]
            while run[-1].touches(self.current) and self.current.kind in _IN_NAMES:  # 2024q1 is two tokens
                run.append(self.advance())


_IN_NAMES = (TokenKind.WORD, TokenKind.NUMBER, TokenKind.DURATION)
