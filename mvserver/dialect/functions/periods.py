"""Arithmetic and sums of times and intervals, which DuckDB has not or understands in another way.

An interval is months, days and microseconds, each summed by itself as PostgreSQL does it: DuckDB's AVG makes one length
of the three. What is missing altogether is put in place when a query does not bind, so that no other query pays for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from mvserver import interrupts

TypeOf = Callable[[exp.Expr], str]

_KINDS = ("INTERVAL", "TIME")
_PARTS = ("_interval_months", "_interval_day_field", "_interval_microseconds")


def add_missing(tree: exp.Expr, type_of: TypeOf) -> bool:
    """``time - time``, ``interval / number`` and SUM of either, in place, inner ones first; True when there was one."""
    changed = False
    for node in interrupts.asking(reversed(list(tree.walk(bfs=True)))):
        made: exp.Expr | None = None
        if isinstance(node, exp.Sub) and type_of(node.left) == type_of(node.right) == "TIME":
            made = exp.Paren(this=exp.Sub(this=_interval(node.left, "TIME"), expression=_interval(node.right, "TIME")))
        elif isinstance(node, exp.Div) and type_of(node.left) == "INTERVAL":
            made = _call("_interval_quotient", node.left.copy(), node.right.copy())
        elif isinstance(node, exp.Sum | exp.Avg) and (kind := type_of(_argument(node))) in _KINDS:
            (summed if isinstance(node, exp.Sum) else averaged)(node, kind)
            changed = True
        else:
            changed |= as_intervals(node, type_of)
        if made is not None:
            node.replace(made)
            changed = True
    return changed


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif)


def _compared(node: exp.Expr) -> Sequence[exp.Expr]:
    if isinstance(node, _COMPARISONS):
        return [node.this, node.expression]
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    if isinstance(node, exp.In):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Case) and node.this is not None:
        return [node.this, *(branch.this for branch in node.args["ifs"])]
    return ()


def as_intervals(node: exp.Expr, type_of: TypeOf) -> bool:
    """Times of day that are compared with intervals are intervals, in place; True when there was one."""
    operands = _compared(node)
    if all(isinstance(operand.unnest(), exp.Literal | exp.Null) for operand in operands[1:]):
        return False  # of the first one's type
    if type_of(operands[0]) not in _KINDS:
        return False
    kinds = [type_of(operand) for operand in operands]
    if not {*_KINDS} <= {*kinds}:
        return False
    for operand, kind in zip(operands, kinds, strict=True):
        if kind == "TIME":
            operand.replace(_interval(operand, kind))
    return True


def is_period(kind: str) -> bool:
    return kind in _KINDS


def summed(call: exp.Expr, kind: str) -> None:
    """SUM of intervals or times, with its FILTER and OVER."""
    whole = whole_call(call)
    whole.replace(_sum(call, whole, kind))


def averaged(call: exp.Expr, kind: str) -> None:
    whole = whole_call(call)
    count = _with(call, whole, exp.Count(this=call.this.copy()))
    number = exp.Anonymous(this="nullif", expressions=[count, exp.Literal.number(0)])
    whole.replace(_call("_interval_quotient", _sum(call, whole, kind), number))


def whole_call(call: exp.Expr) -> exp.Expr:
    """The call with its FILTER and OVER."""
    node = call
    while isinstance(node.parent, exp.Filter | exp.Window) and node.arg_key == "this":
        node = node.parent
    return node


def _sum(call: exp.Expr, whole: exp.Expr, kind: str) -> exp.Expr:
    argument = _interval(_argument(call), kind)
    if isinstance(call.this, exp.Distinct):  # as intervals: parts that are equal do not make equal intervals
        return _call("_intervals_sum", _with(call, whole, _call("list", exp.Distinct(expressions=[argument]))))
    return _call("_interval_made", *(_with(call, whole, exp.Sum(this=_call(part, argument))) for part in _PARTS))


def _with(call: exp.Expr, whole: exp.Expr, other: exp.Expr) -> exp.Expr:
    """``other`` with the FILTER and OVER of the call."""
    if whole is call:
        return other
    made = whole.copy()
    inner = made
    while isinstance(inner.this, exp.Filter | exp.Window):
        inner = inner.this
    inner.set("this", other)
    return made


def _argument(call: exp.Expr) -> exp.Expr:
    argument: exp.Expr = call.this
    return argument.expressions[0] if isinstance(argument, exp.Distinct) else argument


def _interval(value: exp.Expr, kind: str) -> exp.Expr:
    return _call("_time_interval", value.copy()) if kind == "TIME" else value.copy()


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[part.copy() for part in arguments])
