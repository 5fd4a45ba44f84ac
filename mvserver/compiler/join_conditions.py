"""ON of a join, told apart: equalities between its two sides are the keys.

What else an inner join asks for is a condition on its rows; what else an outer join asks for decides what matches, so
that DuckDB, which finds the pairs, must be able to evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from mvserver import sqlstates
from mvserver.compiler.binder import Binder
from mvserver.compiler.capabilities.keys import normalized_key
from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.expressions import Call, ColumnReference, Expression, walk, with_children
from mvserver.compiler.plans import Output, Scan
from mvserver.compiler.refusals import refused
from mvserver.compiler.scope import Scope
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of
from mvserver.sql.types import Kind


def conditions(
    on: exp.Expression, scope: Scope, left_names: set[str], is_key: Callable[[Expression], bool]
) -> tuple[list[tuple[Expression, Expression]], Expression | None]:
    """The pairs of keys and what else ON asks for, all over the joined rows."""
    keys: list[tuple[Expression, Expression]] = []
    rest: Expression | None = None
    for node in _conjuncts(on):
        bound = Binder(scope, "JOIN/ON").condition(node, "JOIN/ON")
        pair = _key_pair(bound, left_names) if isinstance(node, exp.EQ) else None
        if pair is not None and is_key(pair[1]):
            _check_key(pair[0], node)
            keys.append(pair)
        else:
            rest = bound if rest is None else call_operator("and", (rest, bound))
    return keys, rest


def without_equality(on: exp.Expression) -> SqlError:
    hint = "ON needs a.column = b.column; other conditions may follow with AND."
    return refused("a join without an equality between its two sides", on, hint)


def keyed(scan: Scan, outputs: Mapping[str, Expression] | None) -> Callable[[Expression], bool]:
    """Whether what the right side compares can be a key: of a changelog, only the primary key can."""

    def is_key(node: Expression) -> bool:
        if outputs is None:
            return True
        columns = [outputs[part.name] for part in walk(node) if isinstance(part, ColumnReference)]
        return all(isinstance(each, ColumnReference) and each.name in scan.primary_key for each in columns)

    return is_key


def _conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    elif isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    else:
        yield node


def _key_pair(bound: Expression, left_names: set[str]) -> tuple[Expression, Expression] | None:
    """(left, right) where an equality compares something of one side with something of the other."""
    if not isinstance(bound, Call) or len(bound.arguments) != 2:
        return None
    first, second = bound.arguments
    first_side, second_side = _side(first, left_names), _side(second, left_names)
    if (first_side, second_side) == ("left", "right"):
        return first, second
    if (first_side, second_side) == ("right", "left"):
        return second, first
    return None


def _side(node: Expression, left_names: set[str]) -> str | None:
    names = {part.name for part in walk(node) if isinstance(part, ColumnReference)}
    if not names:
        return None
    if names <= left_names:
        return "left"
    return None if names & left_names else "right"


def _check_key(key: Expression, node: exp.Expression) -> None:
    if key.type.is_nested or key.type.kind is Kind.INTERVAL:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"joining on a value of type {postgres_name(key.type)} is not supported",
            hint="Join on its parts.",
            position=position_of(node),
        )


def over_side(key: Expression, outputs: tuple[Output, ...]) -> Expression:
    """A key over the joined rows as one over the scan of the side that all its columns come from."""
    sources = {output.name: output.expression for output in outputs}

    def change(node: Expression) -> Expression:
        return sources[node.name] if isinstance(node, ColumnReference) else with_children(node, change)

    return normalized_key(change(key))
