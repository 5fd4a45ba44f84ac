"""Arguments of an aggregate with FILTER: PostgreSQL computes them of the rows that pass only.

DuckDB computes them of all rows first, and ``sum(1 / x) FILTER (WHERE x <> 0)`` would fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from mvserver.dialect.duck_text import refuse_repeating

_SIMPLE = (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Parameter, exp.Star, exp.Var)
"""What cannot fail."""


def guard(node: exp.Filter) -> None:
    """In place: each argument that can fail is NULL where the row does not pass."""
    condition = node.expression.this
    for value in list(_values(node.this)):
        if not isinstance(value.unnest(), _SIMPLE):
            refuse_repeating(condition)
            passing = exp.If(this=condition.copy(), true=value.copy())
            value.replace(exp.Case(ifs=[passing]))


def _values(call: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(call, exp.WithinGroup):
        yield from _parts(call.expression)
        return
    for part in call.iter_expressions():
        yield from _parts(part)


def _parts(part: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(part, exp.Distinct | exp.Order):
        for inner in part.iter_expressions():
            yield from _parts(inner)
    elif isinstance(part, exp.Ordered):
        yield part.this
    else:
        yield part
