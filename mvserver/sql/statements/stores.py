"""Stores and entities."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import NO_PROPERTIES, Properties, Statement


@dataclass(frozen=True)
class CreateStore(Statement):
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True)
class UpdateStore(Statement):
    name: str
    properties: Properties


@dataclass(frozen=True)
class DropStore(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DescribeStore(Statement):
    name: str


@dataclass(frozen=True)
class ListStores(Statement):
    pass


@dataclass(frozen=True)
class UseStore(Statement):
    name: str


@dataclass(frozen=True)
class ListEntities(Statement):
    store: str | None = None


@dataclass(frozen=True)
class DescribeEntity(Statement):
    name: str
    store: str | None = None


@dataclass(frozen=True)
class CreateEntity(Statement):
    name: str
    store: str | None = None
    properties: Properties = NO_PROPERTIES


@dataclass(frozen=True)
class DropEntity(Statement):
    name: str
    store: str | None = None
    if_exists: bool = False
    properties: Properties = NO_PROPERTIES


@dataclass(frozen=True)
class PrintEntity(Statement):
    name: str
    store: str | None = None
    properties: Properties = NO_PROPERTIES
    limit: int | None = None


@dataclass(frozen=True)
class InsertIntoEntity(Statement):
    """``INSERT INTO ENTITY e [IN STORE s] VALUE ('<text>' | NULL[, '<key>']) [WITH (...)]``."""

    name: str
    store: str | None
    value: str | None
    key: str | None = None
    properties: Properties = NO_PROPERTIES
