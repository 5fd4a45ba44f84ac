"""Databases and schemas, and which of them names are looked for in."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, ObjectName, Statement


@dataclass(frozen=True)
class CreateDatabase(Statement, kind=Kind.DDL):
    name: str
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropDatabase(Statement, kind=Kind.DDL):
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ListDatabases(Statement, kind=Kind.INSPECTION):
    pass


@dataclass(frozen=True)
class CreateSchema(Statement, kind=Kind.DDL):
    name: ObjectName
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropSchema(Statement, kind=Kind.DDL):
    name: ObjectName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ListSchemas(Statement, kind=Kind.INSPECTION):
    database: str | None = None


@dataclass(frozen=True)
class Use(Statement, kind=Kind.PLACE):
    """``USE DATABASE d``, ``USE SCHEMA [d.]s``, or ``USE d[.s]`` (kind None)."""

    kind: str | None  # "database", "schema", None
    name: ObjectName
