"""Worked examples of functions. Both tables of functions have them: of continuous queries and of pull queries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """``sql`` stands for itself (no columns); ``expected`` is the text that PostgreSQL prints for it cast to text, or
    None for NULL; ``error`` is the SQLSTATE where it fails; ``postgres`` is False where PostgreSQL has no such thing.
    """

    sql: str
    expected: str | None = None
    error: str | None = None
    postgres: bool = True
