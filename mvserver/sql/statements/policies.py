"""Row policies."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, ObjectName, RoleSpec, Statement


@dataclass(frozen=True)
class CreatePolicy(Statement, kind=Kind.DDL):
    """``condition`` is the text in the brackets of USING; ``command`` is ALL or SELECT."""

    name: str
    on: ObjectName
    condition: str
    to: tuple[RoleSpec, ...]
    restrictive: bool = False
    command: str = "ALL"


@dataclass(frozen=True)
class AlterPolicy(Statement, kind=Kind.DDL):
    """None leaves a part as it is."""

    name: str
    on: ObjectName
    new_name: str | None = None
    to: tuple[RoleSpec, ...] | None = None
    condition: str | None = None


@dataclass(frozen=True)
class DropPolicy(Statement, kind=Kind.DDL):
    name: str
    on: ObjectName
    if_exists: bool = False


@dataclass(frozen=True)
class SetRowSecurity(Statement, kind=Kind.DDL):
    """None leaves a part as it is."""

    name: ObjectName
    relation_kind: str | None
    enabled: bool | None = None
    forced: bool | None = None
