"""Short constructors that the family files write the table with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mvserver.compiler.capabilities.model import (
    Capability,
    Lowering,
    Nulls,
    Overload,
    Parameter,
    ResultRule,
    overload_id,
)
from mvserver.compiler.expressions import Expression
from mvserver.sql.types import Kind, SqlType
from mvserver.sql.worked_examples import Example

BOOLEAN = Parameter(Kind.BOOLEAN)
TINYINT = Parameter(Kind.TINYINT)
SMALLINT = Parameter(Kind.SMALLINT)
INTEGER = Parameter(Kind.INTEGER)
BIGINT = Parameter(Kind.BIGINT)
FLOAT = Parameter(Kind.FLOAT)
DOUBLE = Parameter(Kind.DOUBLE)
DECIMAL = Parameter(Kind.DECIMAL)
TEXT = Parameter(Kind.VARCHAR)
BINARY = Parameter(Kind.VARBINARY)
DATE = Parameter(Kind.DATE)
TIME = Parameter(Kind.TIME)
TIMESTAMP = Parameter(Kind.TIMESTAMP)
INSTANT = Parameter(Kind.TIMESTAMP_LTZ)
INTERVAL = Parameter(Kind.INTERVAL)
TEXT_CONSTANT = Parameter(Kind.VARCHAR, constant=True)
INTEGER_CONSTANT = Parameter(Kind.INTEGER, constant=True)
AS_TEXT = Parameter(as_text=True)
EACH = Parameter(variable="EACH")
ELEMENT = Parameter(variable="ELEMENT")
ARRAY = Parameter(variable="ELEMENT", container="array")
MAP = Parameter(container="map", variable="MAP")

INTEGERS = (TINYINT, SMALLINT, INTEGER, BIGINT)
_SCALAR = frozenset(set(Kind) - {Kind.ARRAY, Kind.MAP, Kind.STRUCT, Kind.INTERVAL, Kind.NULL})
SCALAR_ELEMENT = Parameter(variable="ELEMENT", allowed=_SCALAR)
COMPARED = Parameter(variable="ELEMENT", allowed=_SCALAR, compared=True)


def on(
    parameters: Sequence[Parameter],
    result: ResultRule,
    spark: Lowering,
    duckdb: Lowering | None = None,
    *,
    variadic: bool = False,
) -> Callable[[str], Overload]:
    """An overload that still wants its function's name."""
    fixed = tuple(parameters)
    return lambda name: Overload(overload_id(name, fixed, variadic), fixed, result, spark, duckdb, variadic)


def same(index: int = 0) -> Callable[[Sequence[Expression]], SqlType]:
    """The result has the type of that argument."""
    return lambda arguments: arguments[index].type


def example(sql: str, expected: str | None, *, postgres: bool = True) -> Example:
    return Example(sql, expected, None, postgres)


def fails(sql: str, sqlstate: str, *, postgres: bool = True) -> Example:
    return Example(sql, None, sqlstate, postgres)


def capability(
    name: str,
    meaning: str,
    overloads: Sequence[Callable[[str], Overload]],
    examples: Sequence[Example],
    *,
    aliases: Sequence[str] = (),
    operator: bool = False,
    nulls: Nulls = Nulls.STRICT,
    note: str = "",
    internal: bool = False,
) -> Capability:
    return Capability(
        name,
        meaning,
        tuple(make(name) for make in overloads),
        tuple(examples),
        aliases=tuple(aliases),
        operator=operator,
        nulls=nulls,
        note=note,
        internal=internal,
    )
