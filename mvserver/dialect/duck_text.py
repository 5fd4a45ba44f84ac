"""A query's tree as DuckDB's text, which grows with the tree also when DuckDB has put in its macros and the like.

Where the arguments of a macro would be repeated into much, they are bound once: as the only item of a list, for which
a lambda calls the macro. What has no such form is refused when it would become too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from mvserver import interrupts, limits, sqlstates
from mvserver.dialect.macro_sizes import LAMBDA_TIMES, QUERY_SIZE, QUERY_TIMES, Macro, macros
from mvserver.errors import SqlError
from mvserver.sql import trees

_ONCE = "_once"  # also where one is inside another: equal expressions have equal texts, as GROUP BY wants them
_CONSTANTS = (exp.Literal, exp.Null, exp.Boolean, exp.Parameter, exp.Placeholder)
_NOT_IN_LAMBDAS = (exp.Query, exp.Window, exp.AggFunc, exp.Any, exp.All)
_OTHER = (exp.PropertyEQ, exp.Kwarg, exp.Lambda, exp.Star, exp.Distinct, exp.Order)


def written(tree: exp.Expr) -> str:
    """The tree's text; the tree stays as it is."""
    return last_written(tree.copy())


def last_written(tree: exp.Expr) -> str:
    """The text of a tree that is needed for nothing else. 54001 where DuckDB would make too much of it."""
    calls = _calls(tree)
    if calls < 2 and not (calls and any(node is not tree for node in tree.find_all(*_NOT_IN_LAMBDAS))):
        # nothing is nested in anything
        return trees.last_written(tree, Interruptible())
    return trees.last_written(tree, BoundOnce())


def refuse_repeating(value: exp.Expr) -> None:
    """54001 for an operand that is too large to be put into the tree several times."""
    if sum(1 for _ in value.walk()) > limits.REPEATED_NODES_MAX:
        raise too_complex()


def too_complex() -> SqlError:
    return SqlError(
        sqlstates.STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
        detail="A function that needs its arguments several times is nested in others of the kind.",
        hint="Compute the inner part in a sub-query or WITH query of its own, as MATERIALIZED.",
    )


def _calls(tree: exp.Expr) -> int:
    found = 0
    for node in interrupts.asking(tree.walk()):
        found += _macro(node) is not None
    return found


def _macro(node: exp.Expr) -> Macro | None:
    """What DuckDB puts in for a node; None for one that it takes as it is."""
    kind = type(node)
    if kind is exp.Anonymous:
        return macros().get(node.name.lower())
    if kind is exp.Lambda:
        return _LAMBDA
    if kind is exp.Between:
        return _SYMMETRIC if node.args.get("symmetric") else _BETWEEN
    if kind is exp.Case and node.args.get("this") is not None:
        return Macro(1, (len(node.args["ifs"]),), query=True)  # a comparison each; no lambda computes the rest
    known: Any = kind
    return _of_class(known) if issubclass(kind, exp.Func) else None


@cache
def _of_class(kind: type[exp.Func]) -> Macro | None:
    """Of a function that the parser knows: whichever of its names is a macro's."""
    found = [macros()[name.lower()] for name in kind.sql_names() if name.lower() in macros()]
    if not found or kind in _ARGUMENTS:
        return found[0] if found else None
    most = max(found, key=lambda macro: max(macro.times, default=0) * macro.size)
    return replace(most, times=(max(most.times, default=1),) * 9)  # its arguments may stand in another order


_LAMBDA = Macro(1, (LAMBDA_TIMES,), query=True)
_BETWEEN = Macro(5, (2, 1, 1), query=False)  # two comparisons
_SYMMETRIC = Macro(10, (4, 2, 2), query=False)  # which is written as two of these
_ARGUMENTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Nullif: ("this", "expression"),
    exp.SplitPart: ("this", "delimiter", "part_index"),
    exp.Between: ("this", "low", "high"),
}


