"""Keys of Kafka records: a changelog's primary key, which a record without a value has nowhere else.

A *primitive* key is one value as Kafka's own serializers write it: text as UTF-8, integers big-endian. A *json* key is
an object with a field for each column of the primary key.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import StringType, VarcharType

from spark_sinks.decode.columns import NUL, DecodeColumn, Decoded
from spark_sinks.decode.json_format import decode_json, decode_json_trial

_INTEGER_BYTES = {"smallint": 2, "int": 4, "bigint": 8}


def decode_key(key_format: str, columns: Sequence[DecodeColumn], prefix: str, *, trial: bool = False) -> Decoded:
    """As :func:`spark_sinks.decode.decode`, over the frame's column ``key``; no column may be NULL."""
    if key_format == "json":
        return (decode_json_trial if trial else decode_json)(columns, "key", prefix)
    (column,) = columns
    typed, reason = f"{prefix}k", f"{prefix}w"
    return Decoded(
        stages=((f"{_primitive(column)} AS {typed}",), (f"{_reason(column, typed)} AS {reason}",)),
        columns=((column.name, typed),),
        good=f"({reason} IS NULL)",
        reason=reason,
    )


def _primitive(column: DecodeColumn) -> str:
    kind = column.type
    if isinstance(kind, (StringType, VarcharType)):
        utf8 = "cast(key as string)"
        fits = f" AND char_length({utf8}) <= {kind.length}" if isinstance(kind, VarcharType) else ""
        return f"CASE WHEN is_valid_utf8({utf8}) AND NOT contains({utf8}, {NUL}){fits} THEN {utf8} END"
    name = kind.simpleString()
    size = _INTEGER_BYTES[name]
    # As a number without sign, from which what lies in the upper half is taken down.
    unsigned = "cast(conv(hex(key), 16, 10) as decimal(20, 0))"
    signed = f"CASE WHEN {unsigned} < {2 ** (8 * size - 1)} THEN {unsigned} ELSE {unsigned} - {2 ** (8 * size)} END"
    return f"CASE WHEN octet_length(key) = {size} THEN cast({signed} as {name}) END"


def _reason(column: DecodeColumn, typed: str) -> str:
    wrong = f"'the key is not a primitive of type {column.label}'"
    return f"CASE WHEN key IS NULL THEN 'the key is null' WHEN {typed} IS NULL THEN {wrong} END"
