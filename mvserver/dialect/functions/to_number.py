"""to_number with a constant pattern: the digits before and behind the point, and the sign, taken out of the text."""

from __future__ import annotations

import re

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError

_PART = re.compile(r"FM|MI|PL|SG|PR|[90,.GDSL$ ]|(?P<other>.)", re.I | re.S)
_DIGITS_MAX = 38


def number_of(text: exp.Expr, pattern: str) -> exp.Expr:
    """``text`` as a numeric with the pattern's digits behind the point."""
    before = behind = 0
    point = False
    for part in _PART.finditer(pattern):
        if part["other"] is not None:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'to_number with the pattern "{pattern}" is not supported',
                hint="A pattern has 9, 0, G, D, commas, a point, S, MI, PL, SG, PR, L and FM.",
            )
        if part[0] in ".Dd":
            if point:
                raise SqlError(sqlstates.SYNTAX_ERROR, "multiple decimal points")
            point = True
        elif part[0] in "90":
            before, behind = (before, behind + 1) if point else (before + 1, behind)
    if before + behind > _DIGITS_MAX:
        raise SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
    found = exp.Anonymous(
        this="_to_number", expressions=[text.copy(), exp.Literal.number(before), exp.Literal.number(behind)]
    )
    return exp.cast(found, f"DECIMAL(38, {behind})", dialect="duckdb")
