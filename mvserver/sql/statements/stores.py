"""Stores and entities."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import NO_PROPERTIES, ColumnDefinition, Kind, Properties, Statement


@dataclass(frozen=True)
class CreateStore(Statement, kind=Kind.DDL):
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True)
class UpdateStore(Statement, kind=Kind.DDL):
    name: str
    properties: Properties


@dataclass(frozen=True)
class DropStore(Statement, kind=Kind.DDL):
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DescribeStore(Statement, kind=Kind.INSPECTION):
    name: str


@dataclass(frozen=True)
class ListStores(Statement, kind=Kind.INSPECTION):
    pass


@dataclass(frozen=True)
class UseStore(Statement, kind=Kind.PLACE):
    name: str


@dataclass(frozen=True)
class ListEntities(Statement, kind=Kind.INSPECTION):
    """``path`` is what the names of the entities begin with, up to a dot or a slash."""

    store: str | None = None
    path: str | None = None


@dataclass(frozen=True)
class DescribeEntity(Statement, kind=Kind.INSPECTION):
    name: str
    store: str | None = None


@dataclass(frozen=True)
class CreateEntity(Statement, kind=Kind.DDL):
    """``columns`` are of a table."""

    name: str
    store: str | None = None
    properties: Properties = NO_PROPERTIES
    columns: tuple[ColumnDefinition, ...] = ()
    primary_key: tuple[str, ...] = ()


@dataclass(frozen=True)
class DropEntity(Statement, kind=Kind.DDL):
    name: str
    store: str | None = None
    if_exists: bool = False
    properties: Properties = NO_PROPERTIES


@dataclass(frozen=True)
class PrintEntity(Statement, kind=Kind.INSPECTION):
    name: str
    store: str | None = None
    properties: Properties = NO_PROPERTIES
    limit: int | None = None


@dataclass(frozen=True)
class InsertIntoEntity(Statement, kind=Kind.DDL):
    """``INSERT INTO ENTITY e [IN STORE s] VALUE ('<text>' | NULL[, '<key>']) [WITH (...)]``."""

    name: str
    store: str | None
    value: str | None
    key: str | None = None
    properties: Properties = NO_PROPERTIES