class _Asking(DuckDBGenerator):
    """A generator that can be interrupted, of trees that are needed for nothing else."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._steps = 0

    def sql(self, expression: Any, key: str | None = None, comment: bool = True) -> str:
        self._steps += 1
        if not self._steps % interrupts.EVERY:
            interrupts.check()
        return str(super().sql(expression, key, comment))

    # sqlglot puts the joins to a source of these kinds before its alias, or leaves them out
    def values_sql(self, expression: exp.Values, values_as_table: bool = True) -> str:
        joins = expression.args.get("joins") or []
        expression.set("joins", None)
        return super().values_sql(expression, values_as_table) + self._joins(joins)

    def lateral_sql(self, expression: exp.Lateral) -> str:
        return super().lateral_sql(expression) + self._joins(expression.args.get("joins") or [])

    def _joins(self, joins: Sequence[exp.Expr]) -> str:
        return "".join(map(self.sql, joins))


class Interruptible(DuckDB):
    """DuckDB's dialect, whose texts can take long to write."""

    Generator = _Asking


class _Generator(_Asking):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sizes: dict[int, int] = {}

    def sql(self, expression: Any, key: str | None = None, comment: bool = True) -> str:
        if key is None and isinstance(expression, exp.Expr):
            macro = _macro(expression)
            if macro is not None:
                return self._call(expression, macro)
        return super().sql(expression, key, comment)

    def _call(self, node: exp.Expr, macro: Macro) -> str:
        arguments = _arguments(node)
        self._size(node)
        if not self._is_bound_once(macro, arguments):
            return super().sql(node)
        packed: list[str] = []
        bound: list[tuple[exp.Expr, exp.Expr]] = []
        for number, argument in enumerate(arguments):
            if not isinstance(argument, _CONSTANTS + _OTHER):
                packed.append(f"'a{number}': {self.sql(argument)}")
                place = exp.Var(this=f"{_ONCE}['a{number}']")
                argument.replace(place)
                bound.append((place, argument))
        text = f"list_transform([{{{', '.join(packed)}}}], lambda {_ONCE}: {super().sql(node)})[1]"
        for taken, argument in bound:  # what is sorted by in WITHIN GROUP is written twice
            taken.replace(argument)
        return text

    def _is_bound_once(self, macro: Macro, arguments: Sequence[exp.Expr]) -> bool:
        if macro.query or any(isinstance(each, _OTHER) for each in arguments):
            return False
        if macro.captures and any(each.find(*_NOT_IN_LAMBDAS) is not None for each in arguments):
            return True
        sizes = [self._size(each) for each in arguments]
        repeated = sum((times - 1) * size for times, size in zip(macro.times, sizes, strict=False) if times > 1)
        return repeated > limits.MACRO_REPEATS_MAX

    def _size(self, node: exp.Expr) -> int:
        """Of what DuckDB makes of it, in tokens; some for nodes without a macro."""
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        macro = _macro(node)
        arguments = _arguments(node) if macro is not None else []
        if macro is None or self._is_bound_once(macro, arguments):
            size = (1 if macro is None else macro.size) + sum(self._size(child) for child in node.iter_expressions())
        else:
            size = macro.size + sum(
                self._size(each) * max(times, 1) * (QUERY_TIMES if _is_query(macro) and _asks(each) else 1)
                for each, times in zip(arguments, (*macro.times, *[1] * len(arguments)), strict=False)
            )
        if size > limits.EXPANDED_TOKENS_MAX:
            raise too_complex()
        self._sizes[id(node)] = size
        return size


def _is_query(macro: Macro) -> bool:
    return macro.query and macro.size >= QUERY_SIZE


def _asks(node: exp.Expr) -> bool:
    """Whether a macro with a query is called in it."""
    return any(macro is not None and _is_query(macro) for macro in map(_macro, node.walk()))


class BoundOnce(DuckDB):
    Generator = _Generator


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if type(node) is exp.Anonymous:
        return list(node.expressions)
    if type(node) not in _ARGUMENTS:
        return list(node.iter_expressions())  # of CASE its operand is the first
    return [node.args[key] for key in _ARGUMENTS[type(node)] if isinstance(node.args.get(key), exp.Expr)]
