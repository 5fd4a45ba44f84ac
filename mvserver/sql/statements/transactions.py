"""Transactions and applications."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import NO_PROPERTIES, Properties, Statement


@dataclass(frozen=True)
class Begin(Statement):
    isolation: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True)
class BeginApplication(Statement):
    name: str


@dataclass(frozen=True)
class EndApplication(Statement):
    properties: Properties = NO_PROPERTIES


@dataclass(frozen=True)
class Commit(Statement):
    chain: bool = False


@dataclass(frozen=True)
class Rollback(Statement):
    chain: bool = False


@dataclass(frozen=True)
class Savepoint(Statement):
    name: str


@dataclass(frozen=True)
class ReleaseSavepoint(Statement):
    name: str


@dataclass(frozen=True)
class RollbackToSavepoint(Statement):
    name: str
