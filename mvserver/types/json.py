"""json and jsonb, and nested columns (structs, maps, lists) written as JSON.

Numbers and times inside take the forms that PostgreSQL's to_json gives them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.types import clock, oids, strings
from mvserver.types.column import BINARY_FORMAT, Column, Encoder, join, literal, per_cell
from mvserver.types.floats import float4_text, float8_text
from mvserver.types.intervals import Parts, interval_text
from mvserver.types.numeric import numeric_text
from mvserver.types.parameter import Decoder, bad_text
from mvserver.types.utf8 import decode_utf8

_JSONB_VERSION = b"\x01"
_NUMBER_DIGITS_MAX = 1_000  # beyond that a number is left as it is written

Writer = Callable[[Any], str]


def encoder(oid: int, form: int, arrow: Any, zone: str) -> Encoder:
    text = strings.is_text(arrow) or strings.is_bytes(arrow)
    plain = strings.PLAIN if text else nested(arrow, zone)
    if oid != oids.JSONB:
        return plain
    if text:
        plain = per_cell(lambda value: jsonb_text(value if isinstance(value, str) else value.decode()).encode())
    if form != BINARY_FORMAT:
        return plain
    version = literal(_JSONB_VERSION)
    return Encoder(
        lambda array: join(version, plain.column(array)),
        lambda array: [None if cell is None else _JSONB_VERSION + cell for cell in plain.cells(array)],
    )


class _Number(str):
    """As it is to be written."""

    __slots__ = ()


def _numeric(text: str) -> _Number:
    """``1.50e1`` as PostgreSQL's numeric writes it."""
    value = Decimal(text)
    if abs(value.adjusted()) > _NUMBER_DIGITS_MAX:
        return _Number(text)
    shown = f"{value:f}"
    return _Number(shown[1:] if value.is_zero() and shown.startswith("-") else shown)


def jsonb_text(text: str) -> str:
    """A document as jsonb writes it: each key once, the last, shorter ones first; blanks behind colons and commas."""
    try:
        document = json.loads(text, parse_int=_numeric, parse_float=_numeric, parse_constant=_Number)
        written = _jsonb(document)
        written.encode()
    except (ValueError, RecursionError):  # halves of surrogate pairs, or deeper than can be read: as it is
        return text
    return written


def _jsonb(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(raw := key.encode(errors="surrogatepass")), raw))
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_jsonb(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_jsonb, value)) + "]"
    return value if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


def is_nested(arrow: Any) -> bool:
    return bool(pa.types.is_nested(arrow))


def nested(arrow: Any, zone: str) -> Encoder:
    """A column of any type as JSON text; the writer is put together once, from the column's type."""
    write = writer(arrow, zone)
    countable = _countable(arrow)

    def values(array: Column) -> list[Any]:
        return list((array if countable.equals(arrow) else array.cast(countable)).to_pylist())

    return per_cell(lambda value: write(value).encode(), values)


def _countable(arrow: Any) -> Any:
    """The same type with days and instants as integers: Python's own cannot hold all of them."""
    if pa.types.is_date32(arrow):
        return pa.int32()
    if pa.types.is_timestamp(arrow) or pa.types.is_time64(arrow) or pa.types.is_duration(arrow):
        return pa.int64()
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(field.name, _countable(field.type)) for field in arrow])
    if pa.types.is_map(arrow):
        return pa.map_(_countable(arrow.key_type), _countable(arrow.item_type))
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(_countable(arrow.value_type), arrow.list_size)
    if pa.types.is_large_list(arrow):
        return pa.large_list(_countable(arrow.value_type))
    if pa.types.is_list(arrow):
        return pa.list_(_countable(arrow.value_type))
    return arrow


def writer(arrow: Any, zone: str) -> Writer:
    """How a value of this type is written; NULL is not asked for."""
    if pa.types.is_struct(arrow):
        return _struct(arrow, zone)
    if pa.types.is_map(arrow):
        return _map(arrow, zone)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        element = _nullable(writer(arrow.value_type, zone))
        return lambda value: "[" + ",".join(map(element, value)) + "]"
    return _scalar(arrow, zone)


