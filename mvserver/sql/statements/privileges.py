"""Privileges, and whose things are."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, ObjectName, RoleSpec, Statement


@dataclass(frozen=True)
class GrantTarget:
    """``kind`` is "relation", "schema", "database", "store" or "organization"; ``relation_kind`` is what the statement
    says that each relation is, None where it leaves that open. With ``all_in_schema`` the names are of schemas."""

    kind: str
    names: tuple[ObjectName, ...] = ()
    relation_kind: str | None = None
    all_in_schema: bool = False


@dataclass(frozen=True)
class Grant(Statement, kind=Kind.DDL):
    """``privileges`` are lower-case words as written; None for ALL."""

    privileges: tuple[str, ...] | None
    on: GrantTarget
    to: tuple[RoleSpec, ...]
    grant_option: bool = False
    granted_by: RoleSpec | None = None


@dataclass(frozen=True)
class Revoke(Statement, kind=Kind.DDL):
    privileges: tuple[str, ...] | None
    on: GrantTarget
    of: tuple[RoleSpec, ...]
    option_only: bool = False
    granted_by: RoleSpec | None = None
    cascade: bool = False


@dataclass(frozen=True)
class AlterDefaultPrivileges(Statement, kind=Kind.DDL):
    """``change`` is of all objects of its kind that the ``roles`` (none: who asks) will make, in all schemas or in
    these."""

    change: Grant | Revoke
    roles: tuple[RoleSpec, ...] = ()
    schemas: tuple[ObjectName, ...] = ()


@dataclass(frozen=True)
class AlterOwner(Statement, kind=Kind.DDL):
    """``kind`` as in GrantTarget, or "query"."""

    kind: str
    name: ObjectName
    owner: RoleSpec
    relation_kind: str | None = None


@dataclass(frozen=True)
class ReassignOwned(Statement, kind=Kind.DDL):
    of: tuple[RoleSpec, ...]
    to: RoleSpec


@dataclass(frozen=True)
class DropOwned(Statement, kind=Kind.DDL):
    of: tuple[RoleSpec, ...]
    cascade: bool = False
