"""The table of type families: the one that encodes a result column, and the one that decodes a parameter."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.types import (
    arrays,
    boolean,
    bytea,
    datetime_parameters,
    datetimes,
    floats,
    inet,
    integers,
    intervals,
    json,
    numeric,
    oids,
    pg_lsn,
    strings,
    uuids,
)
from mvserver.types.column import BINARY, BINARY_FORMAT, TEXT_FORMAT, Encoder
from mvserver.types.parameter import Decoder, never_stopped
from mvserver.types.utf8 import decode_utf8

_INSTANTS = frozenset({oids.TIMESTAMPTZ, oids.ARRAY_OF[oids.TIMESTAMPTZ], oids.JSON})  # a document may have some in it


def depends_on_zone(oid: int) -> bool:
    """Whether the session's time zone shows in the type's text form."""
    return oid in _INSTANTS


@lru_cache(maxsize=4096)
def encoder(oid: int, typmod: int, form: int, arrow: Any, zone: str) -> Encoder:
    """For a column of an Arrow type that is to look like the PostgreSQL type; ``form`` is 0 text, 1 binary."""
    if isinstance(arrow, pa.BaseExtensionType):
        return encoder(oid, typmod, form, arrow.storage_type, zone).after(lambda array: array.storage)
    if pa.types.is_dictionary(arrow):
        return encoder(oid, typmod, form, arrow.value_type, zone).after(lambda array: array.dictionary_decode())
    if pa.types.is_null(arrow):
        return Encoder(lambda array: pa.nulls(len(array), BINARY), lambda array: [None] * len(array))
    if arrays.is_list(arrow) and arrays.element_oid(oid) is not None:
        inner = arrays.element_oid(oid) or oids.TEXT
        return arrays.encoder(oid, form, arrow, encoder(inner, typmod, form, arrays.leaf_type(arrow), zone))
    return _scalar(oid, typmod, form, arrow, zone)


def _scalar(oid: int, typmod: int, form: int, arrow: Any, zone: str) -> Encoder:
    if oid == oids.BYTEA and (strings.is_bytes(arrow) or strings.is_text(arrow)):
        return bytea.encoder(form, arrow)
    if oid == oids.UUID and (strings.is_text(arrow) or strings.is_bytes(arrow)):
        return uuids.encoder(form, arrow)
    if oid in (oids.JSON, oids.JSONB):
        return json.encoder(oid, form, arrow, zone)
    if oid == oids.NUMERIC and pa.types.is_struct(arrow):
        return numeric.of_quotients(form)
    if json.is_nested(arrow):
        return json.nested(arrow, zone)
    if strings.is_text(arrow) or strings.is_bytes(arrow):
        return _of_text(oid, typmod, form)
    return _of_values(oid, typmod, form, arrow, zone)


def _of_text(oid: int, typmod: int, form: int) -> Encoder:
    """A column that comes as text already: right for character types, and for the others where text was asked for."""
    if oid == oids.NUMERIC:
        return numeric.of_texts(form)
    if oid == oids.INET:
        return inet.encoder(form)
    if oid == oids.PG_LSN:
        return pg_lsn.encoder(form)
    if form == BINARY_FORMAT and oid not in strings.OIDS and oid in _HAS_BINARY:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"a column of type {oids.type_name(oid)} that is kept as text has no binary form",
            hint="Ask for the text format.",
        )
    return strings.encoder(oid, typmod)


_HAS_BINARY = frozenset(
    {*integers.WIDTHS, oids.BOOL, oids.FLOAT4, oids.FLOAT8, oids.NUMERIC, oids.DATE, oids.TIME, oids.TIMESTAMP,
     oids.TIMESTAMPTZ, oids.INTERVAL, oids.INT2VECTOR, oids.OIDVECTOR, *oids.ELEMENT_OF}
)  # fmt: skip


def _of_values(oid: int, typmod: int, form: int, arrow: Any, zone: str) -> Encoder:
    types = pa.types
    if oid == oids.BOOL:
        return boolean.encoder(form, arrow)
    if oid in integers.WIDTHS:
        return integers.encoder(oid, form, arrow)
    if oid in (oids.FLOAT4, oids.FLOAT8):
        return floats.encoder(oid, form, arrow)
    if oid == oids.NUMERIC:
        return numeric.encoder(typmod, form, arrow)
    temporal = types.is_date(arrow) or types.is_timestamp(arrow) or types.is_time(arrow)
    if oid in (oids.DATE, oids.TIME, oids.TIMESTAMP, oids.TIMESTAMPTZ) and temporal:
        return datetimes.encoder(oid, form, arrow, zone)
    if oid == oids.INTERVAL and (types.is_interval(arrow) or types.is_duration(arrow)):
        return intervals.encoder(form, arrow)
    return _as_text(arrow, form, zone, oid)


def _as_text(arrow: Any, form: int, zone: str, oid: int) -> Encoder:
    """A value under a character type: the text form of what it is."""
    natural = natural_oid(arrow)
    if natural is None or (form == BINARY_FORMAT and oid not in strings.OIDS):
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"a column of {arrow} cannot be sent as {oids.type_name(oid)}")
    return encoder(natural, -1, TEXT_FORMAT, arrow, zone)


_NATURAL = (
    (pa.types.is_boolean, oids.BOOL),
    (pa.types.is_int8, oids.INT2), (pa.types.is_int16, oids.INT2), (pa.types.is_uint8, oids.INT2),
    (pa.types.is_int32, oids.INT4), (pa.types.is_uint16, oids.INT4), (pa.types.is_int64, oids.INT8),
    (pa.types.is_uint32, oids.INT8), (pa.types.is_uint64, oids.NUMERIC), (pa.types.is_decimal, oids.NUMERIC),
    (pa.types.is_float32, oids.FLOAT4), (pa.types.is_floating, oids.FLOAT8), (pa.types.is_date, oids.DATE),
    (pa.types.is_time, oids.TIME), (pa.types.is_duration, oids.INTERVAL), (pa.types.is_interval, oids.INTERVAL),
)  # fmt: skip


def natural_oid(arrow: Any) -> int | None:
    """The PostgreSQL type that a scalar Arrow type stands for by itself."""
    if pa.types.is_timestamp(arrow):
        return oids.TIMESTAMP if arrow.tz is None else oids.TIMESTAMPTZ
    return next((oid for holds, oid in _NATURAL if holds(arrow)), None)


_DECODERS: dict[int, Decoder] = {
    **boolean.DECODERS, **integers.DECODERS, **floats.DECODERS, **numeric.DECODERS, **strings.DECODERS,
    **bytea.DECODERS, **datetime_parameters.DECODERS, **intervals.DECODERS, **uuids.DECODERS, **json.DECODERS,
}  # fmt: skip
_TEXT = _DECODERS[oids.TEXT]
_NO_BINARY = Decoder(_TEXT.text, None)


@lru_cache(maxsize=1024)
def decoder(oid: int, zone: str) -> Decoder:
    """For a parameter; a type that is not known here is read as text, and refused in binary."""
    found = _DECODERS.get(oid) or datetime_parameters.decoders(zone).get(oid)
    if found is not None:
        return found
    inner = oids.element_of(oid)
    if inner is not None:
        return arrays.decoder(oid, decoder(inner, zone))
    return _TEXT if oid == 0 or oid >= oids.OWN_FIRST else _NO_BINARY  # enums are their labels, in binary too


def decode_parameter(
    number: int, raw: bytes | None, form: int, oid: int, zone: str, check: Callable[[], None] = never_stopped
) -> Any:
    """The Python value of a bound parameter; ``number`` counts from 1. ``check`` raises when it is to be read no
    further."""
    if form not in (TEXT_FORMAT, BINARY_FORMAT):
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f"unsupported format code: {form}")
    if raw is None:
        return None
    inner = oids.element_of(oid)
    read = decoder(oid, zone) if inner is None else arrays.decoder(oid, decoder(inner, zone), check)
    if form == TEXT_FORMAT:
        return read.text(decode_utf8(raw))
    if read.binary is None:
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"no binary input function available for type with OID {oid}",
            hint="Send the parameter in text format.",
        )
    try:
        return read.binary(raw)
    except SqlError as error:
        if error.sqlstate != sqlstates.INVALID_BINARY_REPRESENTATION:
            raise
        raise SqlError(error.sqlstate, f"incorrect binary data format in bind parameter {number}") from error
