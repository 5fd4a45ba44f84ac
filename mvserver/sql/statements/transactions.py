"""Transactions and applications."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import NO_PROPERTIES, Kind, Properties, Statement


@dataclass(frozen=True)
class Begin(Statement, kind=Kind.SESSION):
    isolation: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True)
class BeginApplication(Statement, kind=Kind.SESSION):
    name: str


@dataclass(frozen=True)
class EndApplication(Statement, kind=Kind.SESSION):
    properties: Properties = NO_PROPERTIES


@dataclass(frozen=True)
class Commit(Statement, kind=Kind.SESSION):
    chain: bool = False


@dataclass(frozen=True)
class Rollback(Statement, kind=Kind.SESSION):
    chain: bool = False


@dataclass(frozen=True)
class Savepoint(Statement, kind=Kind.SESSION):
    name: str


@dataclass(frozen=True)
class ReleaseSavepoint(Statement, kind=Kind.SESSION):
    name: str


@dataclass(frozen=True)
class RollbackToSavepoint(Statement, kind=Kind.SESSION):
    name: str
