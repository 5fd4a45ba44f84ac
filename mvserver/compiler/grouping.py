"""GROUP BY as keys and grouping sets: ROLLUP, CUBE and GROUPING SETS written out and multiplied, as SQL has it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.expressions import Case, Expression, KeyReference, Literal
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.nodes import position_of

_Set = tuple[int, ...]


@dataclass(frozen=True)
class Grouping:
    """The distinct keys, and the sets of their indexes; no sets where every row has all keys."""

    keys: tuple[Expression, ...] = ()
    sets: tuple[_Set, ...] = ()

    def call(self, arguments: Sequence[Expression], position: int | None) -> Expression:
        """GROUPING(a, b): a bit for each argument, the last the lowest, set where a row's set leaves it out."""
        unknown = [each for each in arguments if each not in self.keys]
        if unknown or not arguments:
            raise SqlError(
                sqlstates.GROUPING_ERROR,
                "arguments to GROUPING must be grouping expressions of the associated query level",
                position=position,
            )
        wanted = [self.keys.index(each) for each in arguments]
        if not self.sets:
            return Literal(t.INTEGER, 0)
        ordinal = KeyReference(t.INTEGER, len(self.keys))
        branches = []
        for number, members in enumerate(self.sets):
            bits = sum((key not in members) << place for place, key in enumerate(reversed(wanted)))
            is_set = call_operator("=", (ordinal, Literal(t.INTEGER, number)), position)
            branches.append((is_set, Literal(t.INTEGER, bits)))
        return Case(t.INTEGER, tuple(branches), None)


def grouping(group: exp.Expression | None, key_of: Callable[[exp.Expression], Expression]) -> Grouping:
    """``key_of`` binds one expression of GROUP BY."""
    if group is None:
        return Grouping()
    keys: list[Expression] = []

    def number(node: exp.Expression) -> int:
        key = key_of(node)
        if key not in keys:
            keys.append(key)
        return keys.index(key)

    plain = all(_is_plain(element) for element in group.expressions)
    written = [_sets(element, number) for element in group.expressions]
    count = 1
    for sets in written:
        count *= len(sets)
    if count > limits.GROUPING_SETS_MAX:
        raise SqlError(
            sqlstates.STATEMENT_TOO_COMPLEX,
            f"too many grouping sets present (maximum {limits.GROUPING_SETS_MAX})",
            position=position_of(group),
        )
    if plain:
        return Grouping(tuple(keys))
    product = itertools.product(*written)
    return Grouping(tuple(keys), tuple(tuple(sorted({i for part in parts for i in part})) for parts in product))


def _is_plain(element: exp.Expression) -> bool:
    if isinstance(element, exp.Tuple):
        return bool(element.expressions)
    return not isinstance(element, (exp.GroupingSets, exp.Rollup, exp.Cube))


def _sets(element: exp.Expression, number: Callable[[exp.Expression], int]) -> list[_Set]:
    if isinstance(element, exp.GroupingSets):
        return [each for inner in element.expressions for each in _sets(inner, number)]
    if isinstance(element, (exp.Rollup, exp.Cube)):
        items = [_members(item, number) for item in element.expressions]
        if isinstance(element, exp.Rollup):
            taken = [items[:length] for length in range(len(items), -1, -1)]
        else:
            _check_cube(items, element)
            taken = [list(c) for length in range(len(items), -1, -1) for c in itertools.combinations(items, length)]
        return [tuple(i for item in each for i in item) for each in taken]
    return [_members(element, number)]


def _check_cube(items: Sequence[_Set], element: exp.Expression) -> None:
    """Before its sets are written out: there are 2 to the power of its items."""
    if len(items) > 12:
        raise SqlError(sqlstates.TOO_MANY_COLUMNS, "CUBE is limited to 12 elements", position=position_of(element))


def _members(item: exp.Expression, number: Callable[[exp.Expression], int]) -> _Set:
    return tuple(number(each) for each in (item.expressions if isinstance(item, exp.Tuple) else [item]))
