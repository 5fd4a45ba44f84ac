"""Rows of tables as JSON: one of the object that INSERT INTO ENTITY has, and what PRINT ENTITY shows of one. No value
is rounded or guessed, and what is shown can be inserted."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
import re
from collections.abc import Mapping
from decimal import Context, Decimal, DecimalException, Inexact
from typing import Any

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError

_FLOATS = ("NaN", "Infinity", "-Infinity")
_FINER = re.compile(r"[.,][0-9]{6}0*[1-9]")
_EXACT = Context(prec=100, traps=[Inexact])


def object_of(entity: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> dict[str, Any]:
    """The object, its numbers as they are written. 0A000 for a key, which a row does not have, 22P02 for no object."""
    if key is not None or properties:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'a row of entity "{entity}" has no key and no properties',
            hint="""INSERT INTO ENTITY name VALUE ('{"column": value, ...}') gives its columns.""",
        )
    try:
        found = json.loads(value or "null", parse_float=Decimal, parse_constant=_refused)
    except ValueError as error:
        raise _no_row(entity, f"{error}") from error
    if not isinstance(found, dict):
        raise _no_row(entity, "It is no JSON object")
    return found


def row_of(entity: str, given: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """One row with all columns. A field is that of a column by its name, or else by its name in another case."""
    named = by_column(entity, given, schema.names)
    columns = []
    for field in schema:
        value = named.get(field.name)
        if value is None and not field.nullable:
            raise SqlError(
                sqlstates.NOT_NULL_VIOLATION, f'null value in column "{field.name}" of entity "{entity}" is not allowed'
            )
        try:
            columns.append(pa.array([_value(value, field.type)], field.type))
        except (ValueError, TypeError, OverflowError, DecimalException, binascii.Error) as error:
            raise SqlError(
                sqlstates.INVALID_TEXT_REPRESENTATION,
                f'the value of column "{field.name}" is none of its type {field.type}',
                detail=f"{error or type(error).__name__}".rstrip(".") + ".",
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def text_of(value: Any) -> str:
    """A value as JSON, with bytes as base64, times and what JSON has no number for as texts."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(str(key))}: {text_of(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, bool | int | None):
        return json.dumps(value)
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return _quoted("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes | bytearray):
        return _quoted(base64.b64encode(value).decode())
    return _quoted(str(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def by_column(entity: str, given: Mapping[str, Any], columns: list[str]) -> dict[str, Any]:
    """42703 for a field that is no column; 42701 where two are of one."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        fitting = [name] if name in columns else [each for each in columns if each.lower() == name.lower()]
        if len(fitting) != 1:
            raise SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f'entity "{entity}" has no column "{name}"',
                detail=f"Its columns are {', '.join(columns)}.",
            )
        if fitting[0] in found:
            raise SqlError(sqlstates.DUPLICATE_COLUMN, f'column "{fitting[0]}" specified more than once')
        found[fitting[0]] = value
    return found


def _value(given: Any, kind: pa.DataType) -> Any:
    """ValueError and TypeError for what is no value of the type."""
    if given is None:
        return None
    if pa.types.is_boolean(kind):
        return _of(bool, given)
    if pa.types.is_integer(kind):
        return _of(int, given)
    if pa.types.is_decimal(kind):
        return Decimal(_of(int, given, Decimal)).quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    if pa.types.is_floating(kind):
        return float(given) if given in _FLOATS else _float(_of(int, given, Decimal), kind)
    if _is_text(kind):
        return _of(str, given)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return base64.b64decode(_of(str, given), validate=True)
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(_of(str, given))
    if pa.types.is_time(kind):
        return _time(dt.time.fromisoformat(_exact(_of(str, given))))
    if pa.types.is_timestamp(kind):
        return _moment(dt.datetime.fromisoformat(_exact(_of(str, given))), kind)
    if pa.types.is_map(kind):
        pairs = _of(dict, given).items()
        return [(_key(key, kind.key_type), _value(each, kind.item_type)) for key, each in pairs]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_value(each, kind.value_type) for each in _of(list, given)]
    if pa.types.is_struct(kind):
        fields = {kind.field(at).name: kind.field(at).type for at in range(kind.num_fields)}
        unknown = [name for name in _of(dict, given) if name not in fields]
        if unknown:
            raise ValueError(f'There is no field "{unknown[0]}"')
        return {name: _value(given.get(name), inner) for name, inner in fields.items()}
    raise TypeError(f"Values of type {kind} cannot be given")


def _of(kind: type, given: Any, *others: type) -> Any:
    if not isinstance(given, (kind, *others)) or (isinstance(given, bool) and kind is not bool):
        raise TypeError(f"It is {json.dumps(given, default=str)}")
    return given


def _key(text: str, kind: pa.DataType) -> Any:
    return text if _is_text(kind) else _value(json.loads(text, parse_float=Decimal), kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _float(given: int | Decimal, kind: pa.DataType) -> float:
    """The nearest one. What is too large for the type would be infinite, what is too small zero."""
    found = float(given)
    if pa.types.is_float32(kind):
        found = float(pa.scalar(found, pa.float32()).as_py())
    if math.isinf(found) or (found == 0 and given != 0):
        raise ValueError("It is out of range")
    return found


def _exact(text: str) -> str:
    """Python leaves out the digits that its times do not have."""
    if _FINER.search(text):
        raise ValueError("It is finer than a microsecond")
    return text


def _time(found: dt.time) -> dt.time:
    if found.tzinfo is not None:
        raise ValueError("It has a zone, which the column has not")
    return found


def _moment(found: dt.datetime, kind: pa.DataType) -> dt.datetime:
    if (kind.tz is None) != (found.tzinfo is None):
        raise ValueError("It needs a zone" if kind.tz else "It has a zone, which the column has not")
    return found if found.tzinfo is None else found.astimezone(dt.UTC)


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no JSON; it is a text")


def _no_row(entity: str, words: str) -> SqlError:
    return SqlError(
        sqlstates.INVALID_TEXT_REPRESENTATION,
        f'the value is no row of entity "{entity}"',
        detail=words.rstrip(".") + ".",
        hint="""It is a JSON object of its columns: '{"column": value, ...}'.""",
    )
