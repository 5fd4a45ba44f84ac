"""Function sources: jars."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, Properties, Statement


@dataclass(frozen=True)
class CreateFunctionSource(Statement, kind=Kind.DDL):
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropFunctionSource(Statement, kind=Kind.DDL):
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ListFunctionSources(Statement, kind=Kind.INSPECTION):
    pass
