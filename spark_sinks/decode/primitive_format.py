"""Primitive keys: one value as Kafka's own serializers write it, text as UTF-8 and integers big-endian.

Such a key is the one column of a changelog's primary key, which a record without a value has nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import StringType, VarcharType

from spark_sinks.decode.columns import NUL, DecodeColumn, Decoded
from spark_sinks.decode.format import Format

_INTEGER_BYTES = {"smallint": 2, "int": 4, "bigint": 8}


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
    name = kind.simpleString()
    size = _INTEGER_BYTES[name]
    # As a number without sign, from which what lies in the upper half is taken down.
    unsigned = f"cast(conv(hex({value}), 16, 10) as decimal(20, 0))"
    signed = f"CASE WHEN {unsigned} < {2 ** (8 * size - 1)} THEN {unsigned} ELSE {unsigned} - {2 ** (8 * size)} END"
    return f"CASE WHEN octet_length({value}) = {size} THEN cast({signed} as {name}) END"


def _reason(column: DecodeColumn, value: str, typed: str) -> str:
    wrong = f"'the key is not a primitive of type {column.label}'"
    return f"CASE WHEN {value} IS NULL THEN 'the key is null' WHEN {typed} IS NULL THEN {wrong} END"


PRIMITIVE = Format("primitive", decode_primitive, of_values=False, of_keys=True)
