"""float4 and float8: the shortest digits that read back the same, laid out as PostgreSQL does.

Arrow prints the same digits but changes to exponents elsewhere, so its kernel serves the range in which both write
plain decimals and the rest is done cell by cell.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
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
    big_endian,
    convert,
    patched,
    quick,
)
from mvserver.types.parameter import Decoder, bad_binary, bad_text, out_of_range

_FLOAT4 = struct.Struct("!f")
_FLOAT8 = struct.Struct("!d")
_PLAIN_FROM = 1e-4
_FLOAT4_PLAIN_TO = 1e6  # PostgreSQL: exponents from the seventh digit on
_FLOAT8_PLAIN_TO = 1e10  # Arrow: exponents from the eleventh digit on (PostgreSQL: from the sixteenth)
_FLOAT4_WHOLE_TO, _FLOAT8_WHOLE_TO = 2.0**24, 2.0**53
_FLOAT4_DIGITS = 6
_FLOAT8_DIGITS = 15

_TEXT = re.compile(
    r"\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf(?:inity)?)|nan)\s*",
    re.ASCII | re.IGNORECASE,
)


def _layout(shortest: str, plain_digits: int) -> str:
    """``shortest`` has Python's exponent or decimal form; exponents from -4 up to ``plain_digits`` are written out."""
    sign = "-" if shortest.startswith("-") else ""
    mantissa, _, exponent = shortest.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return sign + "0"
    leading = len(whole.lstrip("0")) or len(fraction.lstrip("0")) - len(fraction)
    point = leading + int(exponent or 0)  # how many digits stand before the decimal point
    digits = digits.rstrip("0")
    if not -4 <= point - 1 < plain_digits:
        rest = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if point < 1 else '+'}{abs(point - 1):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _special(value: float) -> str | None:
    if math.isfinite(value):
        return None
    return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")


def _at_edge(shortest: str, value: float, upper: float) -> bool:
    """Whether the decimal lies exactly between ``value`` and its neighbour ``upper`` or the one below.

    Python and Arrow take such a decimal, since it reads back by rounding to even; PostgreSQL wants one strictly nearer.
    It can only be a whole number, beyond those that a float holds one by one.
    """
    exact, decimal = int(value), int(Decimal(shortest))
    return 2 * abs(decimal - exact) == abs(int(upper) - exact)


def float8_text(value: float) -> str:
    special = _special(value)
    if special is not None:
        return special
    shortest = repr(value)
    if abs(value) >= _FLOAT8_WHOLE_TO:
        above = math.nextafter(value, math.copysign(math.inf, value))
        if math.isfinite(above) and _at_edge(shortest, value, above):
            nearer = (f"{value:.{digits}e}" for digits in range(1, 17))
            shortest = next(text for text in nearer if float(text) == value and not _at_edge(text, value, above))
    return _layout(shortest, _FLOAT8_DIGITS)


def float4_text(value: float) -> str:
    special = _special(value)
    if special is not None:
        return special
    above = _next_float4(value) if abs(value) >= _FLOAT4_WHOLE_TO else math.inf
    for digits in range(9):
        shortest = f"{value:.{digits}e}"
        try:
            same = _FLOAT4.unpack(_FLOAT4.pack(float(shortest)))[0] == value
        except OverflowError:  # rounded up past the largest float4
            continue
        if same and not (math.isfinite(above) and _at_edge(shortest, value, above)):
            break
    return _layout(shortest, _FLOAT4_DIGITS)


def _next_float4(value: float) -> float:
    """The neighbour further from zero."""
    bits = int.from_bytes(_FLOAT4.pack(value), "big") + 1
    return float(_FLOAT4.unpack(bits.to_bytes(4, "big"))[0])


def encoder(oid: int, form: int, arrow: Any) -> Encoder:
    single = oid == oids.FLOAT4
    wanted = pa.float32() if single else pa.float64()
    if form == BINARY_FORMAT:
        pack, code = (_FLOAT4.pack, "f") if single else (_FLOAT8.pack, "d")

        def column(array: Column) -> Column:
            return big_endian(array, code)

        plain = quick(column, pack)
    else:
        write = float4_text if single else float8_text
        plain = quick(
            _text_column(_FLOAT4_PLAIN_TO if single else _FLOAT8_PLAIN_TO, write), lambda value: write(value).encode()
        )
    if arrow.equals(wanted):
        return plain
    if pa.types.is_decimal(arrow) or pa.types.is_integer(arrow):
        # rounding to the nearest is what the cast to a float means
        return plain.after(lambda array: array.cast(wanted, safe=False))
    return plain.after(lambda array: convert(array, wanted, oids.type_name(oid)))


def _text_column(plain_to: float, write: Callable[[float], str]) -> Callable[[Column], Column]:
    def column(array: Column) -> Column:
        size = pc.abs(array)
        plain = pc.or_(pc.and_(pc.greater_equal(size, _PLAIN_FROM), pc.less(size, plain_to)), pc.equal(size, 0.0))
        odd = pc.invert(plain)  # NaN compares false: odd too
        text = as_text(array)
        if any_true(odd):
            return patched(text, odd, lambda value: write(value).encode(), array)
        return text

    return column


def _from_text(name: str, single: bool) -> Callable[[str], float]:
    def decode(text: str) -> float:
        match = _TEXT.fullmatch(text)
        if match is None:
            raise bad_text(name, text)
        value = float(match[1])
        finite = match[1].lower().lstrip("+-")[0] not in "in"
        if finite and single:
            try:
                rounded = float(_FLOAT4.unpack(_FLOAT4.pack(value))[0])
            except OverflowError as error:
                raise _out_of_range(name, match[1]) from error
            if rounded == 0 and value != 0:
                raise _out_of_range(name, match[1])
            return rounded
        if finite and (math.isinf(value) or (value == 0 and re.search(r"[1-9]", match[1].lower().split("e")[0]))):
            raise _out_of_range(name, match[1])
        return value

    return decode


def _out_of_range(name: str, text: str) -> Exception:
    error = out_of_range(name, text)
    error.message = f'"{text[:200]}" is out of range for type {name}'
    return error


def _from_binary(packed: struct.Struct) -> Callable[[bytes], float]:
    def decode(raw: bytes) -> float:
        if len(raw) != packed.size:
            raise bad_binary()
        return float(packed.unpack(raw)[0])

    return decode


DECODERS = {
    oids.FLOAT4: Decoder(_from_text("real", True), _from_binary(_FLOAT4)),
    oids.FLOAT8: Decoder(_from_text("double precision", False), _from_binary(_FLOAT8)),
}
