"""The operators + - * / % and unary minus over numbers, and the bit operators.

Integer results keep the wider operand's type and overflow is an error; integer division truncates. DECIMAL results:

========  ==========================  =========================================
operator  scale                       digits before the point
========  ==========================  =========================================
a + b     max(s1, s2)                 max(p1 - s1, p2 - s2) + 1
a * b     s1 + s2                     (p1 - s1) + (p2 - s2) + 1
a / b     max(6, s1 + p2 + 1)         p1 - s1 + s2
a % b     max(s1, s2)                 min(p1 - s1, p2 - s2)
========  ==========================  =========================================

cut to 38 digits by ``coercion.bounded_decimal``; what is cut is rounded half away from zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mvserver.compiler.capabilities import date_arithmetic as dates
from mvserver.compiler.capabilities import duckdb_decimals as duck
from mvserver.compiler.capabilities.build import (
    BIGINT,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGERS,
    capability,
    example,
    fails,
    on,
    same,
)
from mvserver.compiler.capabilities.mathematics import POWER
from mvserver.compiler.capabilities.model import Capability, Lowered, Lowering, Overload
from mvserver.compiler.capabilities.spark_text import spark_type
from mvserver.compiler.coercion import bounded_decimal
from mvserver.compiler.expressions import Expression
from mvserver.sql.types import Kind, SqlType

_DECIMAL_NOTE = "the scale of a numeric result is fixed by the operands' types, not by their values"


def _digits(node: Expression) -> tuple[int, int]:
    return node.type.precision or 38, node.type.scale or 0


def sum_type(arguments: Sequence[Expression]) -> SqlType:
    (p1, s1), (p2, s2) = _digits(arguments[0]), _digits(arguments[1])
    scale = max(s1, s2)
    return bounded_decimal(max(p1 - s1, p2 - s2) + 1 + scale, scale)


def product_type(arguments: Sequence[Expression]) -> SqlType:
    (p1, s1), (p2, s2) = _digits(arguments[0]), _digits(arguments[1])
    return bounded_decimal(p1 + p2 + 1, s1 + s2)


def quotient_type(arguments: Sequence[Expression]) -> SqlType:
    (p1, s1), (p2, s2) = _digits(arguments[0]), _digits(arguments[1])
    scale = max(6, s1 + p2 + 1)
    return bounded_decimal(p1 - s1 + s2 + scale, scale)


def remainder_type(arguments: Sequence[Expression]) -> SqlType:
    (p1, s1), (p2, s2) = _digits(arguments[0]), _digits(arguments[1])
    scale = max(s1, s2)
    return bounded_decimal(min(p1 - s1, p2 - s2) + scale, scale)


def _decimal_spark(sign: str) -> Lowering:
    """Spark's own result type is the same by its default rule; the cast makes that a stated fact."""
    return lambda a, result: f"CAST(({a[0]} {sign} {a[1]}) AS {spark_type(result)})"


def _binary(sign: str, decimal_rule: Callable[[Sequence[Expression]], SqlType]) -> list[Callable[[str], Overload]]:
    plain = f"({{0}} {sign} {{1}})"
    integers = [on((p, p), same(), plain, plain) for p in INTEGERS]
    decimals = on((DECIMAL, DECIMAL), decimal_rule, _decimal_spark(sign), duck.exact(sign))
    doubles = [on((p, p), same(), plain, plain) for p in (FLOAT, DOUBLE)]
    return [*integers, decimals, *doubles]


def _integer_division(a: Sequence[Lowered], result: SqlType) -> str:
    # Spark's div gives BIGINT; the cast back finds the one quotient that does not fit, -min / -1.
    divided = f"({a[0]} div {a[1]})"
    return divided if result.kind is Kind.BIGINT else f"CAST({divided} AS {spark_type(result)})"


_division = [
    *(on((p, p), same(), _integer_division, duck.integer_divide) for p in INTEGERS),
    on((DECIMAL, DECIMAL), quotient_type, _decimal_spark("/"), duck.divide),
    on((FLOAT, FLOAT), same(), "CAST(({0} / {1}) AS FLOAT)", duck.divide_real),
    on((DOUBLE, DOUBLE), same(), "({0} / {1})", duck.divide_double),
]
_remainder = [
    *(on((p, p), same(), "({0} % {1})", duck.integer_remainder) for p in INTEGERS),
    on((DECIMAL, DECIMAL), remainder_type, _decimal_spark("%")),
]


