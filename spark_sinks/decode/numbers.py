"""Numbers in text as exact types, without loss: the digits are compared with the type, not the rounded value."""

from __future__ import annotations

from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType

from mvserver.limits import NUMBER_TEXT_BYTES_MAX
from spark_sinks.decode.columns import text

_DIGITS_OF_BIGINT = 19
_LEAST_FLOAT = "7.006492321624085E-46D"  # half of the least: what is not greater is zero as a FLOAT
# The greatest double that is rounded to the greatest FLOAT, which PostgreSQL and Java write as 3.4028235e38: above it.
_GREATEST: dict[type[DataType], str] = {DoubleType: "1.7976931348623157E308D", FloatType: "3.4028235677973362E38D"}
_IS_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_IS_NOT_ZERO = r"^[+-]?[0.]*+[1-9]"
# Sign, digits before and after the point, exponent. With one of four digits no number fits, but zero.
_WITH_EXPONENT = r"^([+-]?)0*+(?=\.?[0-9])([0-9]*+)(?:\.([0-9]*+))?+[eE]([+-]?)0*([0-9]{1,3})$"
_ZERO_WITH_EXPONENT = r"^[+-]?(?:0++\.?+0*+|\.0++)[eE][+-]?[0-9]++$"


def exact_number(kind: DataType, value: str) -> str:
    """The number in a text as a whole number or DECIMAL that is equal to it; NULL where there is none."""
    whole, scale = (
        (kind.precision - kind.scale, kind.scale) if isinstance(kind, DecimalType) else (_DIGITS_OF_BIGINT, 0)
    )
    # As many digits as the type has; after them nothing but zeros.
    fits = rf"^(?=[+-]?\.?[0-9])([+-]?0*+[0-9]{{0,{whole}}}+(?:\z|\.[0-9]{{0,{scale}}}+0?+(?=0*+\z)))"
    digits = f"nullif(regexp_extract(coalesce({_plain(value)}, {value}), {text(fits)}, 1), '')"
    if not isinstance(kind, DecimalType):
        digits = f"try_cast({digits} as decimal({_DIGITS_OF_BIGINT},0))"
    return _if_short(value, f"try_cast({digits} as {kind.simpleString()})")


def approximate_number(kind: DataType, value: str) -> str:
    """The number in a text as a FLOAT or DOUBLE in whose range it is, else NULL."""
    number, name = f"try_cast({value} as double)", kind.simpleString()
    not_too_small = f"NOT {value} RLIKE {text(_IS_NOT_ZERO)}"
    return _if_short(
        value,
        f"CASE WHEN {value} RLIKE {text(_IS_NUMBER)} AND {in_range(kind, number, not_too_small)} "
        f"THEN try_cast({number} as {name}) "
        f"WHEN lower({value}) IN ('nan', 'infinity', '+infinity', '-infinity') THEN try_cast({value} as {name}) END",
    )


def _if_short(value: str, number: str) -> str:
    """A long text is no number: the patterns, and the reading of its digits, would take the square of its length."""
    return f"CASE WHEN octet_length({value}) <= {NUMBER_TEXT_BYTES_MAX} THEN {number} END"


def in_range(kind: DataType, double: str, if_zero: str) -> str:
    """Whether a double is of the type's range; a zero is where ``if_zero`` holds."""
    greatest = _GREATEST[type(kind)]
    within = f"{double} BETWEEN -{greatest} AND {greatest}"
    not_small = f"{double} <> 0" if isinstance(kind, DoubleType) else f"abs({double}) > {_LEAST_FLOAT}"
    return f"({within} AND ({not_small} OR ({double} = 0 AND {if_zero})))"


def _plain(value: str) -> str:
    """A number with an exponent, without it; NULL for all else. By a function of its own, since it is seldom."""
    parts = f"split(regexp_replace({value}, {text(_WITH_EXPONENT)}, '$1,$2,$3,$4$5'), ',')"
    point = "(length(e[1]) + cast(e[3] as int))"
    digits = "concat(e[1], e[2])"
    shifted = (
        f"CASE WHEN {point} <= 0 THEN concat('0.', repeat('0', -{point}), {digits}) "
        f"ELSE concat(rpad(substring({digits}, 1, {point}), {point}, '0'), '.', substring({digits}, {point} + 1)) END"
    )
    return (
        f"CASE WHEN {value} RLIKE {text(_ZERO_WITH_EXPONENT)} THEN '0' "
        f"WHEN {value} RLIKE {text(_WITH_EXPONENT)} THEN transform(array({parts}), e -> concat(e[0], {shifted}))[0] END"
    )
