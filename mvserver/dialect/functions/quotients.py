"""Quotients of exact numbers, which DuckDB divides as doubles: their 15 digits do not make a numeric.

The macros that do it are in ``pgcatalog.edge_macros``, one for each number of digits after the point.
"""

from __future__ import annotations

import re

from sqlglot import exp

from mvserver.pgcatalog.edge_macros import QUOTIENT_SCALES

_DECIMAL = re.compile(r"^DECIMAL\((\d+),\s*(\d+)\)$")
INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "INTEGER_LITERAL": 10, "BIGINT": 19, "HUGEINT": 38}


def is_exact(kind: str) -> bool:
    return kind in INTEGER_DIGITS or _DECIMAL.match(kind) is not None


def quotient(left: exp.Expr, right: exp.Expr, kinds: tuple[str, str], scale: int) -> exp.Expr:
    """``left / right``, of DuckDB's types ``kinds``, with ``scale`` digits after the point if there can be so many."""
    operands = [
        exp.cast(operand.copy(), _decimal(kind), dialect="duckdb")
        for operand, kind in zip((left, right), kinds, strict=True)
    ]
    return exp.Anonymous(this=f"_quotient_{min(scale, QUOTIENT_SCALES[-1])}", expressions=operands)


def _decimal(kind: str) -> str:
    return kind if kind not in INTEGER_DIGITS else f"DECIMAL({INTEGER_DIGITS[kind]}, 0)"
