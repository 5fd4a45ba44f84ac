"""Databases and schemas, and which of them names are looked for in."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import ObjectName, Statement


@dataclass(frozen=True)
class CreateDatabase(Statement):
    name: str
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropDatabase(Statement):
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ListDatabases(Statement):
    pass


@dataclass(frozen=True)
class CreateSchema(Statement):
    name: ObjectName
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropSchema(Statement):
    name: ObjectName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ListSchemas(Statement):
    database: str | None = None


@dataclass(frozen=True)
class Use(Statement):
    """``USE DATABASE d``, ``USE SCHEMA [d.]s``, or ``USE d[.s]`` (kind None)."""

    kind: str | None  # "database", "schema", None
    name: ObjectName
