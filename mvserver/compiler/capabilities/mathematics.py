"""Mathematical functions. Integers go to the double-precision form where there is no integer one, as in PostgreSQL.

PostgreSQL also computes power, sqrt, exp and the logarithms of numerics exactly; here their arguments become doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities import duckdb_decimals as duck
from mvserver.compiler.capabilities.build import (
    BIGINT,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGER_CONSTANT,
    INTEGERS,
    capability,
    example,
    fails,
    on,
    same,
)
from mvserver.compiler.capabilities.model import Capability, Lowered
from mvserver.compiler.capabilities.refused import needs_constant
from mvserver.compiler.capabilities.spark_text import guard, spark_type
from mvserver.compiler.coercion import bounded_decimal
from mvserver.compiler.expressions import Expression, Literal
from mvserver.sql import types as t
from mvserver.sql.types import SqlType
from mvserver.sql.worked_examples import Example

_DOUBLE_NOTE = "numeric arguments are computed in double precision"
# Spark takes a zero's sign away, on which it depends to which side of the half turn an angle lies.
_ATAN2 = (
    "CASE WHEN {0} = 0 AND {1} IS NOT NULL AND NOT isnan({1}) "
    "THEN CASE WHEN cast({0} as string) = '-0.0' THEN -1D ELSE 1D END "
    "* CASE WHEN {1} < 0 OR cast({1} as string) = '-0.0' THEN pi() ELSE 0D END "
    "ELSE atan2({0}, {1}) END"
)


def _whole_type(arguments: Sequence[Expression]) -> SqlType:
    """Room for one more digit before the point, none after it."""
    precision, scale = arguments[0].type.precision or 38, arguments[0].type.scale or 0
    return bounded_decimal(precision - scale + 1, 0)


def _places(node: Expression) -> int:
    value = node.value if isinstance(node, Literal) else None
    if not isinstance(value, int):
        raise needs_constant("the number of digits")
    return value


def _rounded_type(arguments: Sequence[Expression]) -> SqlType:
    precision, scale = arguments[0].type.precision or 38, arguments[0].type.scale or 0
    kept = max(min(_places(arguments[1]), scale), 0)
    return bounded_decimal(precision - scale + 1 + kept, kept)


def _constant(argument: Lowered) -> int:
    value = argument.constant()
    if not isinstance(value, int):
        raise needs_constant("the number of digits")
    return value


def _to(result: SqlType, text: str) -> str:
    return f"CAST({text} AS {spark_type(result)})"


def _whole(function: str) -> Callable[[Sequence[Lowered], SqlType], str]:
    # Spark's answer for doubles is BIGINT: from 2**52 on every double is whole already.
    return lambda a, _: f"IF(abs({a[0]}) < 4503599627370496D, CAST({function}({a[0]}) AS DOUBLE), {a[0]})"


def _truncated(a: Sequence[Lowered], result: SqlType) -> str:
    places = _constant(a[1]) if len(a) == 2 else 0
    return _to(result, f"IF({a[0]} < 0, ceil({a[0]}, {places}), floor({a[0]}, {places}))")


def _duck_round(a: Sequence[Lowered], result: SqlType) -> str:
    places = _constant(a[1]) if len(a) == 2 else 0
    return duck.rounded(a[0], places, result)


def _double_function(
    name: str, meaning: str, examples: Sequence[Example], *, spark: str | None = None, aliases: Sequence[str] = ()
) -> Capability:
    return capability(
        name, meaning, [on((DOUBLE,), t.DOUBLE, spark or f"{name}({{0}})")], examples,
        aliases=aliases, note=_DOUBLE_NOTE,
    )  # fmt: skip


_COMPLEX = guard(
    "{0} < 0D AND {1} <> floor({1}) AND abs({1}) < 4503599627370496D",
    "2201F", "a negative number raised to a non-integer power yields a complex result", "power({0}, {1})",
)  # fmt: skip
POWER = guard("{0} = 0D AND {1} < 0D", "2201F", "zero raised to a negative power is undefined", _COMPLEX)


def _logarithm(function: str) -> str:
    inner = guard("{0} < 0D", "2201E", "cannot take logarithm of a negative number", f"{function}({{0}})")
    return guard("{0} = 0D", "2201E", "cannot take logarithm of zero", inner)


def _bucket(a: Sequence[Lowered], result: SqlType) -> str:
    """Spark's is NULL where PostgreSQL's is an error."""
    given = " AND ".join(f"{each} IS NOT NULL" for each in a)
    endless = " OR ".join(f"abs({each}) = CAST('Infinity' AS DOUBLE)" for each in a[1:3])
    wrong = (
        (f"{a[3]} <= 0", "count must be greater than zero"),
        (" OR ".join(f"isnan({each})" for each in a[:3]), "operand, lower bound, and upper bound cannot be NaN"),
        (endless, "lower and upper bounds must be finite"),
        (f"{a[1]} = {a[2]}", "lower bound cannot equal upper bound"),
    )
    found = f"CAST(width_bucket({', '.join(map(str, a))}) AS INT)"
    for condition, message in reversed(wrong):
        found = guard(condition, sqlstates.INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION, message, found)
    return f"IF({given}, {found}, NULL)"


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "abs", "the absolute value",
        [
            *(on((p,), same(), "abs({0})", "abs({0})") for p in (*INTEGERS, DECIMAL, FLOAT, DOUBLE)),
        ],
        [
            example("abs(-5)", "5"), example("abs(-1.50)", "1.50"), example("abs(CAST(-2.5 AS double precision))",
            "2.5"),
            fails("abs(-2147483647 - 1)", "22003"),
        ],
    ),
    capability(
        "ceil", "the next whole number upwards",
        [
            on((DECIMAL,), _whole_type, lambda a, r: _to(r, f"ceil({a[0]})"),
               lambda a, r: duck.cast(f"ceil({a[0]})", r)),
            on((DOUBLE,), t.DOUBLE, _whole("ceil"), "ceil({0})"),
        ],
        [example("ceil(1.2)", "2"), example("ceil(-1.7)", "-1"), example("ceil(CAST(1.5 AS double precision))", "2")],
        aliases=("ceiling",), note="a double between -1 and 0 gives 0 where PostgreSQL gives -0",
    ),
    capability(
        "floor", "the next whole number downwards",
        [
            on(
                (DECIMAL,), _whole_type, lambda a, r: _to(r, f"floor({a[0]})"),
                lambda a, r: duck.cast(f"floor({a[0]})", r),
            ),
            on((DOUBLE,), t.DOUBLE, _whole("floor"), "floor({0})"),
        ],
        [example("floor(1.7)", "1"), example("floor(-1.2)", "-2"), example("floor(CAST(2.5 AS double precision))",
        "2")],
    ),
    capability(
        "round", "rounded: numerics half away from zero, doubles half to even",
        [
            on((DECIMAL,), _whole_type, lambda a, r: _to(r, f"round({a[0]}, 0)"), _duck_round),
            on((DOUBLE,), t.DOUBLE, "rint({0})", "round_even({0}, 0)"),
            on(
                (DECIMAL, INTEGER_CONSTANT), _rounded_type,
                lambda a, r: _to(r, f"round({a[0]}, {_constant(a[1])})"), _duck_round,
            ),
            on((DOUBLE, INTEGER_CONSTANT), t.DOUBLE, lambda a, _: f"round({a[0]}, {_constant(a[1])})",
               lambda a, _: duck.rounded_double(a[0], _constant(a[1]))),
        ],
        [
            example("round(2.5)", "3"), example("round(-2.5)", "-3"), example("round(2.345, 2)", "2.35"),
            example("round(CAST(2.5 AS double precision))", "2"), example("round(1234.5, -2)", "1200"),
            example("round(CAST(2.345 AS double precision), 2)", "2.35", postgres=False),
            example("round(CAST(NULL AS numeric(5,2)), 1)", None),
        ],
        note="the number of digits must be a constant; with it a double is rounded half away from zero by its shortest "
        "decimal form (PostgreSQL has no such function)",
    ),
    capability(
        "trunc", "towards zero, to whole numbers or to so many digits",
        [
            on((DECIMAL,), _whole_type, _truncated),
            on((DOUBLE,), t.DOUBLE, "IF(abs({0}) < 4503599627370496D, CAST(CAST({0} AS BIGINT) AS DOUBLE), {0})"),
            on((DECIMAL, INTEGER_CONSTANT), _rounded_type, _truncated),
        ],
        [
            example("trunc(42.8)", "42"), example("trunc(-42.8)", "-42"), example("trunc(42.4382, 2)", "42.43"),
            example("trunc(CAST(-2.7 AS double precision))", "-2"), example("trunc(1299.5, -2)", "1200"),
        ],
        aliases=("truncate",), note="the number of digits must be a constant",
    ),
    capability(
        "div", "the whole part of a quotient, of numerics",
        [
            on(
                (DECIMAL, DECIMAL), t.decimal(38, 0),
                # a - a % b divides exactly, so no digit is rounded on the way.
                "CAST((({0} - ({0} % {1})) / {1}) AS DECIMAL(38,0))",
            )
        ],
        [example("div(9, 4)", "2"), example("div(-9, 4)", "-2"), example("div(7.5, 2)", "3"), fails("div(1, 0)",
        "22012")],
    ),
    capability(
        "power", "the first argument to the power of the second",
        [on((DOUBLE, DOUBLE), t.DOUBLE, POWER)],
        [
            fails("power(CAST(-2 AS double precision), CAST(0.5 AS double precision))", "2201F"),
            fails("power(CAST(0 AS double precision), CAST(-1 AS double precision))", "2201F"),
            example("power(CAST(2 AS double precision), 10)", "1024"),
            example("power(CAST(4 AS double precision), CAST(0.5 AS double precision))", "2"),
        ],
        aliases=("pow",), note=_DOUBLE_NOTE + "; results outside the range of doubles are Infinity or 0",
    ),
    capability(
        "sqrt", "the square root",
        [
            on(
                (DOUBLE,), t.DOUBLE,
                guard("{0} < 0D", "2201F", "cannot take square root of a negative number", "sqrt({0})"),
                "(CASE WHEN {0} < 0 THEN error('mvserver:2201F:cannot take square root of a negative number') "
                "ELSE sqrt({0}) END)",
            )
        ],
        [
            example("sqrt(CAST(16 AS double precision))", "4"), example("sqrt(CAST(2 AS double precision))",
            "1.4142135623730951"), fails("sqrt(CAST(-1 AS double precision))", "2201F"),
        ],
        note=_DOUBLE_NOTE,
    ),
    _double_function(
        "cbrt", "the cube root",
        [example("cbrt(CAST(1 AS double precision))", "1"), example("cbrt(CAST(-8 AS double precision))", "-2")],
    ),
    _double_function(
        "exp", "e to the power of the argument",
        [example("exp(CAST(0 AS double precision))", "1"),
        example("round(CAST(exp(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "2.718282"),
         fails("exp(CAST(1000 AS double precision))", "22003")],
        spark=guard("{0} > 709.782712893384D AND {0} < CAST('Infinity' AS DOUBLE)",
                    sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow", "exp({0})"),
    ),
    _double_function(
        "ln", "the natural logarithm",
        [
            example("ln(CAST(1 AS double precision))", "0"), fails("ln(CAST(0 AS double precision))", "2201E"),
            fails("ln(CAST(-1 AS double precision))", "2201E"),
        ],
        spark=_logarithm("ln"),
    ),
    capability(
        "log", "the logarithm to base 10, or to the base given first",
        [
            on((DOUBLE,), t.DOUBLE, _logarithm("log10")),
            on(
                (DOUBLE, DOUBLE), t.DOUBLE,
                guard("{0} <= 0D OR {1} <= 0D", "2201E", "cannot take logarithm of a value that is not positive",
                      "(ln({1}) / ln({0}))"),
            ),
        ],
        [
            example("log(CAST(100 AS double precision))", "2"),
            example("round(CAST(log(2.0, 64.0) AS numeric(20,10)), 6)", "6.000000"),
            fails("log(CAST(0 AS double precision))", "2201E"),
        ],
        note=_DOUBLE_NOTE,
    ),
    _double_function(
        "log10", "the logarithm to base 10",
        [
            example("log10(CAST(1000 AS double precision))", "3"),
            fails("log10(CAST(0 AS double precision))", "2201E"),
        ],
        spark=_logarithm("log10"),
    ),
    _double_function(
        "log2", "the logarithm to base 2",
        [
            example("log2(CAST(8 AS double precision))", "3", postgres=False),
            fails("log2(CAST(0 AS double precision))", "2201E", postgres=False),
        ],
        spark=_logarithm("log2"),
    ),
    capability(
        "sign", "-1, 0 or 1",
        [
            on((DECIMAL,), t.decimal(1, 0), "CAST(sign({0}) AS DECIMAL(1,0))"),
            on((DOUBLE,), t.DOUBLE, "IF(isnan({0}), 0D, sign({0}))"),
        ],
        [example("sign(-8.4)", "-1"), example("sign(CAST(0 AS double precision))", "0"), example("sign(5.5)", "1")],
    ),
    *(
        _double_function(name, meaning, [example(f"{name}(CAST(0 AS double precision))", zero), second])
        for name, meaning, zero, second in (
            ("sin", "the sine of radians",
            "0", example("round(CAST(sin(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "0.841471")),
            ("cos", "the cosine of radians",
            "1", example("round(CAST(cos(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "0.540302")),
            ("tan", "the tangent of radians",
            "0", example("round(CAST(tan(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "1.557408")),
            ("atan", "the arc tangent in radians",
            "0", example("round(CAST(atan(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "0.785398")),
            ("sinh", "the hyperbolic sine",
            "0", example("round(CAST(sinh(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "1.175201")),
            ("cosh", "the hyperbolic cosine",
            "1", example("round(CAST(cosh(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "1.543081")),
            ("tanh", "the hyperbolic tangent",
            "0", example("round(CAST(tanh(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "0.761594")),
            ("degrees", "radians as degrees",
            "0", example("round(CAST(degrees(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "57.295780")),
            ("radians", "degrees as radians",
            "0", example("round(CAST(radians(CAST(180 AS double precision)) AS numeric(20,10)), 6)", "3.141593")),
        )
    ),
    capability(
        "cot", "the cotangent of radians", [on((DOUBLE,), t.DOUBLE, "(1D / tan({0}))")],
        [
            example("round(CAST(cot(CAST(1 AS double precision)) AS numeric(20,10)), 6)", "0.642093"),
            example("cot(CAST(NULL AS double precision))", None),
        ],
        note="of zero it is an error where PostgreSQL answers Infinity",
    ),
    *(
        capability(
            name, meaning,
            [
                on(
                    (DOUBLE,), t.DOUBLE,
                    guard("abs({0}) > 1D AND NOT isnan({0})", sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
                          "input is out of range", f"{name}({{0}})"),
                )
            ],
            [example(f"{name}(CAST({at} AS double precision))", "0"), fails(f"{name}(CAST(2 AS double precision))",
            "22003")],
        )
        for name, meaning, at in (("asin", "the arc sine in radians", 0), ("acos", "the arc cosine in radians", 1))
    ),
    capability(
        "atan2", "the angle, in radians, of the point (second, first)",
        [on((DOUBLE, DOUBLE), t.DOUBLE, _ATAN2)],
        [
            example("atan2(CAST(0 AS double precision), CAST(1 AS double precision))", "0"),
            example("round(CAST(atan2(CAST(1 AS double precision), CAST(1 AS double precision)) AS numeric(20,10)), 6)",
            "0.785398"),
            example("CAST(atan2(CAST('-0' AS double precision), CAST(-2 AS double precision)) AS numeric(20,10))",
            "-3.1415926536"),
            example("CAST(atan2(CAST(0 AS double precision), CAST('-0' AS double precision)) AS numeric(20,10))",
            "3.1415926536"),
        ],
    ),
    capability(
        "pi", "the number pi", [on((), t.DOUBLE, "pi()")],
        [example("pi()", "3.141592653589793"), example("round(CAST(pi() AS numeric(20,10)), 2)", "3.14")],
    ),
    capability(
        "width_bucket", "the bucket, of equally wide ones, that a value falls into; 0 and count + 1 outside",
        [on((DOUBLE, DOUBLE, DOUBLE, INTEGER), t.INTEGER, _bucket)],
        [
            example("width_bucket(CAST(5.35 AS float8), CAST(0.024 AS float8), CAST(10.06 AS float8), 5)", "3"),
            example("width_bucket(CAST(-1 AS float8), CAST(0 AS float8), CAST(10 AS float8), 5)", "0"),
            example("width_bucket(CAST(10 AS float8), CAST(0 AS float8), CAST(10 AS float8), 5)", "6"),
            fails("width_bucket(CAST(5 AS float8), CAST(0 AS float8), CAST(10 AS float8), 0)", "2201G"),
            fails("width_bucket(CAST(5 AS float8), CAST(1 AS float8), CAST(1 AS float8), 3)", "2201G"),
            fails("width_bucket(CAST('NaN' AS float8), CAST(0 AS float8), CAST(1 AS float8), 3)", "2201G"),
        ],
        note="numeric arguments are computed in double precision",
    ),
    capability(
        "factorial", "the factorial, for arguments up to 20", [on((BIGINT,), t.decimal(38, 0), guard(
            "{0} < 0L OR {0} > 20L", sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format",
            "CAST(factorial(CAST({0} AS INT)) AS DECIMAL(38,0))"))],
        [example("factorial(5)", "120"), example("factorial(0)", "1"), fails("factorial(-1)", "22003")],
        note="arguments above 20 are an error",
    ),
    capability(
        "isnan", "is it not a number", [on((DOUBLE,), t.BOOLEAN, "IF({0} IS NULL, NULL, isnan({0}))", "isnan({0})")],
        [
            example("isnan(CAST('NaN' AS double precision))", "true", postgres=False),
            example("isnan(CAST(1 AS double precision))", "false", postgres=False),
        ],
    ),
)  # fmt: skip
