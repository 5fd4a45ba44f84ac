"""``make_interval(years, months, weeks, days, hours, mins, secs)``, by place or by name."""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.functions.to_char import call
from mvserver.errors import SqlError

_PARTS = ("years", "months", "weeks", "days", "hours", "mins", "secs")
_US = {"hours": 3_600_000_000, "mins": 60_000_000, "secs": 1_000_000}


def make_interval(node: exp.Anonymous) -> exp.Expr:
    """Months, days and microseconds apart, as an interval keeps them."""
    given: dict[str, exp.Expr] = {}
    for at, argument in enumerate(node.expressions):
        named = isinstance(argument, exp.Kwarg)
        name = argument.this.name.lower() if named else _PARTS[at]
        if name not in _PARTS or name in given:
            raise SqlError(
                sqlstates.UNDEFINED_FUNCTION,
                f"function make_interval has no argument {name}, or has it twice",
                hint=f"Its arguments are {', '.join(_PARTS)}.",
            )
        given[name] = (argument.expression if named else argument).copy()
    months = _total(given, (("years", 12), ("months", 1)), "INT")
    days = _total(given, (("weeks", 7), ("days", 1)), "INT")
    rest = _total(given, tuple(_US.items()), "BIGINT")
    whole = exp.Add(this=call("to_months", months), expression=call("to_days", days))
    return exp.Paren(this=exp.Add(this=whole, expression=call("to_microseconds", rest)))


def _total(given: dict[str, exp.Expr], units: tuple[tuple[str, int], ...], kind: str) -> exp.Expr:
    total: exp.Expr = exp.Literal.number(0)
    for name, unit in units:
        if name in given:
            part = exp.cast(exp.Paren(this=given[name]), "DOUBLE" if name == "secs" else "BIGINT", dialect="duckdb")
            total = exp.Add(this=total, expression=exp.Mul(this=part, expression=exp.Literal.number(unit)))
    if "secs" in given and kind == "BIGINT":
        total = exp.Anonymous(this="round_even", expressions=[total, exp.Literal.number(0)])
    return exp.cast(total, kind, dialect="duckdb")