def _bits(sign: str) -> list[Callable[[str], Overload]]:
    return [on((p, p), same(), f"({{0}} {sign} {{1}})") for p in INTEGERS]


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "+", "sum; an integer that does not fit its type is an error; a later date or time",
        [*_binary("+", sum_type), *dates.PLUS],
        [
            example("2 + 3", "5"),
            example("CAST(1 AS smallint) + 2", "3"),
            example("1.50 + 2", "3.50"),
            example("0.1 + 0.2e0", "0.3"),
            example("CAST(0.1 AS double precision) + CAST(0.2 AS double precision)", "0.30000000000000004"),
            example("CAST(NULL AS integer) + 1", None),
            fails("2147483647 + 1", "22003"),
            fails("CAST(32767 AS smallint) + CAST(1 AS smallint)", "22003"),
            fails("9223372036854775807 + 1", "22003"),
            *dates.PLUS_EXAMPLES,
        ],
        operator=True,
        note="a double too large to be held is Infinity, not an error",
    ),
    capability(
        "-", "difference; with one operand, the negative", [
            *_binary("-", sum_type),
            *dates.MINUS,
            *(on((p,), same(), "(- {0})", "(- {0})") for p in (*INTEGERS, DECIMAL, FLOAT, DOUBLE)),
        ],
        [
            example("2 - 3", "-1"),
            example("- CAST(5 AS bigint)", "-5"),
            example("1.5 - 2.25", "-0.75"),
            example("-(-5)", "5"),
            fails("-2147483647 - 2", "22003"),
            *dates.MINUS_EXAMPLES,
        ],
        operator=True,
        note="a double too large to be held is Infinity, not an error",
    ),
    capability(
        "*", "product", [*_binary("*", product_type), *dates.TIMES],
        [
            example("6 * 7", "42"),
            example("1.5 * 2.5", "3.75"),
            example("2 * CAST(1.5 AS double precision)", "3"),
            example("CAST(NULL AS numeric(5,2)) * 2", None),
            fails("100000 * 100000", "22003"),
            fails("5000000000 * 5000000000", "22003"),
            *dates.TIMES_EXAMPLES,
        ],
        operator=True,
        note="a double too large to be held is Infinity, not an error",
    ),
    capability(
        "/", "quotient; of integers truncated towards zero, of numerics rounded; by zero is an error", _division,
        [
            example("5 / 2", "2"),
            example("-5 / 2", "-2"),
            example("CAST(7 AS smallint) / CAST(2 AS smallint)", "3"),
            example("CAST(1 AS double precision) / 4", "0.25"),
            example("round(10.0 / 4, 2)", "2.50"),
            example("round(2.0 / 3, 4)", "0.6667"),
            example("CAST(NULL AS integer) / 0", None),
            example("CAST(NULL AS numeric(5,2)) / 0", None),
            fails("1 / 0", "22012"),
            fails("1.0 / 0", "22012"),
            fails("CAST(1 AS double precision) / 0", "22012"),
        ],
        operator=True,
        note=_DECIMAL_NOTE,
    ),
    capability(
        "%", "remainder, with the sign of the first operand; by zero is an error", _remainder,
        [
            example("5 % 3", "2"),
            example("-5 % 3", "-2"),
            example("5 % -3", "2"),
            example("mod(5.5, 2)", "1.5"),
            fails("5 % 0", "22012"),
        ],
        aliases=("mod",), operator=True,
    ),
    capability(
        "^", "first operand to the power of the second, in double precision",
        [on((DOUBLE, DOUBLE), same(), POWER)],
        [
            example("CAST(2 AS double precision) ^ 10", "1024"),
            example("CAST(9 AS double precision) ^ CAST(0.5 AS double precision)", "3"),
        ],
        operator=True,
        note="numeric operands are computed in double precision; results outside its range are Infinity or 0",
    ),
    capability("&", "bitwise and", _bits("&"), [example("12 & 10", "8"), example("-1 & 255", "255")], operator=True),
    capability("|", "bitwise or", _bits("|"), [example("12 | 3", "15"), example("8 | 8", "8")], operator=True),
    capability(
        "#", "bitwise exclusive or", _bits("^"), [example("12 # 10", "6"), example("5 # 5", "0")], operator=True
    ),
    capability(
        "prefix ~", "bitwise not", [on((p,), same(), "(~ {0})") for p in INTEGERS],
        [example("~ 0", "-1"), example("~ 5", "-6")], operator=True,
    ),
    capability(
        "<<", "shift left; bits that leave the type are lost",
        [on((p, INTEGER), same(), "shiftleft({0}, {1})") for p in (INTEGER, BIGINT)],
        [example("1 << 4", "16"), example("CAST(1 AS bigint) << 40", "1099511627776")], operator=True,
    ),
    capability(
        ">>", "shift right, keeping the sign",
        [on((p, INTEGER), same(), "shiftright({0}, {1})") for p in (INTEGER, BIGINT)],
        [example("-16 >> 2", "-4"), example("256 >> 4", "16")], operator=True,
    ),
    capability(
        "normalized key", "a floating-point group key with one zero and one NaN",
        [
            # Adding zero turns -0.0 into 0.0; NaN has many bit patterns and gets the usual one.
            on((FLOAT,), same(), "IF(isnan({0}), CAST('NaN' AS FLOAT), {0} + CAST('0' AS FLOAT))"),
            on((DOUBLE,), same(), "IF(isnan({0}), CAST('NaN' AS DOUBLE), {0} + 0D)"),
        ],
        (), operator=True, internal=True,
    ),
)  # fmt: skip
