"""A stream's columns as they stand in a record that we write: what the decoders of records read back without loss.

A value comes as PostgreSQL's text or binary form of its type; nested ones as JSON, arrays of scalars as PostgreSQL's
arrays. What a column cannot hold is an error here, so that no record is written that readers would reject.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.types import Kind, SqlType
from mvserver.types import oids
from mvserver.types.registry import decoder

Plain = Callable[[Any], str]

_EXACT = Context(prec=80, rounding=ROUND_HALF_UP)
_TINYINT = range(-128, 128)
_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_EXPONENT_MAX = 999  # of a number that a type could hold


@dataclass(frozen=True)
class ValueForm:
    """``plain`` is the text that a decoder of records reads; JSON puts it in quotes where ``quoted``."""

    oid: int
    plain: Plain
    quoted: bool

    def json(self, value: Any) -> str:
        text = self.plain(value)
        if self.quoted or text in _NOT_FINITE:
            return json.dumps(text, ensure_ascii=False)
        return text


def value_form(kind: SqlType, zone: str) -> ValueForm:
    scalar = _scalar(kind)
    if scalar is not None:
        return scalar
    if kind.kind is Kind.ARRAY and kind.element is not None:
        element = _scalar(kind.element)
        if element is not None:
            return ValueForm(oids.ARRAY_OF[element.oid], _array(kind, element), quoted=False)
    inner = _nested(kind, zone)
    return ValueForm(oids.JSON, lambda text: inner(_parsed(text)), quoted=False)


# --- scalars --------------------------------------------------------------------------------------------------------
def _scalar(kind: SqlType) -> ValueForm | None:
    if kind.kind is Kind.DECIMAL:
        return ValueForm(oids.NUMERIC, _decimal(kind), quoted=False)
    if kind.kind is Kind.VARCHAR:
        return ValueForm(oids.TEXT, _text(kind.length), quoted=True)
    return _SCALARS.get(kind.kind)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _tinyint(value: int) -> str:
    if value not in _TINYINT:
        raise SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f'value "{value}" is out of range for type tinyint')
    return str(value)


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(kind: SqlType) -> Plain:
    precision, scale = kind.precision or 38, kind.scale or 0
    unit, bound = Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale)

    def plain(value: Decimal) -> str:
        if not value.is_finite() or value.adjusted() > precision:
            raise _overflow(precision, scale)
        rounded = value.quantize(unit, context=_EXACT)
        if rounded.copy_abs() >= bound:  # abs() would round to the digits of Python's context
            raise _overflow(precision, scale)
        return f"{rounded:f}"

    return plain


def _overflow(precision: int, scale: int) -> SqlError:
    power = f"10^{precision - scale}" if precision > scale else "1"
    return SqlError(
        sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
        "numeric field overflow",
        detail=f"A field with precision {precision}, scale {scale} must round to an absolute value less than {power}.",
    )


def _text(length: int | None) -> Plain:
    def plain(value: str) -> str:
        if length is not None and len(value) > length:
            value = value[:length] + value[length:].rstrip(" ")  # as PostgreSQL: blanks too many are no error
            if len(value) > length:
                raise SqlError(
                    sqlstates.STRING_DATA_RIGHT_TRUNCATION, f"value too long for type character varying({length})"
                )
        return value

    return plain


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _moment(name: str, form: Callable[[Any], str]) -> Plain:
    """What Python's types cannot hold (infinities, years before Christ) comes as text, and records cannot hold it."""

    def plain(value: Any) -> str:
        if isinstance(value, str):
            raise SqlError(
                sqlstates.DATETIME_FIELD_OVERFLOW,
                f'{name} out of range: "{value}"',
                detail="A record holds years from 1 to 9999.",
            )
        return form(value)

    return plain


def _instant(value: dt.datetime) -> str:
    try:
        return value.astimezone(dt.UTC).isoformat(sep=" ")
    except OverflowError:
        return _moment("timestamp", str)(str(value))


_SCALARS: Mapping[Kind, ValueForm] = {
    Kind.BOOLEAN: ValueForm(oids.BOOL, _boolean, quoted=False),
    Kind.TINYINT: ValueForm(oids.INT2, _tinyint, quoted=False),
    Kind.SMALLINT: ValueForm(oids.INT2, str, quoted=False),
    Kind.INTEGER: ValueForm(oids.INT4, str, quoted=False),
    Kind.BIGINT: ValueForm(oids.INT8, str, quoted=False),
    Kind.FLOAT: ValueForm(oids.FLOAT4, _float, quoted=False),
    Kind.DOUBLE: ValueForm(oids.FLOAT8, _float, quoted=False),
    Kind.VARBINARY: ValueForm(oids.BYTEA, _base64, quoted=True),
    Kind.DATE: ValueForm(oids.DATE, _moment("date", dt.date.isoformat), quoted=True),
    Kind.TIME: ValueForm(oids.TIME, _moment("time", dt.time.isoformat), quoted=True),
    Kind.TIMESTAMP: ValueForm(
        oids.TIMESTAMP, _moment("timestamp", lambda value: value.isoformat(sep=" ")), quoted=True
    ),
    Kind.TIMESTAMP_LTZ: ValueForm(oids.TIMESTAMPTZ, _moment("timestamp", _instant), quoted=True),
}


