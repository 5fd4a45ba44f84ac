"""A statement's text with constants in the places of some of its parameters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from mvserver import quoting, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.lexer import PARAMETER, tokenize

NUMERIC_DIGITS_MAX = 38
_FRACTION_DIGITS = 10  # of a parameter of type numeric; one with more is planned as a constant
_WHOLE_DIGITS = NUMERIC_DIGITS_MAX - _FRACTION_DIGITS


def with_constants(text: str, constants: Mapping[int, str]) -> str:
    """``constants`` by number, as the text of a query has them; the other parameters are numbered anew from 1."""
    numbers: dict[str, int] = {}
    pieces: list[str] = []
    end = 0
    tokens = [token for token in tokenize(text) if token.kind is PARAMETER]
    for number in sorted({int(token.text) for token in tokens} - constants.keys()):
        numbers[str(number)] = len(numbers) + 1
    for token in tokens:
        pieces.append(text[end : token.start])
        constant = constants.get(int(token.text))
        pieces.append(f"${numbers[str(int(token.text))]}" if constant is None else constant)
        end = token.end
    return "".join([*pieces, text[end:]])


def others(count: int, constants: Mapping[int, str] | Sequence[int]) -> Sequence[int]:
    """The numbers of the parameters that ``with_constants`` leaves, in their order; there are ``count`` of all."""
    return [number for number in range(1, count + 1) if number not in constants]


def constant(number: int, value: Any) -> str:
    """A parameter's value as the text of a query has it. 0A000 for types that no such place asks for."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        shown = format(value, "f") if isinstance(value, Decimal) else repr(value)
        return f"({shown})" if shown.startswith("-") else shown
    if isinstance(value, str):
        return quoting.constant(value)
    if isinstance(value, dt.datetime):
        return f"{quoting.constant(value.isoformat(' '))}::timestamp{'tz' if value.tzinfo is not None else ''}"
    if isinstance(value, dt.date):
        return f"{quoting.constant(value.isoformat())}::date"
    if isinstance(value, list):
        return quoting.constant("{" + ",".join(_item(item) for item in value) + "}")
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"parameter ${number} has a value of this type where a constant is needed",
        hint="Write it into the text.",
    )


def has_many_digits(value: Any) -> bool:
    """Whether it is a numeric of more digits than a parameter has. 22003 where it has more than any numeric."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return False
    _, digits, exponent = value.as_tuple()
    fraction = max(-int(exponent), 0)
    whole = max(len(digits) + int(exponent), 0)
    if whole <= _WHOLE_DIGITS and fraction <= _FRACTION_DIGITS:
        return False
    if whole + fraction > NUMERIC_DIGITS_MAX:
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
            "value overflows numeric format",
            detail=f"The parameter has {whole + fraction} digits.",
            hint=f"A numeric has at most {NUMERIC_DIGITS_MAX} digits.",
        )
    return True


def _item(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)
