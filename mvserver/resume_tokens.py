"""Resume tokens: a place in the history of a view, as a text that clients keep.

A token names the incarnation of the history and the number of the last change that its holder has. A history that
begins anew, because the view was rebuilt or nobody watched it for long, has another incarnation.

Who may see some rows alone could count the others by such numbers. His tokens are sealed: the number is hidden, none is
accepted that was made up, and the same place has another text each time. ``spark_sinks.duckdb.history.sealing`` does
the same in SQL.
"""

from __future__ import annotations

import re
import secrets
import uuid
from dataclasses import dataclass
from hashlib import sha256

from mvserver import sqlstates
from mvserver.errors import SqlError

NONCE_DIGITS, NUMBER_DIGITS, CHECK_DIGITS = 8, 16, 12  # of a sealed number, one behind the other
_TEXT = re.compile(r"([0-9a-f]{16})-(?:([0-9a-f]{1,15})|([0-9a-f]{36})(?:-([0-9a-f]{12}))?)")


@dataclass(frozen=True)
class Token:
    """All changes up to number ``seq`` are known to its holder; 0 is before the first. ``mark`` says of which rows,
    where policies hide the others; it is empty for all."""

    incarnation: str
    seq: int
    mark: str = ""

    def __str__(self) -> str:
        """As those have it who see all rows."""
        return f"{self.incarnation}-{self.seq:x}"


@dataclass(frozen=True)
class Written:
    """A token's text. Either ``seq`` is known, or what is ``sealed``."""

    incarnation: str
    seq: int | None
    sealed: str | None
    mark: str

    @staticmethod
    def read(text: str) -> Written:
        """22023 for what is no token."""
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise invalid(text)
        return Written(found[1], None if found[2] is None else int(found[2], 16), found[3], found[4] or "")


def invalid(text: str) -> SqlError:
    return SqlError(
        sqlstates.INVALID_PARAMETER_VALUE,
        "invalid resume token",
        detail=f'"{text[:60]}" is none.',
        hint="Tokens come in the column mv_token of SUBSCRIBE and of a view's history.",
    )


class Seal:
    """Of all histories that are kept together. ``secret`` is theirs alone."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def text(self, token: Token) -> str:
        """Sealed, where the token is of some rows alone."""
        if not token.mark:
            return str(token)
        nonce = secrets.token_hex(NONCE_DIGITS // 2)
        number = f"{token.seq ^ self._stream(token.incarnation, nonce):0{NUMBER_DIGITS}x}"
        check = self._check(token.incarnation, nonce, number)
        return f"{token.incarnation}-{nonce}{number}{check}-{token.mark}"

    def read(self, text: str) -> Token:
        """22023 for what is no token."""
        found = Written.read(text)
        if found.seq is not None:
            return Token(found.incarnation, found.seq)
        sealed = found.sealed or ""
        nonce, number = sealed[:NONCE_DIGITS], sealed[NONCE_DIGITS:-CHECK_DIGITS]
        if not secrets.compare_digest(self._check(found.incarnation, nonce, number), sealed[-CHECK_DIGITS:]):
            raise invalid(text)
        return Token(found.incarnation, int(number, 16) ^ self._stream(found.incarnation, nonce), found.mark)

    def _stream(self, incarnation: str, nonce: str) -> int:
        return int(self._hash("s", incarnation + nonce)[:NUMBER_DIGITS], 16)

    def _check(self, incarnation: str, nonce: str, number: str) -> str:
        return self._hash("t", incarnation + nonce + number)[:CHECK_DIGITS]

    def _hash(self, use: str, of: str) -> str:
        """Secret, use and text are of fixed lengths."""
        return sha256(f"{self._secret}{use}{of}".encode()).hexdigest()


def is_token(text: str) -> bool:
    return _TEXT.fullmatch(text.strip()) is not None


def new_incarnation() -> str:
    return uuid.uuid4().hex[:16]
