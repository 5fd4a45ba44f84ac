"""Functions of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field

from mvserver.sql.statements.absent import ArgumentType
from mvserver.sql.statements.base import NO_PROPERTIES, Kind, ObjectName, Properties, Statement
from mvserver.sql.types import SqlType


@dataclass(frozen=True)
class FunctionName(ObjectName):
    """With the types of its arguments, or None where the name alone is said."""

    types: tuple[SqlType, ...] | None = None

    def __str__(self) -> str:
        name = ".".join(self.parts)
        return name if self.types is None else f"{name}({', '.join(map(str, self.types))})"


@dataclass(frozen=True)
class FunctionParameter:
    name: str
    type: SqlType
    position: int = field(default=0, compare=False)


@dataclass(frozen=True)
class CreateFunction(Statement, kind=Kind.DDL):
    """``body_start`` is where the body begins in what the client sent; None where it is quoted so that its characters
    cannot be counted from there."""

    name: ObjectName
    parameters: tuple[FunctionParameter, ...]
    result: SqlType
    body: str
    strict: bool = False
    or_replace: bool = False
    properties: Properties = NO_PROPERTIES
    language: str = "python"  # or java, whose body is empty: the properties say where it is
    body_start: int | None = field(default=None, compare=False)
    result_position: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class CreateAggregate(CreateFunction, kind=Kind.DDL):
    """Its body has a list of each argument's values."""


@dataclass(frozen=True)
class DropFunction(Statement, kind=Kind.DDL):
    """``arguments`` are the types of each one's arguments, or None where the name alone is said."""

    names: tuple[ObjectName, ...]
    arguments: tuple[tuple[ArgumentType, ...] | None, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class DropAggregate(DropFunction, kind=Kind.DDL):
    pass


@dataclass(frozen=True)
class ListFunctions(Statement, kind=Kind.INSPECTION):
    """``aggregates``: only these."""

    aggregates: bool = False


@dataclass(frozen=True)
class DescribeFunction(Statement, kind=Kind.INSPECTION):
    name: FunctionName
