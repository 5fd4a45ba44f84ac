"""Descriptor sources: schemas of records from files."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, Properties, Statement


@dataclass(frozen=True)
class CreateDescriptorSource(Statement, kind=Kind.DDL):
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropDescriptorSource(Statement, kind=Kind.DDL):
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ListDescriptorSources(Statement, kind=Kind.INSPECTION):
    pass


@dataclass(frozen=True)
class ListDescriptors(Statement, kind=Kind.INSPECTION):
    pass
