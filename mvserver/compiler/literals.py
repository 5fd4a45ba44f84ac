"""Constants: how a text literal becomes a value of a type, by PostgreSQL's input rules, and its canonical form.

A string literal has no type until something gives it one. Until then it is ``Literal(NULL, text)``; an untyped NULL
is ``Literal(NULL, None)``. Canonical forms: dates ``YYYY-MM-DD``, times ``HH:MM:SS[.ffffff]``, timestamps with a space
between, instants the same in UTC, intervals ``months days microseconds``.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from mvserver import sqlstates
from mvserver.compiler.expressions import Expression, Literal
from mvserver.compiler.intervals import parse_interval
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.types import Kind, SqlType

INTEGER_RANGES = {
    Kind.TINYINT: (-(2**7), 2**7 - 1),
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
}
_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


def is_unknown(node: Expression) -> bool:
    """A string literal or NULL that has no type yet."""
    return isinstance(node, Literal) and node.type.kind is Kind.NULL


def number_literal(text: str) -> Literal:
    """An unquoted number: integer, bigint or numeric by its spelling and size, as in PostgreSQL."""
    if re.fullmatch(r"\d+", text):
        value = int(text)
        for kind in (Kind.INTEGER, Kind.BIGINT):
            if value <= INTEGER_RANGES[kind][1]:
                return Literal(SqlType(kind), value)
    number = Decimal(text)
    return Literal(decimal_type_of(number), number)


def decimal_type_of(number: Decimal) -> SqlType:
    """The narrowest DECIMAL that holds the number as written; 22003 where 38 digits do not."""
    parts = number.as_tuple()
    exponent = int(parts.exponent)
    scale = max(-exponent, 0)
    digits = max(len(parts.digits) + max(exponent, 0), scale, 1)
    if digits > t.DECIMAL_PRECISION_MAX:
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
            "numeric constant out of range",
            detail=f"A numeric value has at most {t.DECIMAL_PRECISION_MAX} digits.",
        )
    return t.decimal(digits, scale)


def typed_literal(node: Literal, target: SqlType, position: int | None = None) -> Expression:
    """An unknown literal read as ``target``; NULL stays NULL, of that type."""
    if node.value is None:
        return Literal(target, None)
    try:
        return Literal(target, read_value(str(node.value), target))
    except SqlError as error:
        error.position = error.position or position
        raise


def read_value(text: str, target: SqlType) -> str | int | float | bool | Decimal | bytes:
    kind = target.kind
    if kind is Kind.VARCHAR:
        return text if target.length is None else text[: target.length]
    if target.is_integer:
        return _integer(text, target)
    if kind is Kind.DECIMAL:
        return _decimal(text, target)
    if target.is_approximate:
        return _float(text, target)
    if kind is Kind.BOOLEAN:
        return _boolean(text)
    if kind is Kind.DATE:
        return _timestamp(text, target)[0].date().isoformat()
    if kind is Kind.TIME:
        return _time(text).isoformat()
    if kind is Kind.TIMESTAMP:
        return _timestamp_text(_timestamp(text, target)[0])
    if kind is Kind.TIMESTAMP_LTZ:
        moment, offset = _timestamp(text, target)
        return _timestamp_text(moment - (offset or dt.timedelta()))
    if kind is Kind.INTERVAL:
        return parse_interval(text)
    if kind is Kind.VARBINARY:
        return _binary(text)
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"a text constant cannot be read as type {postgres_name(target)}",
        hint="Build nested values with ARRAY[...] or MAP[...].",
    )


def _invalid(type_: SqlType, text: str) -> SqlError:
    return SqlError(
        sqlstates.INVALID_TEXT_REPRESENTATION, f'invalid input syntax for type {postgres_name(type_)}: "{text}"'
    )


def _integer(text: str, target: SqlType) -> int:
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text, re.ASCII):
        raise _invalid(target, text)
    value = int(text)
    low, high = INTEGER_RANGES[target.kind]
    if not low <= value <= high:
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
            f'value "{text.strip()}" is out of range for type {postgres_name(target)}',
        )
    return value


def _decimal(text: str, target: SqlType) -> Decimal:
    if not re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?\s*", text, re.ASCII):
        raise _invalid(target, text)
    return fit_decimal(Decimal(text.strip()), target)


def fit_decimal(number: Decimal, target: SqlType) -> Decimal:
    """Rounded half away from zero to the type's scale; 22003 where the digits before the point do not fit."""
    scale = target.scale or 0
    precision = target.precision or t.DECIMAL_PRECISION_MAX
    try:
        rounded = number.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    except InvalidOperation:
        rounded = None
    if rounded is None or rounded.copy_abs() >= Decimal(10) ** (precision - scale):
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
            "numeric field overflow",
            detail=f"A field with precision {precision}, scale {scale} must round to an absolute value less than "
            f"10^{precision - scale}.",
        )
    return rounded


