"""DROP ... IF EXISTS of objects that the server never has."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, ObjectName, Statement


@dataclass(frozen=True)
class ArgumentType:
    """Of a function: its name as PostgreSQL's parser has it, ``pg_catalog.int4`` for INTEGER."""

    name: ObjectName
    array: bool = False

    def __str__(self) -> str:
        return f"{self.name}[]" if self.array else str(self.name)


@dataclass(frozen=True)
class DropAbsent(Statement, kind=Kind.INSPECTION):
    """``what`` is the object's kind in lower case. Functions have ``arguments``, one tuple for each name; triggers,
    rules and policies the relation that they are ``on``."""

    what: str
    names: tuple[ObjectName, ...]
    arguments: tuple[tuple[ArgumentType, ...], ...] = ()
    on: ObjectName | None = None
