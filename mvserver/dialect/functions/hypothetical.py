"""Ranks that a row would have: ``rank(100) WITHIN GROUP (ORDER BY total)``.

DuckDB has them as window functions only. Each is a count of the rows that would be sorted before it, in PostgreSQL's
words, so that the passes behind see nothing new.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.pull_parser import CALLED

HYPOTHETICAL = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


def rewrite(root: exp.Expr) -> None:
    """In place; ``root`` is no such aggregate itself."""
    for node in interrupts.asking(list(root.find_all(exp.WithinGroup))):
        name = str(node.this.meta.get(CALLED, ("",))[0]).lower()
        if name not in HYPOTHETICAL:
            continue
        around = node.parent if isinstance(node.parent, exp.Filter) else None
        whole = around or node
        listed = isinstance(whole.parent, exp.Select) and whole.arg_key == "expressions"
        made = _counted(name, node, around.expression if around is not None else None)
        whole.replace(exp.alias_(made, name, quoted=True) if listed else exp.Paren(this=made))


def _counted(name: str, node: exp.WithinGroup, condition: exp.Expr | None) -> exp.Expr:
    values, keys = _arguments(node.this), list(node.expression.expressions)
    if len(values) != len(keys):
        start = node.this.meta[CALLED][2]
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"function {name} with {len(values)} direct arguments and {len(keys)} keys does not exist",
            hint=f"To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments must "
            "match the number of ordering columns.",
            position=start + 1,
        )
    before = _before(keys, values)
    one = exp.Literal.number(1)
    if name == "dense_rank":
        distinct = exp.Distinct(expressions=[exp.Tuple(expressions=[*(key.this.copy() for key in keys), exp.true()])])
        return exp.Add(this=_count(distinct, before, condition), expression=one)
    if name == "rank":
        return exp.Add(this=_count(exp.Star(), before, condition), expression=one)
    total = _count(exp.Star(), None, condition)
    if name == "percent_rank":
        share = _quotient(
            _count(exp.Star(), before, condition), exp.Nullif(this=total, expression=exp.Literal.number(0))
        )
        return exp.Coalesce(this=share, expressions=[exp.cast(exp.Literal.number(0), exp.DType.DOUBLE)])
    same = exp.and_(*(exp.NullSafeEQ(this=key.this.copy(), expression=value.copy())
                      for key, value in zip(keys, values, strict=True)))  # fmt: skip
    here = _count(exp.Star(), exp.Paren(this=exp.or_(before, same)), condition)
    return _quotient(
        exp.Paren(this=exp.Add(this=here, expression=one)),
        exp.Paren(this=exp.Add(this=total, expression=one.copy())),
    )


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    found = list(call.expressions)
    this = call.args.get("this")
    return [this, *found] if isinstance(this, exp.Expr) and not isinstance(call, exp.Anonymous) else found


def _quotient(dividend: exp.Expr, divisor: exp.Expr) -> exp.Expr:
    return exp.Div(this=exp.cast(dividend, exp.DType.DOUBLE), expression=divisor)


def _count(what: exp.Expr, test: exp.Expr | None, condition: exp.Expr | None) -> exp.Expr:
    tests = [part.this.copy() if isinstance(part, exp.Where) else part.copy() for part in (test, condition) if part]
    call = exp.Count(this=what)
    call.meta[CALLED] = ("count", 1, 0)
    return exp.Filter(this=call, expression=exp.Where(this=exp.and_(*tests))) if tests else call


def _before(keys: list[exp.Expr], values: list[exp.Expr]) -> exp.Expr:
    """Whether a row's keys are sorted before the values."""
    key, value = keys[0], values[0]
    less: exp.Expr = (exp.GT if key.args.get("desc") else exp.LT)(this=key.this.copy(), expression=value.copy())
    first, last = (key.this, value) if key.args.get("nulls_first") else (value, key.this)
    missing = exp.and_(
        exp.Is(this=first.copy(), expression=exp.Null()), exp.Not(this=exp.Is(this=last.copy(), expression=exp.Null()))
    )
    found = exp.or_(exp.Coalesce(this=exp.Paren(this=less), expressions=[exp.false()]), missing)
    if len(keys) > 1:
        equal = exp.NullSafeEQ(this=key.this.copy(), expression=value.copy())
        found = exp.or_(found, exp.and_(equal, _before(keys[1:], values[1:])))
    return exp.Paren(this=found)
