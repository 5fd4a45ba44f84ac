"""ON of a join, told apart: equalities between its two sides are the keys.

What else an inner join asks for is a condition on its rows; what else an outer join asks for decides what matches, so
that DuckDB, which finds the pairs, must be able to evaluate it.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from mvserver import sqlstates
from mvserver.compiler.binder import Binder
from mvserver.compiler.capabilities.keys import normalized_key
from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.changelog_joins import narrow
from mvserver.compiler.expressions import Call, ColumnReference, Expression, over_columns, walk
from mvserver.compiler.plans import JoinKind, Output
from mvserver.compiler.refusals import refused
from mvserver.compiler.scope import Scope
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of
from mvserver.sql.types import Kind


def words(kind: JoinKind) -> str:
    return "join" if kind is JoinKind.INNER else f"{kind.value.lower()} join"


def free_name(table: str, column: str, taken: Container[str]) -> str:
    """The name of a table's column among those of joined rows."""
    name = f"{table}.{column}"
    while name in taken:  # two quoted names with dots in them
        name += "."
    return name


def conditions(
    on: exp.Expression, scope: Scope, left_names: set[str], primary_key: Mapping[str, str] | None = None
) -> tuple[list[tuple[Expression, Expression]], Expression | None]:
    """The pairs of keys and what else ON asks for, all over the joined rows. ``primary_key`` says which columns of the
    right side are its primary key, if there may be no more keys than that: all else is then asked for of the rows."""
    found = []
    for node in _conjuncts(on):
        bound = Binder(scope, "JOIN/ON").condition(node, "JOIN/ON")
        found.append(_Condition(node, bound, _key_pair(bound, left_names) if isinstance(node, exp.EQ) else None))
    chosen = [each for each in found if each.pair is not None]
    if primary_key is not None:
        chosen = _of_primary_key(chosen, primary_key) or chosen
    for each in chosen:
        _check_key(each)
    rest = [each.bound for each in found if each not in chosen]
    condition = functools.reduce(lambda one, other: call_operator("and", (one, other)), rest) if rest else None
    return [each.pair for each in chosen if each.pair is not None], condition


@dataclass(frozen=True)
class _Condition:
    """``pair`` is what an equality compares of the left and of the right side."""

    node: exp.Expression
    bound: Expression
    pair: tuple[Expression, Expression] | None


def _of_primary_key(found: Sequence[_Condition], primary_key: Mapping[str, str]) -> list[_Condition]:
    """The first equality about each column of the primary key alone; none where not all of them are compared."""
    chosen: dict[str, _Condition] = {}
    for each in found:
        plain = None if each.pair is None else narrow(each.pair[1])
        if isinstance(plain, ColumnReference) and plain.name in primary_key:
            chosen.setdefault(primary_key[plain.name], each)
    return list(chosen.values()) if set(chosen) == set(primary_key.values()) else []


def without_equality(on: exp.Expression) -> SqlError:
    hint = "ON needs a.column = b.column; other conditions may follow with AND."
    return refused("a join without an equality between its two sides", on, hint)


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


def _check_key(condition: _Condition) -> None:
    assert condition.pair is not None  # noqa: S101 - asked of equalities
    key = condition.pair[0]
    if key.type.is_nested or key.type.kind is Kind.INTERVAL:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"joining on a value of type {postgres_name(key.type)} is not supported",
            hint="Join on its parts.",
            position=position_of(condition.node),
        )


def over_side(key: Expression, outputs: tuple[Output, ...]) -> Expression:
    """A key over the joined rows as one over the scan of the side that all its columns come from."""
    sources = {output.name: output.expression for output in outputs}
    return normalized_key(over_columns(key, lambda column: sources[column.name]))
