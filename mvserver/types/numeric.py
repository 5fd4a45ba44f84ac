"""numeric: exact decimals, with the scale their type modifier gives them."""

from __future__ import annotations

import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver.types import oids
from mvserver.types.column import (
    BINARY_FORMAT,
    Column,
    Encoder,
    any_true,
    as_text,
    patched,
    per_cell,
    quick,
)
from mvserver.types.parameter import Decoder, bad_binary, bad_text, out_of_range

_HEAD = struct.Struct("!hhHH")  # digits, weight, sign, display scale
_NEGATIVE, _NAN, _INFINITY, _MINUS_INFINITY = 0x4000, 0xC000, 0xD000, 0xF000
_SPECIAL = {_NAN: Decimal("NaN"), _INFINITY: Decimal("Infinity"), _MINUS_INFINITY: Decimal("-Infinity")}
_PLAIN_SCALE_MAX = 6  # Arrow writes small numbers of a larger scale with an exponent
_WHOLE_DIGITS_MAX, _FRACTION_DIGITS_MAX = 131_072, 16_383  # PostgreSQL's bounds
_TEXT_CHARACTERS_MAX = 2 * (_WHOLE_DIGITS_MAX + _FRACTION_DIGITS_MAX)  # megabytes of digits would hold up all threads

_TEXT = re.compile(r"\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,9}))?)\s*", re.ASCII)
_TEXT_SPECIAL = re.compile(r"\s*(nan|[+-]?inf(?:inity)?)\s*", re.ASCII | re.IGNORECASE)


def typmod_scale(typmod: int) -> int | None:
    """The scale that a numeric's type modifier asks for; None where it has none."""
    return None if typmod < 4 else (typmod - 4) & 0x7FF


def numeric_text(value: Decimal) -> str:
    if value.is_nan():
        return "NaN"
    if value.is_infinite():
        return "Infinity" if value > 0 else "-Infinity"
    if not value:
        value = value.copy_abs()  # numeric has no minus zero
    return format(value, "f")