def _nullable(write: Writer) -> Writer:
    return lambda value: "null" if value is None else write(value)


def _quoted(write: Writer) -> Writer:
    return lambda value: json.dumps(write(value), ensure_ascii=False)


def _struct(arrow: Any, zone: str) -> Writer:
    fields = [
        (field.name, json.dumps(field.name, ensure_ascii=False) + ":", _nullable(writer(field.type, zone)))
        for field in arrow
    ]
    return lambda value: "{" + ",".join(key + write(value[name]) for name, key, write in fields) + "}"


def _map(arrow: Any, zone: str) -> Writer:
    plain_key = writer(arrow.key_type, zone)
    item = _nullable(writer(arrow.item_type, zone))

    def key(value: Any) -> str:
        written = plain_key(value)
        return written if written.startswith('"') else json.dumps(written, ensure_ascii=False)

    return lambda value: "{" + ",".join(f"{key(k)}:{item(v)}" for k, v in value) + "}"


def _number(write: Callable[[Any], str]) -> Writer:
    """JSON has no NaN and no infinity: they are strings, as PostgreSQL makes them."""

    def written(value: Any) -> str:
        text = write(value)
        return text if text[-1].isdigit() else f'"{text}"'

    return written


def _scalar(arrow: Any, zone: str) -> Writer:
    types = pa.types
    if types.is_boolean(arrow):
        return lambda value: "true" if value else "false"
    if types.is_integer(arrow):
        return str
    if types.is_float32(arrow) or types.is_float16(arrow):
        return _number(float4_text)
    if types.is_float64(arrow):
        return _number(float8_text)
    if types.is_decimal(arrow):
        return _number(numeric_text)
    if types.is_date32(arrow):
        return _quoted(clock.date_text)
    if types.is_timestamp(arrow):
        return _stamp(arrow, zone)
    if types.is_time64(arrow):
        per_microsecond = 1_000 if arrow.unit == "ns" else 1
        return _quoted(lambda value: clock.time_text(value // per_microsecond))
    if types.is_interval(arrow):
        return _quoted(lambda value: interval_text(Parts(value.months, value.days, value.nanoseconds // 1000)))
    if strings.is_bytes(arrow):
        return _quoted(lambda value: "\\x" + value.hex())
    return _quoted(str)


_WHOLE_HOURS = re.compile(r"([+-]\d\d)(?= BC$|$)")
_UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}


def _stamp(arrow: Any, zone: str) -> Writer:
    def microseconds(value: int) -> int:
        return value // 1_000 if arrow.unit == "ns" else value * _UNIT_US[arrow.unit]

    if arrow.tz is None:
        return _quoted(lambda value: clock.stamp_text(microseconds(value)).replace(" ", "T", 1))

    shown_in = clock.zone_of(zone)

    def instant(value: int) -> str:
        text = clock.instant_text(microseconds(value), shown_in)
        return _WHOLE_HOURS.sub(r"\1:00", text.replace(" ", "T", 1))

    return _quoted(instant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _passed(part: object) -> None:
    """Of a document that is only checked. A function of Python's own lets other threads go on between two parts."""


def from_text(text: str) -> str:
    """Checked and kept as it is written."""
    try:
        json.loads(text, parse_constant=_no_constant, parse_int=_passed, parse_float=_passed, object_pairs_hook=_passed)
    except (ValueError, RecursionError) as error:
        raise bad_text("json", text) from error
    return text


def _json_from_binary(raw: bytes) -> str:
    return from_text(decode_utf8(raw))


def _jsonb_from_binary(raw: bytes) -> str:
    if raw[:1] != _JSONB_VERSION:
        version = raw[0] if raw else 0
        raise SqlError(sqlstates.INTERNAL_ERROR, f"unsupported jsonb version number {version}")
    return _json_from_binary(raw[1:])


DECODERS = {
    oids.JSON: Decoder(from_text, _json_from_binary),
    oids.JSONB: Decoder(from_text, _jsonb_from_binary),
}
