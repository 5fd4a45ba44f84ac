"""Rows as records of a schema that is known, without its id: what queries write by a descriptor."""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.encode import described_avro, described_protobuf
from spark_sinks.encode.written import Encode
from spark_sinks.schema_registry.base import AVRO
from spark_sinks.schema_registry.descriptors import DescribedSchema


def described_encoder(schema: DescribedSchema) -> Encode:
    """Of a row's object. 22000 for one that is no record of the schema, 22004 for a NULL that it has no place for."""
    if schema.schema.kind == AVRO:
        return described_avro.encoder(schema.schema)
    return described_protobuf.encoder(schema)


def required_fields(schema: DescribedSchema) -> Sequence[str]:
    """What each record must have a value for."""
    if schema.schema.kind == AVRO:
        return described_avro.required(schema.schema)
    return described_protobuf.required(schema)
