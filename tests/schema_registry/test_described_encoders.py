"""Rows as records of a schema from a file: what is written is read back by the libraries of the formats themselves."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from mvserver.errors import SqlError
from spark_sinks.encode.described import described_encoder, required_fields
from spark_sinks.schema_registry.descriptors import DescribedSchema, descriptors_of, schema_of

PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Kind { NONE = 0; HOME = 1; }
message Visit {
  int64 userId = 1;
  optional string url = 2;
  Kind kind = 3;
  google.protobuf.Timestamp at = 4;
  google.protobuf.Int64Value length = 5;
  repeated int32 steps = 6;
  map<string, double> weights = 7;
  bytes raw = 8;
  Place place = 9;
  message Place { optional string city = 1; float lat = 2; }
  oneof who { string name = 10; int32 number = 11; }
  uint64 big = 12;
}
"""
PROTO2 = 'syntax = "proto2"; message Row { required int32 a = 1; optional int32 b = 2; }'
AVRO = {
    "type": "record", "name": "Visit", "namespace": "shop",
    "fields": [
        {"name": "userId", "type": "long"},
        {"name": "url", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NONE", "HOME"]}, "default": "NONE"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
        {"name": "local", "type": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}]},
        {"name": "steps", "type": {"type": "array", "items": "int"}, "default": []},
        {"name": "weights", "type": ["null", {"type": "map", "values": ["null", "double"]}]},
        {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [
            {"name": "city", "type": ["null", "string"]},
            {"name": "other", "type": ["null", "Kind"], "default": None}]}]},
        {"name": "raw", "type": ["null", {"type": "fixed", "name": "Two", "size": 2}], "default": None},
    ],
}  # fmt: skip


def proto(text: str, name: str) -> DescribedSchema:
    return schema_of(descriptors_of("a.proto", text.encode()), name)


def avro(schema: Any) -> DescribedSchema:
    return schema_of(descriptors_of("a.avsc", json.dumps(schema).encode()), "shop.Visit")


def read_proto(schema: DescribedSchema, name: str, content: bytes) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(schema.schema.text)).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name)).FromString(content)


def written(schema: DescribedSchema, row: dict[str, Any]) -> bytes:
    return described_encoder(schema)(json.dumps(row).encode())


def refused(schema: DescribedSchema, row: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(SqlError) as error:
        written(schema, row)
    return error.value.sqlstate, error.value.message


def test_a_row_is_a_message() -> None:
    """Columns are found by their names without regard to case, as they are read."""
    schema = proto(PROTO, "shop.Visit")
    row = {
        "userid": 2**53 + 1, "url": None, "kind": "HOME", "at": "2026-01-02 03:04:05.000006Z", "length": 7,
        "steps": [1, 2], "weights": {"a": 0.5, "b": "NaN"}, "raw": base64.b64encode(b"\0\xff").decode(),
        "place": {"city": "Ulm", "lat": 1.5}, "name": "ann", "big": 2**64 - 1,
    }  # fmt: skip
    found = read_proto(schema, "shop.Visit", written(schema, row))
    assert json_format.MessageToDict(found, preserving_proto_field_name=True) == {
        "userId": str(2**53 + 1), "kind": "HOME", "at": "2026-01-02T03:04:05.000006Z", "length": "7",
        "steps": [1, 2], "weights": {"a": 0.5, "b": "NaN"}, "raw": "AP8=", "place": {"city": "Ulm", "lat": 1.5},
        "name": "ann", "big": str(2**64 - 1),
    }  # fmt: skip
    assert not found.HasField("url")
    assert required_fields(schema) == []


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"userid": None}, ("22004", 'column "userid" is NULL, which the format protobuf cannot have as a value')),
        ({"place": {"city": None, "lat": None}},
         ("22004", 'column "lat" is NULL, which the format protobuf cannot have as a value')),
        ({"steps": [1, None]}, ("22004", 'field "steps" has a NULL in an array or a map, which Protobuf cannot have')),
        ({"kind": "NOWHERE"}, ("22000", "a row cannot be written as a record of the descriptor")),
        ({"name": "a", "number": 1}, ("22000", "a row cannot be written as a record of the descriptor")),
        ({"big": -1}, ("22000", "a row cannot be written as a record of the descriptor")),
        ({"none": 1}, ("42703", 'the descriptor has no field "none"')),
    ],
)  # fmt: skip
def test_what_no_message_can_hold_is_refused(row: dict[str, Any], told: tuple[str, str]) -> None:
    assert refused(proto(PROTO, "shop.Visit"), row) == told


def test_nested_messages_and_fields_that_must_be_there() -> None:
    place = proto(PROTO, "shop.Visit.Place")
    assert read_proto(place, "shop.Visit.Place", written(place, {"city": "Ulm", "lat": 2})).city == "Ulm"
    row = proto(PROTO2, "Row")
    assert required_fields(row) == ["a"]
    assert written(row, {"a": 1, "b": None}) == b"\x08\x01"
    assert refused(row, {"b": 1})[0] == "22000"


def test_a_row_is_a_record_of_avro() -> None:
    schema = avro(AVRO)
    row = {
        "userid": -5, "url": "ä", "kind": "HOME", "at": "2026-01-02 03:04:05.006000+00:00",
        "local": "2026-01-02 03:04:05.000006", "day": "1969-12-31", "price": 12.5, "steps": [1],
        "weights": {"a": 0.5, "b": None}, "place": {"city": "Ulm", "other": "NONE"}, "raw": "AP8=",
    }  # fmt: skip
    parsed = fastavro.parse_schema(json.loads(json.dumps(AVRO)))
    assert fastavro.schemaless_reader(io.BytesIO(written(schema, row)), parsed, None) == {
        "userId": -5, "url": "ä", "kind": "HOME", "at": dt.datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC),
        "local": dt.datetime(2026, 1, 2, 3, 4, 5, 6), "day": dt.date(1969, 12, 31), "price": Decimal("12.50"),
        "steps": [1], "weights": {"a": 0.5, "b": None}, "place": {"city": "Ulm", "other": "NONE"}, "raw": b"\0\xff",
    }  # fmt: skip
    least = fastavro.schemaless_reader(io.BytesIO(written(schema, {"userid": 1})), parsed, None)
    assert isinstance(least, dict)
    assert (least["userId"], least["url"], least["kind"], least["steps"]) == (1, None, "NONE", [])
    assert required_fields(schema) == ["userId"]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"userid": None}, ("22004", 'column "userid" is NULL, which the format avro cannot have as a value')),
        ({"userid": 1, "steps": None},
         ("22004", 'column "steps" is NULL, which the format avro cannot have as a value')),
        ({"userid": 1, "kind": "NOWHERE"}, ("22000", "a row cannot be written as a record of the descriptor")),
        ({"userid": 1, "price": 0.125}, ("22000", "a row cannot be written as a record of the descriptor")),
        ({"userid": 1, "at": "2026-01-02 03:04:05.000006Z"},
         ("22000", "a row cannot be written as a record of the descriptor")),
        ({"userid": 1, "raw": "AA=="}, ("22000", "a row cannot be written as a record of the descriptor")),
        ({"userid": 1, "none": 1}, ("42703", 'the descriptor has no field "none"')),
    ],
)  # fmt: skip
def test_what_no_record_can_hold_is_refused(row: dict[str, Any], told: tuple[str, str]) -> None:
    assert refused(avro(AVRO), row) == told