# --- nested values --------------------------------------------------------------------------------------------------
def _array(kind: SqlType, element: ValueForm) -> Plain:
    def plain(values: list[Any]) -> str:
        if any(isinstance(value, list) for value in values):
            raise SqlError(
                sqlstates.INVALID_TEXT_REPRESENTATION, f"an array of one dimension is needed for type {kind}"
            )
        return "[" + ",".join("null" if value is None else element.json(value) for value in values) + "]"

    return plain


def _parsed(text: str) -> Any:
    value = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    if "\\u" in text:
        _refuse_no_characters(value)
    return value


def _refuse_no_characters(value: Any) -> None:
    """NUL and halves of surrogate pairs, which no text can hold and readers reject."""
    if isinstance(value, str) and _NO_CHARACTER.search(value):
        raise SqlError(
            sqlstates.UNTRANSLATABLE_CHARACTER,
            "unsupported Unicode escape sequence",
            detail="\\u0000 and halves of surrogate pairs cannot be converted to text.",
        )
    if isinstance(value, dict):
        for key in value:
            _refuse_no_characters(key)
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _refuse_no_characters(each)


def _nested(kind: SqlType, zone: str) -> Plain:
    """From a value out of ``json.loads`` to JSON text of the type's form."""
    if kind.kind is Kind.ARRAY and kind.element is not None:
        return _items(kind, _or_null(_nested(kind.element, zone)))
    if kind.kind is Kind.MAP and kind.element is not None and kind.key is not None:
        return _entries(kind, _key(kind.key, zone), _or_null(_nested(kind.element, zone)))
    if kind.kind is Kind.STRUCT:
        return _fields(
            kind, [(name, spelling, _or_null(_nested(e, zone))) for name, e, spelling in kind.spelled_fields]
        )
    return _leaf(kind, zone)


def _or_null(plain: Plain) -> Plain:
    return lambda value: "null" if value is None else plain(value)


def _items(kind: SqlType, element: Plain) -> Plain:
    def plain(value: Any) -> str:
        if not isinstance(value, list):
            raise _does_not_fit(value, kind)
        return "[" + ",".join(map(element, value)) + "]"

    return plain


def _entries(kind: SqlType, key: Callable[[str], str], element: Plain) -> Plain:
    def plain(value: Any) -> str:
        if not isinstance(value, dict):
            raise _does_not_fit(value, kind)
        return "{" + ",".join(f"{key(name)}:{element(each)}" for name, each in value.items()) + "}"

    return plain


def _fields(kind: SqlType, fields: Sequence[tuple[str, str | None, Plain]]) -> Plain:
    """A field is found by the names that a decoder of records knows, and written by its own."""
    names = {name: (name,) if spelling is None else (spelling, name) for name, spelling, _ in fields}
    known = {each for of_field in names.values() for each in of_field}

    def plain(value: Any) -> str:
        if not isinstance(value, dict):
            raise _does_not_fit(value, kind)
        found = {name: _given(value, names[name], known) for name, _, _ in fields}
        unknown = value.keys() - {key for keys in found.values() for key in keys}
        if unknown:
            raise SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, f'type {kind} has no field "{min(unknown)}"')
        return (
            "{"
            + ",".join(
                f"{_json_text(name)}:{form(next((value[k] for k in found[name] if value[k] is not None), None))}"
                for name, _, form in fields
            )
            + "}"
        )

    return plain


def _given(value: Mapping[str, Any], names: tuple[str, ...], known: Collection[str]) -> list[str]:
    """The keys of a field's value, the one that counts first. ``known`` are the names of all fields: a key that is one
    belongs to that field alone."""
    given = [name for name in names if name in value]
    if given:
        return given
    others = [key for key in value if key.lower() == names[0].lower() and key not in known]
    return others if len(others) == 1 else []


def _key(kind: SqlType, zone: str) -> Callable[[str], str]:
    if kind.kind is Kind.VARBINARY:
        return lambda name: _json_text(_checked_base64(name))
    form = value_form(kind, zone)
    read = decoder(form.oid, zone).text
    return lambda name: _json_text(form.plain(read(name)))


def _leaf(kind: SqlType, zone: str) -> Plain:
    form = value_form(kind, zone)
    read = decoder(form.oid, zone).text

    def plain(value: Any) -> str:
        if isinstance(value, bool) and kind.kind is Kind.BOOLEAN:
            return _boolean(value)
        if isinstance(value, str) and kind.kind is Kind.VARBINARY:
            return _json_text(_checked_base64(value))
        if isinstance(value, str) and form.quoted:
            return form.json(read(value))
        if kind.is_approximate and value in _NOT_FINITE:
            return form.json(read(value))
        if isinstance(value, Decimal) and not form.quoted and kind.kind is not Kind.BOOLEAN:
            return form.json(read(_digits(value, kind)))
        raise _does_not_fit(value, kind)

    return plain


def _digits(value: Decimal, kind: SqlType) -> str:
    """Written out, which an exponent of nine digits must not be."""
    if not value:
        return "-0" if value.is_signed() and kind.is_approximate else "0"
    if abs(value.adjusted()) > _EXPONENT_MAX:
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f'value "{value}" is out of range for type {str(kind).lower()}'
        )
    return f"{value:f}"


def _checked_base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except ValueError as error:
        raise SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, "bytes inside a nested value are base64") from error
    return text


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _does_not_fit(value: Any, kind: SqlType) -> SqlError:
    shown = json.dumps(value, ensure_ascii=False, default=str)[:100]
    return SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, f"JSON value {shown} does not fit type {kind}")
