"""API tokens."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, Statement


@dataclass(frozen=True)
class CreateApiToken(Statement, kind=Kind.DDL):
    name: str
    valid_until: str | None = None


@dataclass(frozen=True)
class DropApiToken(Statement, kind=Kind.DDL):
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ListApiTokens(Statement, kind=Kind.INSPECTION):
    pass
