"""Which rows of a view a reader may see, where that is not all: row policies as a condition of DuckDB's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

_MARK_DIGITS = 12


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
