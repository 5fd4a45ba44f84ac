"""Protobuf records: what is decoded of each type, by each of several schemas, and what is rejected and why."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_sinks.decode.protobuf_format import columns_of
from spark_sinks.schema_registry.base import PROTOBUF, KnownSchemas, RegisteredSchema
from spark_sinks.schema_registry.protobuf import descriptor_set, prepared
from tests.streaming.avro_records import decoded
from tests.streaming.protobuf_records import known, message

D = Decimal
TEXT = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Color { RED = 0; BLUE = 1; }
message Order {
  message Line { string item = 1; int32 count = 2; }
  int64 orderId = 1;
  uint64 big = 2;
  uint32 half = 3;
  sint32 small = 4;
  float single = 5;
  double wide = 6;
  bool paid = 7;
  string note = 8;
  optional string hint = 9;
  bytes raw = 10;
  Color color = 11;
  repeated string tags = 12;
  map<string, int64> counts = 13;
  map<int32, Line> by_number = 14;
  Line line = 15;
  oneof way { string shop = 16; int64 site = 17; }
  google.protobuf.Timestamp at = 18;
  google.protobuf.Int32Value maybe = 19;
}
message Other { string name = 1; message Inner { int32 n = 1; } }
"""
COLUMNS = [
    ("orderid", "BIGINT"), ("big", "DECIMAL(20, 0)"), ("half", "BIGINT"), ("small", "INTEGER"), ("single", "FLOAT"),
    ("wide", "DOUBLE"), ("paid", "BOOLEAN"), ("note", "VARCHAR"), ("hint", "VARCHAR"), ("raw", "VARBINARY"),
    ("color", "VARCHAR"), ("tags", "ARRAY<VARCHAR>"), ("counts", "MAP<VARCHAR, BIGINT>"),
    ("by_number", 'MAP<INTEGER, STRUCT<"item" VARCHAR, "count" INTEGER>>'),
    ("line", 'STRUCT<"item" VARCHAR, "count" INTEGER>'), ("shop", "VARCHAR"), ("site", "BIGINT"),
    ("at", "TIMESTAMP_LTZ"), ("maybe", "INTEGER"),
]  # fmt: skip
WHOLE: dict[str, Any] = {
    "orderId": 7, "big": 2**64 - 1, "half": 2**32 - 1, "small": -3, "single": 0.5, "wide": 0.1, "paid": True,
    "note": "é", "hint": "", "raw": base64.b64encode(b"\0\xff").decode(), "color": "BLUE", "tags": ["a", "b"],
    "counts": {"x": 1}, "by_number": {5: {"item": "tea", "count": 2}}, "line": {"item": "mug"}, "site": 9,
    "at": "2024-02-29T12:34:56.789012Z", "maybe": 0,
}  # fmt: skip


def test_columns_of_a_schema() -> None:
    schema = RegisteredSchema(1, PROTOBUF, TEXT)
    assert [(c.name, c.type) for c in columns_of(schema)] == COLUMNS
    assert columns_of(schema)[0].spelling == "orderId"
    serialized = base64.b64encode(descriptor_set(schema).file[-1].SerializeToString()).decode()
    assert columns_of(RegisteredSchema(2, PROTOBUF, serialized)) == columns_of(schema)


@pytest.mark.spark
def test_values_of_each_type(spark: SparkSession) -> None:
    declared = [f"{name} {type_}" for name, type_ in COLUMNS]
    values = [message(TEXT, "shop.Order", WHOLE), message(TEXT, "shop.Order", {})]
    whole, empty = decoded(spark, declared, known(TEXT), values, "protobuf")
    assert whole == (
        7, D(2**64 - 1), 2**32 - 1, -3, 0.5, 0.1, True, "é", "", b"\0\xff", "BLUE", ["a", "b"], [("x", 1)],
        [(5, {"item": "tea", "count": 2})], {"item": "mug", "count": 0}, None, 9,
        dt.datetime(2024, 2, 29, 12, 34, 56, 789012, dt.UTC), 0, None,
    )  # fmt: skip
    assert empty == (
        0, D(0), 0, 0, 0.0, 0.0, False, "", None, b"", "RED", [], [], [], None, None, None, None, None, None,
    )  # fmt: skip


@pytest.mark.spark
def test_messages_are_found_by_their_place(spark: SparkSession) -> None:
    """A second schema, other messages of a file, a nested one; and places that there are not."""
    later = TEXT.replace("string name = 1;", "int64 name = 1;")
    values = [
        message(TEXT, "shop.Other", {"name": "a"}, index=[1]),
        message(later, "shop.Other", {"name": 5}, id_=2, index=[1]),
        message(TEXT, "shop.Other.Inner", {"n": 6}, index=[1, 0]),
        message(TEXT, "shop.Other", {"name": "a"}, index=[7]),
        message(TEXT, "shop.Other", {"name": "a"}, id_=3),
        b"\0\0\0\0\1\0\xff\xff",
        b"{}",
    ]
    rows = decoded(spark, ["name VARCHAR", "n INTEGER"], known(TEXT, later), values, "protobuf")
    assert rows[:5] == [
        ("a", None, None),
        (None, None, 'column "name" is not of type VARCHAR: 5'),
        (None, 6, None),
        (None, None, "the value is of a message that schema 1 does not have"),
        (None, None, "\ufdd13"),
    ]
    assert rows[5][2].startswith("the value is not of schema 1: ")
    assert rows[6][2] == "the value does not begin with the id of a schema"


@pytest.mark.spark
def test_a_schema_that_protoc_does_not_take_rejects_its_records(spark: SparkSession) -> None:
    broken = prepared(RegisteredSchema(1, PROTOBUF, "message {"))
    escaping = prepared(RegisteredSchema(2, PROTOBUF, TEXT, (("../../x.proto", ""),)))
    rows = decoded(spark, ["a INTEGER"], KnownSchemas(1, (broken, escaping)),
                   [b"\0\0\0\0\1\0", b"\0\0\0\0\2\0"], "protobuf")  # fmt: skip
    assert rows[0][1].startswith("schema 1 cannot be used: ")
    assert rows[1][1] == "schema 2 cannot be used: it refers to a file outside of its folder: ../../x.proto"
