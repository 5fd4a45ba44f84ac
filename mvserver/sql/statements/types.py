"""Enum types."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, ObjectName, Statement


@dataclass(frozen=True)
class CreateType(Statement, kind=Kind.DDL):
    """``CREATE TYPE name AS ENUM (labels)``."""

    name: ObjectName
    labels: tuple[str, ...]


@dataclass(frozen=True)
class AlterTypeAddValue(Statement, kind=Kind.DDL):
    """``before`` or ``after`` a label that is there; neither: at the end."""

    name: ObjectName
    label: str
    if_not_exists: bool = False
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True)
class AlterTypeRename(Statement, kind=Kind.DDL):
    """The type itself, or where ``label`` is given that label of it."""

    name: ObjectName
    to: str
    label: str | None = None


@dataclass(frozen=True)
class DropType(Statement, kind=Kind.DDL):
    names: tuple[ObjectName, ...]
    if_exists: bool = False
    cascade: bool = False
