"""Schema registries."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, Properties, Statement


@dataclass(frozen=True)
class CreateSchemaRegistry(Statement, kind=Kind.DDL):
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True)
class UpdateSchemaRegistry(Statement, kind=Kind.DDL):
    name: str
    properties: Properties


@dataclass(frozen=True)
class DropSchemaRegistry(Statement, kind=Kind.DDL):
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DescribeSchemaRegistry(Statement, kind=Kind.INSPECTION):
    name: str


@dataclass(frozen=True)
class ListSchemaRegistries(Statement, kind=Kind.INSPECTION):
    pass