def _float(text: str, target: SqlType) -> float:
    stripped = text.strip()
    special = re.fullmatch(r"([+-]?)(inf|infinity|nan)", stripped, re.IGNORECASE)
    if special:
        return float(stripped)
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", stripped, re.ASCII):
        raise _invalid(target, text)
    value = float(stripped)
    if target.kind is Kind.FLOAT and not math.isinf(value):
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            value = math.inf
    if math.isinf(value):
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f'"{stripped}" is out of range for type {postgres_name(target)}'
        )
    return value


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    for value, full in ((True, ("true", "yes")), (False, ("false", "no"))):
        if word and any(spelled.startswith(word) for spelled in full):
            return value
    if word in ("on", "1"):
        return True
    if word in ("off", "of", "0"):
        return False
    raise _invalid(t.BOOLEAN, text)


_TIMESTAMP = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[T\s]\s*)(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*"
    r"(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?)?\s*",
    re.ASCII | re.IGNORECASE,
)
_TIME = re.compile(r"\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*", re.ASCII)


def _micros(fraction: str | None) -> int:
    """Microseconds, rounded as PostgreSQL rounds further digits."""
    return round(int((fraction or "0").ljust(9, "0")) / 1000)


def _timestamp(text: str, target: SqlType) -> tuple[dt.datetime, dt.timedelta | None]:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        if text.strip().lower() in ("now", "today", "tomorrow", "yesterday"):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'the special value "{text.strip()}" is not supported in a continuous query',
                hint="Its value would depend on when a row is computed. Write the date out.",
            )
        raise SqlError(
            sqlstates.INVALID_DATETIME_FORMAT, f'invalid input syntax for type {postgres_name(target)}: "{text}"'
        )
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = dt.datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError as cause:
        raise SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, f'date/time field value out of range: "{text}"') from cause
    return moment + dt.timedelta(microseconds=_micros(fraction)), _offset(zone)


def _offset(zone: str | None) -> dt.timedelta | None:
    if zone is None:
        return None
    if zone.upper() in ("Z", "UTC"):
        return dt.timedelta()
    digits = zone[1:].replace(":", "")
    hours, minutes = (int(digits), 0) if len(digits) <= 2 else (int(digits[:-2]), int(digits[-2:]))
    offset = dt.timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset


def _time(text: str) -> dt.time:
    found = _TIME.fullmatch(text)
    if found is None:
        raise SqlError(
            sqlstates.INVALID_DATETIME_FORMAT, f'invalid input syntax for type {postgres_name(t.TIME)}: "{text}"'
        )
    hour, minute, second, fraction = found.groups()
    try:
        return dt.time(int(hour), int(minute), int(second or 0), min(_micros(fraction), 999_999))
    except ValueError as cause:
        raise SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, f'date/time field value out of range: "{text}"') from cause


def _timestamp_text(moment: dt.datetime) -> str:
    return moment.isoformat(sep=" ")


def _binary(text: str) -> bytes:
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError as cause:
            raise SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, f'invalid hexadecimal data: "{text[2:]}"') from cause
    if "\\" in text:
        raise SqlError(
            sqlstates.INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type bytea",
            hint="Write binary constants in hexadecimal, as '\\x48656c6c6f'.",
        )
    return text.encode()
