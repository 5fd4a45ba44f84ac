"""A program as it is written, as frozen data with places. No name in it is resolved."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from mvserver.lenses.problems import Place


class RowKind(enum.Enum):
    STREAM = "STREAM"
    TABLE = "TABLE"


# --- expressions ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Literal:
    """``kind`` is "string", "number", "boolean" or "null"."""

    kind: str
    text: str
    place: Place


@dataclass(frozen=True)
class Selection:
    """``[source.][facet.]field[.field …]`` as it is written."""

    parts: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Call:
    """``star`` is COUNT(*). ``name`` is in upper case, ``spelled`` as it was written."""

    name: str
    arguments: tuple[Expression, ...]
    star: bool
    place: Place
    spelled: str = ""


@dataclass(frozen=True)
class CastTo:
    operand: Expression
    type: str
    place: Place


@dataclass(frozen=True)
class Chain:
    """Operands with one associative operator between them: AND or OR."""

    operator: str
    operands: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Expression
    right: Expression
    place: Place


@dataclass(frozen=True)
class Unary:
    """NOT or a minus."""

    operator: str
    operand: Expression
    place: Place


@dataclass(frozen=True)
class IsNull:
    operand: Expression
    negated: bool
    place: Place


@dataclass(frozen=True)
class InList:
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool
    place: Place


@dataclass(frozen=True)
class Case:
    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    place: Place


@dataclass(frozen=True)
class Span:
    """A length of time that is added to a moment: 1d. ``unit`` is a unit of the first dialect's intervals."""

    amount: int
    unit: str
    place: Place


Expression = Literal | Selection | Call | CastTo | Chain | Binary | Unary | IsNull | InList | Case | Span


# --- the parts of a SELECT ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Target:
    """``AS`` of a projection: a field of a facet, or of a field of it, or a whole facet, whose ``path`` is empty."""

    facet: str  # "_key" or "_value"
    path: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Projection:
    """``text`` is what is written, the name of a result that is given none."""

    expression: Expression
    target: Target | None
    text: str
    place: Place


@dataclass(frozen=True)
class Wildcard:
    """``*``, ``_key.*``, ``source.*``, ``source._value.*``."""

    prefix: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Duration:
    amount: int
    unit: str  # "MILLISECONDS", "SECONDS", …
    place: Place

    @property
    def millis(self) -> int:
        return self.amount * MILLIS[self.unit]


MILLIS = {"MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}


@dataclass(frozen=True)
class SourceName:
    """An item of FROM. ``event_time`` is that of EVENTTIME BY."""

    name: str
    alias: str | None
    event_time: Selection | None
    place: Place


@dataclass(frozen=True)
class Join:
    side: str  # "INNER", "LEFT", "RIGHT", "OUTER"
    source: SourceName
    on: Expression | None
    within: Duration | None
    place: Place


@dataclass(frozen=True)
class Lateral:
    array: Expression
    alias: str
    place: Place


@dataclass(frozen=True)
class Window:
    """``kind`` is "TUMBLE", "HOP" or "SESSION"; ``advance`` is that of HOP."""

    kind: str
    size: Duration
    advance: Duration | None
    grace: Duration | None
    place: Place


@dataclass(frozen=True)
class Select:
    kind: RowKind
    projections: tuple[Projection | Wildcard, ...]
    source: SourceName
    joins: tuple[Join, ...]
    laterals: tuple[Lateral, ...]
    where: Expression | None
    window: Window | None
    group_by: tuple[Projection, ...]  # without targets
    place: Place


# --- statements -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SetKey:
    key: str
    value: str
    place: Place


@dataclass(frozen=True)
class With:
    name: str
    select: Select
    place: Place


@dataclass(frozen=True)
class Insert:
    """``key_format`` and ``value_format`` are those of STORE, in upper case."""

    target: str
    key_format: str | None
    value_format: str | None
    select: Select
    place: Place


@dataclass(frozen=True)
class Program:
    text: str
    settings: tuple[SetKey, ...]
    withs: tuple[With, ...]
    inserts: tuple[Insert, ...]
    unread: tuple[str, ...] = ()  # names of WITHs that could not be read
