"""Which rows of a view a reader may see, where that is not all: row policies as a condition of DuckDB's.

And what errors may say to such a reader.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

from mvserver import sqlstates
from mvserver.errors import SqlError

_MARK_DIGITS = 12
_VALUE = re.compile(r":?\s*(?:\"[^\"]*\"|'[^']*').*", re.S)
_TELLING_DETAILS = frozenset({sqlstates.SNAPSHOT_TOO_OLD, sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE})
"""Of errors whose detail has a token, which has a number, or why a view's query failed, which may be a value."""


@dataclass(frozen=True)
class VisibleRows:
    """``condition`` names the view's columns, also as columns of ``name``. Claims and roles are constants in it.
    ``settings`` are statements by which a cursor understands it."""

    name: str
    condition: str
    settings: tuple[str, ...] = ()

    @cached_property
    def mark(self) -> str:
        """Of the condition. Who comes back with another one has not seen what is visible now."""
        return hashlib.sha256(self.condition.encode()).hexdigest()[:_MARK_DIGITS]


def told(error: SqlError, *, secured: bool) -> SqlError:
    """Without what it tells of rows that policies may hide. ``secured``: they hide some from who asks."""
    if secured and error.sqlstate.startswith("22"):
        return SqlError(error.sqlstate, _VALUE.sub("", error.message))
    if secured and error.sqlstate in _TELLING_DETAILS:
        return SqlError(error.sqlstate, error.message, hint=error.hint)
    return error
