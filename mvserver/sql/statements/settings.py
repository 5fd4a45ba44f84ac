"""Settings of the session, and statements that it prepares."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from mvserver.sql.statements.base import Statement


@dataclass(frozen=True)
class Set(Statement):
    name: str
    value: str | None  # None: TO DEFAULT
    local: bool = False


@dataclass(frozen=True)
class SetTransaction(Statement):
    """``SET TRANSACTION ...`` or, with ``session``, ``SET SESSION CHARACTERISTICS AS TRANSACTION ...``."""

    isolation: str | None = None  # "read committed", "repeatable read", ...
    read_only: bool | None = None
    session: bool = False


@dataclass(frozen=True)
class Show(Statement):
    name: str  # "all" for SHOW ALL


@dataclass(frozen=True)
class Reset(Statement):
    name: str  # "all" for RESET ALL


@dataclass(frozen=True)
class Discard(Statement):
    what: str  # "all", "plans", "temp", "sequences"


@dataclass(frozen=True)
class Unlisten(Statement):
    """Of a channel or of all: there is no LISTEN, so nothing is listened to. Pools send it with what they reset."""


@dataclass(frozen=True)
class Prepare(Statement):
    name: str
    types: tuple[str, ...]
    statement_text: str
    statement_start: int = field(default=0, compare=False)  # in what the client sent


@dataclass(frozen=True)
class ExecutePrepared(Statement):
    name: str
    arguments: tuple[exp.Expression, ...] = ()


@dataclass(frozen=True)
class Deallocate(Statement):
    name: str | None  # None for ALL
