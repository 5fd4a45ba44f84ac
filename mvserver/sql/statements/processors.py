"""Programs of the dialect lenses, and the processors that run them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mvserver.sql.statements.base import Kind, ObjectName, Statement


@dataclass(frozen=True)
class Lenses(Statement, kind=Kind.CONTINUOUS):
    """A program that runs at once, as a processor of a made name. ``program_start`` is where it begins in what the
    client sent."""

    program: str
    program_start: int = field(default=0, compare=False)


@dataclass(frozen=True)
class CreateProcessor(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName
    program: str
    program_start: int = field(default=0, compare=False)


@dataclass(frozen=True)
class StartProcessor(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName


@dataclass(frozen=True)
class StopProcessor(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName


@dataclass(frozen=True)
class ScaleProcessor(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName
    runners: int
    runners_position: int = field(default=0, compare=False)


@dataclass(frozen=True)
class DropProcessor(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName
    if_exists: bool = False


@dataclass(frozen=True)
class ListProcessors(Statement, kind=Kind.INSPECTION):
    pass


@dataclass(frozen=True)
class DescribeProcessor(Statement, kind=Kind.INSPECTION):
    name: ObjectName
