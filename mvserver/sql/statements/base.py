"""The parts that statements are made of.

Names keep what the user wrote after folding; nothing is resolved here. ``Properties`` keep the order of the text.
SELECTs stay sqlglot trees (dialect ``mvserver.sql.dialect``); source properties hang on the table node's
``meta["properties"]`` as a ``Properties`` value.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mvserver.sql.types import SqlType

Value = str | int | float | bool | None
"""A property's value: text (also bare keywords and quoted identifiers), number, TRUE/FALSE, None when valueless."""


@dataclass(frozen=True)
class Property:
    key: str  # lower-cased
    value: Value
    position: int  # 1-based offset of the key in the statement


@dataclass(frozen=True)
class Properties(Mapping[str, Value]):
    """``WITH ('key' = value, ...)``. A repeated key is refused by the parser (42601)."""

    items_: tuple[Property, ...] = ()

    def __getitem__(self, key: str) -> Value:
        for item in self.items_:
            if item.key == key:
                return item.value
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return (item.key for item in self.items_)

    def __len__(self) -> int:
        return len(self.items_)

    def position(self, key: str) -> int | None:
        return next((item.position for item in self.items_ if item.key == key), None)


NO_PROPERTIES = Properties()


@dataclass(frozen=True)
class ObjectName:
    """``a``, ``schema.a`` or ``database.schema.a``, folded; ``position`` is 1-based."""

    parts: tuple[str, ...]
    position: int | None = None

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class RoleSpec:
    """A role as a statement names it: by ``name``, or as "public", "current" or "session"."""

    name: str = ""
    special: str | None = None
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ColumnDefinition:
    """``spelling`` is the name as the statement has it, where that is not the name: one without quotes is folded."""

    name: str
    type: SqlType
    not_null: bool = False
    spelling: str | None = None


class Kind(enum.Enum):
    """The kind of a statement decides who carries it out, and what it means to a transaction."""

    DDL = "ddl"  # changes definitions, stores or entities
    CONTINUOUS = "continuous"  # begins, ends or steers a continuous query
    INSPECTION = "inspection"  # answers from definitions, states and stores; changes nothing
    PLACE = "place"  # changes where the session's names resolve
    SESSION = "session"  # the session room's own: settings, transactions, prepared statements, cursors, COPY
    PULL = "pull"  # reads views; the session room runs it in the serving room
    PUSH = "push"  # rows of a stream as they come; the session room finds out that a SELECT is one


@dataclass(frozen=True)
class Statement:
    """Base of all; ``text`` is the statement's own text, trimmed, without its semicolon; ``start`` is where that begins
    in what the client sent, from whose beginning all positions are counted. Each class states its kind:
    ``class CreateStore(Statement, kind=Kind.DDL)``."""

    kind_of_statement: ClassVar[Kind]

    def __init_subclass__(cls, *, kind: Kind, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.kind_of_statement = kind

    text: str = field(kw_only=True, default="")
    start: int = field(kw_only=True, default=0, compare=False, repr=False)
