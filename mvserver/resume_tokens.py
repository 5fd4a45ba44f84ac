"""Resume tokens: a place in the history of a view, as a text that clients keep.

A token names the incarnation of the history and the number of the last change that its holder has. A history that
begins anew, because the view was rebuilt or nobody watched it for long, has another incarnation.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError

_TEXT = re.compile(r"([0-9a-f]{16})-([0-9a-f]{1,15})(?:-([0-9a-f]{12}))?")


@dataclass(frozen=True)
class Token:
    """All changes up to number ``seq`` are known to its holder; 0 is before the first. ``mark`` says of which rows,
    where policies hide the others; it is empty for all."""

    incarnation: str
    seq: int
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.incarnation}-{self.seq:x}" + (f"-{self.mark}" if self.mark else "")

    @staticmethod
    def read(text: str) -> Token:
        """22023 for what is no token."""
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                "invalid resume token",
                detail=f'"{text[:60]}" is none.',
                hint="Tokens come in the column mv_token of SUBSCRIBE and of a view's history.",
            )
        return Token(found[1], int(found[2], 16), found[3] or "")


def is_token(text: str) -> bool:
    return _TEXT.fullmatch(text.strip()) is not None


def new_incarnation() -> str:
    return uuid.uuid4().hex[:16]
