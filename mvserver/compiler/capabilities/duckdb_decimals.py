"""Arithmetic of finishing expressions in DuckDB, with the results that Spark gives.

DuckDB multiplies decimals exactly while 38 digits hold the product, but divides them as doubles. Division here is long
division on HUGEINT: the whole quotient, then further digits in steps that HUGEINT has room for, then rounding half away
from zero. A divisor of more than 28 digits is an overflow error.
"""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities.model import Lowered, Lowering
from mvserver.errors import SqlError
from mvserver.sql.types import SqlType

_HUGEINT_DIGITS = 38
_STEP_DIGITS_MIN = 10
_PLACES_MAX = 6  # further ones may lie beyond the 20 digits that DuckDB is given of a double


def failure(sqlstate: str, message: str) -> str:
    return f"error('mvserver:{sqlstate}:{message}')"


_DIVIDED_BY_ZERO = failure(sqlstates.DIVISION_BY_ZERO, "division by zero")
_OVERFLOW = failure(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")


def _decimal(type_: SqlType) -> str:
    return f"DECIMAL({type_.precision},{type_.scale})"


def exact(sign: str) -> Lowering:
    """+, - and *: both operands get room for the result first; the cast at the end rounds half away from zero."""

    def lower(a: Sequence[Lowered], result: SqlType) -> str:
        left, right = a[0].type.scale or 0, a[1].type.scale or 0
        if sign == "*":
            if left + right > _HUGEINT_DIGITS:
                raise refused("a product with more than 38 digits after the point")
            # DuckDB keeps a product of two short decimals within 18 digits, and says so only when one is longer.
            return cast(f"(CAST({a[0]} AS DECIMAL(38,{left})) * {a[1]})", result)
        wide = f"DECIMAL(38,{max(left, right)})"
        return cast(f"(CAST({a[0]} AS {wide}) {sign} CAST({a[1]} AS {wide}))", result)

    return lower


def cast(text: str, result: SqlType) -> str:
    return f"CAST({text} AS {_decimal(result)})"


def rounded(argument: Lowered, places: int, result: SqlType) -> str:
    """DuckDB's round goes half away from zero for decimals, as ours does."""
    if places < 0:
        raise refused("rounding to the left of the point")
    return cast(f"round({argument}, {min(places, argument.type.scale or 0)})", result)


def rounded_double(argument: Lowered, places: int) -> str:
    """Half away from zero by the shortest decimal form; a double of 1e17 or more is whole."""
    if not 0 <= places <= _PLACES_MAX:
        raise refused(f"rounding a double to {places} digits")
    digits = f"CAST(CAST({argument} AS VARCHAR) AS DECIMAL(38,20))"
    return f"(CASE WHEN abs({argument}) < 1e17 THEN CAST(round({digits}, {places}) AS DOUBLE) ELSE {argument} END)"


def _unless_zero(a: Sequence[Lowered], value: str) -> str:
    """NULL by zero is NULL."""
    return f"(CASE WHEN {a[1]} = 0 AND {a[0]} IS NOT NULL THEN {_DIVIDED_BY_ZERO} ELSE {value} END)"


def integer_divide(a: Sequence[Lowered], result: SqlType) -> str:
    return _unless_zero(a, f"{a[0]} // {a[1]}")


def integer_remainder(a: Sequence[Lowered], result: SqlType) -> str:
    return _unless_zero(a, f"{a[0]} % {a[1]}")


def divide_double(a: Sequence[Lowered], result: SqlType) -> str:
    return _unless_zero(a, f"{a[0]} / {a[1]}")


def divide_real(a: Sequence[Lowered], result: SqlType) -> str:
    """By way of doubles, which gives the nearest REAL; DuckDB's own division of REALs does not always."""
    quotient = f"CAST(CAST({a[0]} AS DOUBLE) / CAST({a[1]} AS DOUBLE) AS REAL)"
    return _unless_zero(a, quotient)


def divide(a: Sequence[Lowered], result: SqlType) -> str:
    """round(A * 10^k / B) over the digits of both operands, k making up for the scales.

    The operands are bound once, as n and d of a lambda's variable: written out at each use the text would be long.
    """
    scale = result.scale or 0
    wanted = scale - (a[0].type.scale or 0) + (a[1].type.scale or 0)
    divisor_digits = a[1].type.precision or _HUGEINT_DIGITS
    step = max(_HUGEINT_DIGITS - divisor_digits, _STEP_DIGITS_MIN)
    terms = [f"(mv_division.n // mv_division.d) * {_power(wanted)}"]
    remainder = "(mv_division.n % mv_division.d)"
    left = wanted
    while left > 0:
        taken = min(step, left)
        left -= taken
        shifted = f"({remainder} * {_power(taken)})"
        terms.append(f"({shifted} // mv_division.d)" + (f" * {_power(left)}" if left else ""))
        remainder = f"({shifted} % mv_division.d)"
    terms.append(f"(CASE WHEN {remainder} >= mv_division.d - {remainder} THEN 1 ELSE 0 END)")
    unit = f"CAST('{_unit(scale)}' AS DECIMAL({max(scale, 1)},{scale}))"
    quotient = cast(f"(CAST(mv_division.s * ({' + '.join(terms)}) AS DECIMAL(38,0)) * {unit})", result)
    checks = f"WHEN mv_division.n IS NULL THEN NULL WHEN mv_division.d = 0 THEN {_DIVIDED_BY_ZERO} "
    if divisor_digits > _HUGEINT_DIGITS - step:
        checks += f"WHEN mv_division.d >= {_power(_HUGEINT_DIGITS - step)} THEN {_OVERFLOW} "
    bound = (
        f"struct_pack(n := abs({_digits(a[0])}), d := abs({_digits(a[1])}), "
        f"s := CASE WHEN ({a[0]} < 0) <> ({a[1]} < 0) THEN -1 ELSE 1 END)"
    )
    return f"list_transform([{bound}], lambda mv_division: CASE {checks}ELSE {quotient} END)[1]"


def _digits(argument: Lowered) -> str:
    """The digits of a decimal without its point, as HUGEINT."""
    if not argument.type.scale:
        return f"CAST({argument} AS HUGEINT)"
    return f"CAST(replace(CAST({argument} AS VARCHAR), '.', '') AS HUGEINT)"


def _power(exponent: int) -> str:
    return f"CAST('1{'0' * exponent}' AS HUGEINT)"


def _unit(scale: int) -> str:
    return f"0.{'0' * (scale - 1)}1" if scale else "1"


def refused(what: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"{what} over aggregates is not supported",
        hint="Round or cast the operands to fewer digits, or compute it in the SELECT that reads the view.",
    )
