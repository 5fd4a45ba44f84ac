"""The shape of the capability table: functions, their overloads, how they lower, and worked examples.

An entry says what a function means; the lowering says how an engine is made to do that. Nothing passes through by
name: an engine's function is used only where a lowering writes it down.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mvserver.compiler.expressions import Expression, Literal
from mvserver.compiler.lengths import UNKNOWN, Length
from mvserver.compiler.type_names import postgres_name
from mvserver.sql.types import Kind, SqlType
from mvserver.sql.worked_examples import Example


@dataclass(frozen=True)
class Lowered:
    """An argument as engine text, with what a lowering may want to know of it."""

    text: str
    type: SqlType
    literal: Literal | None = None
    length: Length = UNKNOWN

    def __str__(self) -> str:
        return self.text

    def constant(self) -> str | int | float | bool | object | None:
        return self.literal.value if self.literal is not None else None


def as_expression(argument: Lowered) -> Expression:
    """What tells whether it is a constant, and which."""
    return argument.literal or Expression(argument.type)


Lowering = str | Callable[[Sequence[Lowered], SqlType], str]
"""A template with {0}, {1} ... (and {type} for the result's engine type), or a function of arguments and result."""

ResultRule = SqlType | Callable[[Sequence[Expression]], SqlType]


@dataclass(frozen=True)
class Parameter:
    """What one argument may be.

    ``kind`` is a concrete type (any precision, scale or length). With ``variable`` the argument takes part in finding a
    common type; ``container`` then says whether the argument is the type itself, an ARRAY of it or a MAP's. ``as_text``
    takes any scalar and casts it to text. ``constant`` asks for a literal. The variable "EACH" takes whatever comes.
    ``compared``: a real beside another number is compared as double precision.
    """

    kind: Kind | None = None
    variable: str = ""
    container: str = ""  # "", "array", "map"
    as_text: bool = False
    constant: bool = False
    allowed: frozenset[Kind] | None = None
    compared: bool = False

    def __str__(self) -> str:
        if self.as_text:
            return "any"
        if self.variable:
            name = "any" if self.variable == "EACH" else f"any{self.variable.lower()}"
            return {"": name, "array": f"{name}[]", "map": "map"}[self.container]
        return postgres_name(SqlType(self.kind)) if self.kind else "any"


@dataclass(frozen=True)
class Overload:
    """One way to call a function; ``id`` is what a Call node names."""

    id: str
    parameters: tuple[Parameter, ...]
    result: ResultRule
    spark: Lowering
    duckdb: Lowering | None = None
    variadic: bool = False  # the last parameter repeats, once or more


class Nulls(enum.Enum):
    STRICT = "NULL when any argument is NULL"
    SKIPS = "NULL arguments are left out"
    SPECIAL = "as the meaning says"


@dataclass(frozen=True)
class Capability:
    """A function or operator: one entry of the table."""

    name: str  # what users write, lower case; operators by their sign
    meaning: str  # one line
    overloads: tuple[Overload, ...]
    examples: tuple[Example, ...]
    family: str = ""
    aliases: tuple[str, ...] = ()
    operator: bool = False
    nulls: Nulls = Nulls.STRICT
    note: str = ""  # where it differs from PostgreSQL, and why
    internal: bool = False  # made by the compiler, not by name
    names: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", (self.name, *self.aliases))


def overload_id(name: str, parameters: Sequence[Parameter], variadic: bool = False) -> str:
    inside = ", ".join(map(str, parameters)) + (", ..." if variadic else "")
    return f"{name}({inside})"
