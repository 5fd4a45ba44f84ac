"""Settings of the session, and statements that it prepares."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from mvserver.sql.statements.base import Kind, Statement


@dataclass(frozen=True)
class Set(Statement, kind=Kind.SESSION):
    name: str
    value: str | None  # None: TO DEFAULT
    local: bool = False


@dataclass(frozen=True)
class SetTransaction(Statement, kind=Kind.SESSION):
    """``SET TRANSACTION ...`` or, with ``session``, ``SET SESSION CHARACTERISTICS AS TRANSACTION ...``."""

    isolation: str | None = None  # "read committed", "repeatable read", ...
    read_only: bool | None = None
    session: bool = False


@dataclass(frozen=True)
class Show(Statement, kind=Kind.SESSION):
    name: str  # "all" for SHOW ALL


@dataclass(frozen=True)
class Reset(Statement, kind=Kind.SESSION):
    name: str  # "all" for RESET ALL


@dataclass(frozen=True)
class Discard(Statement, kind=Kind.SESSION):
    what: str  # "all", "plans", "temp", "sequences"


@dataclass(frozen=True)
class Unlisten(Statement, kind=Kind.SESSION):
    """Of a channel or of all: there is no LISTEN, so nothing is listened to. Pools send it with what they reset."""


@dataclass(frozen=True)
class Prepare(Statement, kind=Kind.SESSION):
    name: str
    types: tuple[str, ...]
    statement_text: str
    statement_start: int = field(default=0, compare=False)  # in what the client sent


@dataclass(frozen=True)
class ExecutePrepared(Statement, kind=Kind.SESSION):
    name: str
    arguments: tuple[exp.Expression, ...] = ()


@dataclass(frozen=True)
class Deallocate(Statement, kind=Kind.SESSION):
    name: str | None  # None for ALL
