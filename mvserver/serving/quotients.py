"""Quotients of exact numbers, which DuckDB divides as doubles: their 15 digits do not make a numeric.

The whole part of a large quotient is split off, twice, and what is left over, computed exactly, is divided once more.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp

_DECIMAL = re.compile(r"^DECIMAL\((\d+),\s*(\d+)\)$")
_INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "INTEGER_LITERAL": 10, "BIGINT": 19, "HUGEINT": 38}
_DOUBLE_DIGITS = 15
_NEAR_DIGITS = 14  # that rounding a double cannot change
_WHOLE_DIGITS = 28  # of a quotient with the ten behind the point that a division has


def is_exact(kind: str) -> bool:
    return kind in _INTEGER_DIGITS or _DECIMAL.match(kind) is not None


def quotient(left: exp.Expr, right: exp.Expr, kinds: tuple[str, str], scale: int) -> exp.Expr:
    """``left / right`` with ``scale`` digits after the point. The operands, of DuckDB's types ``kinds``, are evaluated
    once."""
    dividend, divisor = (_decimal(kind) for kind in kinds)
    a, b = "struct_extract(q, 'a')", "struct_extract(q, 'b')"  # q.a would be a column's name in HAVING
    whole = f"CAST(trunc({a} / {b}) AS DECIMAL({_WHOLE_DIGITS}, 0))"
    rest = f"({a} - {whole} * {b})"
    more = f"CAST(trunc({rest} / {b}) AS DECIMAL({_DOUBLE_DIGITS}, 0))"
    last = f"({rest} - {more} * {b})"
    operands = f"struct_pack(a := CAST(_left AS {dividend}), b := CAST(_right AS {divisor}))"
    text = f"""list_transform([{operands}], lambda q: CASE
        WHEN abs({a} / {b}) < 1e{_NEAR_DIGITS - scale} THEN CAST({a} / {b} AS DECIMAL(38, {scale}))
        ELSE {whole} + {more} + CAST({last} / {b} AS DECIMAL(38, {scale})) END)[1]"""
    made = sqlglot.parse_one(text, read="duckdb")
    for column in list(made.find_all(exp.Column)):
        if column.name in ("_left", "_right") and not column.table:
            column.replace((left if column.name == "_left" else right).copy())
    return made


def _decimal(kind: str) -> str:
    return kind if kind not in _INTEGER_DIGITS else f"DECIMAL({_INTEGER_DIGITS[kind]}, 0)"
