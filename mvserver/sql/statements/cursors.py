"""Cursors."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, Statement
from mvserver.sql.statements.queries import Pull, Subscribe


@dataclass(frozen=True)
class DeclareCursor(Statement, kind=Kind.SESSION):
    name: str
    query: Pull | Subscribe
    scroll: bool = False
    hold: bool = False
    binary: bool = False


@dataclass(frozen=True)
class Fetch(Statement, kind=Kind.SESSION):
    """FETCH, or MOVE; ``count`` is a row's number where ``direction`` is "absolute", and None for ALL."""

    name: str
    direction: str = "forward"  # "forward", "backward", "absolute", "relative"
    count: int | None = 1
    move: bool = False


@dataclass(frozen=True)
class CloseCursor(Statement, kind=Kind.SESSION):
    name: str | None  # None for ALL
