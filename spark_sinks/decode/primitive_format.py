"""Primitives: one value as Kafka's own serializers write it, text as UTF-8, numbers big-endian, bytes as they are.

As a key it is the one column of a changelog's primary key, which a record without a value has nowhere else; as a value
the one column that values have.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import BinaryType, BooleanType, DataType, DoubleType, FloatType, StringType, VarcharType

from spark_sinks.decode.columns import NUL, DecodeColumn, Decoded
from spark_sinks.decode.format import Format
from spark_sinks.encode.written import Encode, null_value

_INTEGER_BYTES = {"smallint": 2, "int": 4, "bigint": 8}


@dataclass(frozen=True)
class _Ieee:
    """A binary format of IEEE 754: its bytes, and how ``struct`` calls it."""

    size: int
    exponent_bits: int
    packed: str

    @property
    def digit_bits(self) -> int:
        return 8 * self.size - 1 - self.exponent_bits


_FLOATS = {"float": _Ieee(4, 8, ">f"), "double": _Ieee(8, 11, ">d")}


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
    if isinstance(kind, BinaryType):
        return value
    if isinstance(kind, BooleanType):
        return f"CASE {value} WHEN X'00' THEN false WHEN X'01' THEN true END"
    name = kind.simpleString()
    if isinstance(kind, (DoubleType, FloatType)):
        form = _FLOATS[name]
        return f"CASE WHEN octet_length({value}) = {form.size} THEN cast({_float(value, form)} as {name}) END"
    size = _INTEGER_BYTES[name]
    # As a number without sign, from which what lies in the upper half is taken down.
    unsigned = f"cast(conv(hex({value}), 16, 10) as decimal(20, 0))"
    signed = f"CASE WHEN {unsigned} < {2 ** (8 * size - 1)} THEN {unsigned} ELSE {unsigned} - {2 ** (8 * size)} END"
    return f"CASE WHEN octet_length({value}) = {size} THEN cast({signed} as {name}) END"


def _float(value: str, form: _Ieee) -> str:
    """Of the bytes of IEEE 754, as a double. Each step is exact: Spark has no function that takes bits."""
    low_bits = form.digit_bits % 8  # of the second byte; the others of the digits are whole bytes
    bias = 2 ** (form.exponent_bits - 1) - 1
    head = f"cast(conv(hex(substring({value}, 1, 2)), 16, 10) as int)"
    rest = f"cast(conv(hex(substring({value}, 3, {form.size - 2})), 16, 10) as bigint)"
    exponent = f"(shiftright({head}, {low_bits}) & {2**form.exponent_bits - 1})"
    digits = f"(({head} & {2**low_bits - 1}) * {1 << (form.digit_bits - low_bits)} + {rest})"
    size = (
        f"CASE WHEN {exponent} = 0 THEN {digits} * power(2D, {1 - bias - form.digit_bits}) "
        f"ELSE (1D + {digits} / {float(1 << form.digit_bits)}D) * power(2D, {exponent} - {bias}) END"
    )
    return (
        f"CASE WHEN {exponent} = {2**form.exponent_bits - 1} AND {digits} > 0 THEN double('NaN') "
        f"ELSE CASE WHEN {head} >= 32768 THEN -1D ELSE 1D END * "
        f"CASE WHEN {exponent} = {2**form.exponent_bits - 1} THEN double('Infinity') ELSE {size} END END"
    )


def _reason(column: DecodeColumn, value: str, typed: str) -> str:
    wrong = f"'the value is not a primitive of type {column.label}'"
    return f"CASE WHEN {value} IS NULL THEN 'the value is null' WHEN {typed} IS NULL THEN {wrong} END"


def is_made_plain(kind: DataType) -> bool:
    """Whether queries make a key of the type as it is written: a text or an integer."""
    return isinstance(kind, (StringType, VarcharType)) or kind.simpleString() in _INTEGER_BYTES


def encode_primitive(columns: Sequence[DecodeColumn], delimiter: str) -> Encode:
    """Of the one field of a row's object. 22004 for NULL, which no such value stands for."""
    (column,) = columns
    pack = _packing(column.type)

    def encode(row: bytes) -> bytes:
        value = json.loads(row)[column.name]
        if value is None:
            raise null_value(column.name, "primitive")
        return pack(value)

    return encode


def _packing(kind: DataType) -> Callable[[Any], bytes]:
    """Of a value of JSON to its bytes."""
    name = kind.simpleString()
    if name in _INTEGER_BYTES:
        return lambda value: int(value).to_bytes(_INTEGER_BYTES[name], "big", signed=True)
    if name in _FLOATS:
        return lambda value: struct.pack(_FLOATS[name].packed, math.nan if value == "NaN" else float(value))
    if isinstance(kind, BooleanType):
        return lambda value: b"\1" if value else b"\0"
    if isinstance(kind, BinaryType):
        return base64.b64decode
    return lambda value: str(value).encode()


PRIMITIVE = Format("primitive", decode_primitive, of_keys=True, encoder=encode_primitive)
