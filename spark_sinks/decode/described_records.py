"""Records without the id of a schema: all are of one that is known. They are read as those of a registry are."""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.base import DeclaredColumn
from spark_sinks.decode import avro_format, protobuf_format
from spark_sinks.decode.columns import DecodeColumn, Decoded
from spark_sinks.decode.registered_records import decode_registered
from spark_sinks.schema_registry.base import AVRO, PROTOBUF, KnownSchemas, RegisteredSchema
from spark_sinks.schema_registry.descriptors import DescribedSchema

_ID = b"\0" + bytes(4)


def decode_described(columns: Sequence[DecodeColumn], value: str, prefix: str, described: DescribedSchema) -> Decoded:
    """``value`` refers to a binary column."""
    headed, reason = f"{prefix}h", f"{prefix}y"
    schema = described.schema
    header = _ID + (_places(described.places) if schema.kind == PROTOBUF else b"")
    known = KnownSchemas(1, (RegisteredSchema(0, schema.kind, schema.text, schema.references),))
    inner = decode_registered(columns, headed, prefix, known)
    told = f"replace({inner.reason}, ' schema 0', ' the descriptor')"
    stages = ((f"concat(X'{header.hex()}', {value}) AS {headed}",), *inner.stages, (f"{told} AS {reason}",))
    return Decoded(stages, inner.columns, inner.good, reason, inner.functions)


def columns_of_descriptor(described: DescribedSchema) -> Sequence[DeclaredColumn]:
    if described.schema.kind == AVRO:
        return avro_format.columns_of(described.schema)
    return protobuf_format.columns_of_message(described.schema.text, described.places)


def _places(places: Sequence[int]) -> bytes:
    """As Confluent's serializers write them: how many, then each, as signed variable-length integers."""
    return b"".join(_signed(number) for number in (len(places), *places))


def _signed(number: int) -> bytes:
    left, out = number << 1, bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes((*out, left))
