"""Primitives: one value as Kafka's own serializers write it, text as UTF-8, numbers big-endian.

As a key it is the one column of a changelog's primary key, which a record without a value has nowhere else; as a value
the one column that values have.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence

from pyspark.sql.types import DoubleType, StringType, VarcharType

from spark_sinks.decode.columns import NUL, DecodeColumn, Decoded
from spark_sinks.decode.format import Format
from spark_sinks.encode.written import Encode, null_value

_INTEGER_BYTES = {"smallint": 2, "int": 4, "bigint": 8}
_DOUBLE_BYTES = 8


def decode_primitive(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    """Of one column, which may not be NULL."""
    (column,) = columns
    typed, reason = f"{prefix}k", f"{prefix}w"
    return Decoded(
        stages=((f"{_primitive(column, value)} AS {typed}",), (f"{_reason(column, value, typed)} AS {reason}",)),
        columns=((column.name, typed),),
        good=f"({reason} IS NULL)",
        reason=reason,
    )


def _primitive(column: DecodeColumn, value: str) -> str:
    kind = column.type
    if isinstance(kind, (StringType, VarcharType)):
        utf8 = f"cast({value} as string)"
        fits = f" AND char_length({utf8}) <= {kind.length}" if isinstance(kind, VarcharType) else ""
        return f"CASE WHEN is_valid_utf8({utf8}) AND NOT contains({utf8}, {NUL}){fits} THEN {utf8} END"
    if isinstance(kind, DoubleType):
        return f"CASE WHEN octet_length({value}) = {_DOUBLE_BYTES} THEN {_double(value)} END"
    name = kind.simpleString()
    size = _INTEGER_BYTES[name]
    # As a number without sign, from which what lies in the upper half is taken down.
    unsigned = f"cast(conv(hex({value}), 16, 10) as decimal(20, 0))"
    signed = f"CASE WHEN {unsigned} < {2 ** (8 * size - 1)} THEN {unsigned} ELSE {unsigned} - {2 ** (8 * size)} END"
    return f"CASE WHEN octet_length({value}) = {size} THEN cast({signed} as {name}) END"


def _double(value: str) -> str:
    """Of the eight bytes of IEEE 754. Each step is exact: Spark has no function that takes bits."""
    head = f"cast(conv(hex(substring({value}, 1, 2)), 16, 10) as int)"
    rest = f"cast(conv(hex(substring({value}, 3, 6)), 16, 10) as bigint)"
    exponent = f"(shiftright({head}, 4) & 2047)"
    digits = f"(({head} & 15) * {1 << 48} + {rest})"
    size = (
        f"CASE WHEN {exponent} = 0 THEN {digits} * power(2D, -1074) "
        f"ELSE (1D + {digits} / {float(1 << 52)}D) * power(2D, {exponent} - 1023) END"
    )
    return (
        f"CASE WHEN {exponent} = 2047 AND {digits} > 0 THEN double('NaN') "
        f"ELSE CASE WHEN {head} >= 32768 THEN -1D ELSE 1D END * "
        f"CASE WHEN {exponent} = 2047 THEN double('Infinity') ELSE {size} END END"
    )


def _reason(column: DecodeColumn, value: str, typed: str) -> str:
    wrong = f"'the value is not a primitive of type {column.label}'"
    return f"CASE WHEN {value} IS NULL THEN 'the value is null' WHEN {typed} IS NULL THEN {wrong} END"


def encode_primitive(columns: Sequence[DecodeColumn], delimiter: str) -> Encode:
    """Of the one field of a row's object. 22004 for NULL, which no such value stands for."""
    (column,) = columns
    kind = column.type
    size = _INTEGER_BYTES.get(kind.simpleString())

    def encode(row: bytes) -> bytes:
        value = json.loads(row)[column.name]
        if value is None:
            raise null_value(column.name, "primitive")
        if isinstance(kind, DoubleType):
            return struct.pack(">d", math.nan if value == "NaN" else float(value))
        return str(value).encode() if size is None else int(value).to_bytes(size, "big", signed=True)

    return encode


PRIMITIVE = Format("primitive", decode_primitive, of_keys=True, encoder=encode_primitive)