def numeric_binary(value: Decimal) -> bytes:
    if value.is_nan():
        return _HEAD.pack(0, 0, _NAN, 0)
    if value.is_infinite():
        return _HEAD.pack(0, 0, _INFINITY if value > 0 else _MINUS_INFINITY, 0)
    whole, _, fraction = format(value.copy_abs(), "f").partition(".")
    scale = len(fraction)
    whole = whole.lstrip("0")
    whole = whole.zfill(-(-len(whole) // 4) * 4)
    fraction = fraction.ljust(-(-scale // 4) * 4, "0")
    digits = [int((whole + fraction)[at : at + 4]) for at in range(0, len(whole) + len(fraction), 4)]
    weight = len(whole) // 4 - 1
    first = 0
    while first < len(digits) and digits[first] == 0:
        first += 1
    weight -= first
    last = len(digits)
    while last > first and digits[last - 1] == 0:
        last -= 1
    digits = digits[first:last]
    if not digits:
        return _HEAD.pack(0, 0, 0, scale)
    sign = _NEGATIVE if value < 0 else 0
    return _HEAD.pack(len(digits), weight, sign, scale) + struct.pack(f"!{len(digits)}H", *digits)


def encoder(typmod: int, form: int, arrow: Any) -> Encoder:
    if pa.types.is_floating(arrow):
        return _of_floats(form, _FLOAT_DIGITS.get(arrow.bit_width // 8, 15))
    if not pa.types.is_decimal(arrow):
        return _of_whole_numbers(form).after(lambda array: array.cast(pa.decimal128(38, 0)))
    scale = typmod_scale(typmod)
    if scale is None or scale == arrow.scale:
        return _of_decimals(form, arrow.scale)
    rounded = pa.decimal256(76, scale)

    def rescale(array: Column) -> Column:
        wide = array.cast(pa.decimal256(76, max(scale, arrow.scale)))
        return pc.round(wide, ndigits=scale, round_mode="half_towards_infinity").cast(rounded)

    return _of_decimals(form, scale).after(rescale)


def _of_decimals(form: int, scale: int) -> Encoder:
    if form == BINARY_FORMAT:
        return per_cell(numeric_binary)

    def cell(value: Decimal) -> bytes:
        return numeric_text(value).encode()

    def column(array: Column) -> Column:
        text = as_text(array)
        if scale > _PLAIN_SCALE_MAX or scale < 0:
            odd = pc.match_substring(text, b"E")
            if any_true(odd):
                return patched(text, odd, cell, array)
        return text

    return quick(column, cell)


_SIGNIFICANT_DIGITS = 16  # of a quotient, as PostgreSQL counts them: by groups of four
_GROUP = 4
_WIDE = Context(prec=200, rounding=ROUND_HALF_UP)


def quotient(dividend: Decimal, divisor: Decimal) -> Decimal:
    """With as many digits behind the point as PostgreSQL gives it (``select_div_scale``)."""
    first, first_group = _leading(dividend)
    second, second_group = _leading(divisor)
    weight = first - second - (1 if first_group <= second_group else 0)
    scale = max(_SIGNIFICANT_DIGITS - weight * _GROUP, _scale(dividend), _scale(divisor), 0)
    return _WIDE.quantize(_WIDE.divide(dividend, divisor), Decimal(1).scaleb(-scale))


def _leading(value: Decimal) -> tuple[int, int]:
    """The place of the first group of four digits that is not zero, counted from the point, and the group."""
    if not value:
        return 0, 0
    weight = value.adjusted() // _GROUP
    return weight, int(_WIDE.scaleb(value.copy_abs(), -weight * _GROUP))


def _scale(value: Decimal) -> int:
    return max(-int(value.as_tuple().exponent), 0)


def of_quotients(form: int) -> Encoder:
    """Of structs of dividend and divisor."""
    write = numeric_binary if form == BINARY_FORMAT else lambda value: numeric_text(value).encode()
    return per_cell(lambda pair: write(quotient(Decimal(pair["dividend"]), Decimal(pair["divisor"]))))


def of_texts(form: int) -> Encoder:
    """Each with digits of its own behind the point."""
    write = numeric_binary if form == BINARY_FORMAT else lambda value: numeric_text(value).encode()
    return per_cell(lambda value: write(Decimal(value if isinstance(value, str) else value.decode())))


def _of_whole_numbers(form: int) -> Encoder:
    return _of_decimals(form, 0)


_FLOAT_DIGITS = {4: 6, 8: 15}
"""Of a binary number of so many bytes, in a numeric."""


def _of_floats(form: int, digits: int) -> Encoder:
    """Cast to numeric, a float has as many digits as are certain."""
    write = numeric_binary if form == BINARY_FORMAT else lambda value: numeric_text(value).encode()
    return per_cell(lambda value: write(Decimal(f"{value:.{digits}g}")))


def from_text(text: str) -> Decimal:
    if len(text) > _TEXT_CHARACTERS_MAX:
        raise out_of_range("numeric", text)
    special = _TEXT_SPECIAL.fullmatch(text)
    if special is not None:
        return Decimal(special[1])
    match = _TEXT.fullmatch(text)
    if match is None:
        raise bad_text("numeric", text)
    value = Decimal(match[1])
    exponent = int(value.as_tuple().exponent)
    if value and value.adjusted() >= _WHOLE_DIGITS_MAX:
        raise out_of_range("numeric", text)
    if -exponent > _FRACTION_DIGITS_MAX:
        raise out_of_range("numeric", text)
    return value


def from_binary(raw: bytes) -> Decimal:
    if len(raw) < _HEAD.size:
        raise bad_binary()
    count, weight, sign, scale = _HEAD.unpack_from(raw)
    if sign in _SPECIAL:
        return _SPECIAL[sign]
    if count < 0 or len(raw) != _HEAD.size + 2 * count or sign not in (0, _NEGATIVE) or scale > _FRACTION_DIGITS_MAX:
        raise bad_binary()
    digits = struct.unpack_from(f"!{count}H", raw, _HEAD.size)
    if any(digit > 9999 for digit in digits):
        raise bad_binary()
    # digits before the point, then after it, each group standing for four decimals
    whole = "".join(f"{digits[at]:04d}" if 0 <= at < count else "0000" for at in range(weight + 1)) or "0"
    groups = -(-scale // 4)
    fraction = "".join(
        f"{digits[at]:04d}" if 0 <= at < count else "0000" for at in range(weight + 1, weight + 1 + groups)
    )[:scale]
    text = f"{whole}.{fraction}" if fraction else whole
    return Decimal("-" + text if sign == _NEGATIVE else text)


DECODERS = {oids.NUMERIC: Decoder(from_text, from_binary)}
