"""The typed expression tree: what the binder makes and the two lowerings read.

Nothing here knows Spark or DuckDB. Every node carries its type; a function call names an entry of the capability
table (``mvserver.compiler.capabilities``), never an engine's function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from mvserver.java_functions.definition import JavaFunction
from mvserver.python_functions.definition import PythonFunction
from mvserver.sql.types import BOOLEAN, SqlType


@dataclass(frozen=True)
class Expression:
    type: SqlType


@dataclass(frozen=True)
class ColumnReference(Expression):
    """A column of the scanned relation (by its declared name)."""

    name: str


@dataclass(frozen=True)
class Drawn(ColumnReference):
    """A column of a row that is drawn when the row is evaluated, and of no scan. ``spark`` is Spark's text of the
    drawing."""

    spark: str


@dataclass(frozen=True)
class Literal(Expression):
    """``value`` is None for NULL; dates, times, timestamps and intervals are kept as canonical text."""

    value: str | int | float | bool | Decimal | bytes | None


@dataclass(frozen=True)
class Call(Expression):
    """``function`` is the id of an overload in the capability table; arguments are already coerced to its types.
    ``definition`` is what it means where the function is a user's own, and then in no table."""

    function: str
    arguments: tuple[Expression, ...]
    definition: PythonFunction | JavaFunction | None = None


@dataclass(frozen=True)
class Cast(Expression):
    """An explicit or implied cast with PostgreSQL's meaning; ``safe`` (TRY_CAST) gives NULL instead of an error."""

    operand: Expression
    safe: bool = False


@dataclass(frozen=True)
class Case(Expression):
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True)
class FieldAccess(Expression):
    operand: Expression
    field: str


@dataclass(frozen=True)
class KeyReference(Expression):
    """In finishing expressions of an aggregate: the i-th group key."""

    index: int


@dataclass(frozen=True)
class AggregateReference(Expression):
    """In finishing expressions: the i-th aggregate's finished value."""

    index: int


def children(node: Expression) -> tuple[Expression, ...]:
    if isinstance(node, Call):
        return node.arguments
    if isinstance(node, (Cast, FieldAccess)):
        return (node.operand,)
    if isinstance(node, Case):
        flat = tuple(part for branch in node.branches for part in branch)
        return (*flat, node.otherwise) if node.otherwise is not None else flat
    return ()


def with_children(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The node with each child replaced by what ``change`` makes of it."""
    if isinstance(node, Call):
        return replace(node, arguments=tuple(change(each) for each in node.arguments))
    if isinstance(node, (Cast, FieldAccess)):
        return replace(node, operand=change(node.operand))
    if isinstance(node, Case):
        return replace(
            node,
            branches=tuple((change(test), change(value)) for test, value in node.branches),
            otherwise=change(node.otherwise) if node.otherwise is not None else None,
        )
    return node


def over_columns(node: Expression, change: Callable[[ColumnReference], Expression]) -> Expression:
    """The same with what ``change`` makes of each column of a scan."""
    if isinstance(node, ColumnReference):
        return node if isinstance(node, Drawn) else change(node)
    return with_children(node, lambda part: over_columns(part, change))


def renamed(node: Expression, names: Mapping[str, str]) -> Expression:
    """The same over columns that have other names."""
    return over_columns(node, lambda column: replace(column, name=names[column.name]))


def by_place(node: Expression, names: Iterable[str]) -> Expression:
    """The same with a reference to the place among ``names`` in place of each column, for DuckDB."""
    places = {name: index for index, name in enumerate(names)}
    return over_columns(node, lambda column: KeyReference(column.type, places[column.name]))


def both(first: Expression | None, second: Expression | None) -> Expression | None:
    """Both conditions; the second is evaluated only where the first holds."""
    if first is None or second is None:
        return first or second
    return Case(BOOLEAN, ((first, second),), Literal(BOOLEAN, False))


def size(node: Expression) -> int:
    """How many operations the tree has; a part that is shared counts as often as it occurs, but is looked at once."""
    sizes: dict[int, int] = {}

    def count(part: Expression) -> int:
        if id(part) not in sizes:
            sizes[id(part)] = 1 + sum(count(child) for child in children(part))
        return sizes[id(part)]

    return count(node)


def walk(node: Expression) -> Iterator[Expression]:
    """All nodes, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))
