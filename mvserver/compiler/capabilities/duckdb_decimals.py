"""Decimal arithmetic in DuckDB with the results that Spark gives.

DuckDB multiplies decimals exactly while 38 digits hold the product, but divides them as doubles. Division here is done
on HUGEINT: one whole quotient, then as many further digits as the result's scale asks for, and rounding half away
from zero. Divisors and scales for which HUGEINT has no room are refused when the statement is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities.model import Lowered, Lowering
from mvserver.errors import SqlError
from mvserver.sql.types import SqlType

_DIVIDED_BY_ZERO = "error('mvserver:22012:division by zero')"


def _decimal(type_: SqlType) -> str:
    return f"DECIMAL({type_.precision},{type_.scale})"


def exact(sign: str) -> Lowering:
    """+, - and *: both operands get room for the result first; the cast at the end rounds half away from zero."""

    def lower(a: Sequence[Lowered], result: SqlType) -> str:
        left, right = a[0].type.scale or 0, a[1].type.scale or 0
        if sign == "*":
            if left + right > 38:
                raise refused("a product with more than 38 digits after the point")
            return f"CAST(({a[0]} * {a[1]}) AS {_decimal(result)})"
        scale = max(left, right)
        wide = f"DECIMAL(38,{scale})"
        return f"CAST((CAST({a[0]} AS {wide}) {sign} CAST({a[1]} AS {wide})) AS {_decimal(result)})"

    return lower


def cast(text: str, result: SqlType) -> str:
    return f"CAST({text} AS {_decimal(result)})"


def rounded(argument: Lowered, places: int, result: SqlType) -> str:
    """DuckDB's round goes half away from zero for decimals, as ours does."""
    return cast(f"round({argument}, {places})", result)


def divide_double(a: Sequence[Lowered], result: SqlType) -> str:
    return f"(CASE WHEN {a[1]} = 0 THEN {_DIVIDED_BY_ZERO} ELSE {a[0]} / {a[1]} END)"


def divide(a: Sequence[Lowered], result: SqlType) -> str:
    """The macro ``mv_divide`` (see ``lower_duckdb.MACROS``) does the long division."""
    raise refused("a division of numeric values")


def refused(what: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"{what} over aggregates is not supported",
        hint="Round or cast the operands to fewer digits, or compute it in the SELECT that reads the view.",
    )
