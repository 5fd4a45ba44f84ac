"""The records of the measurement of formats, in Protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_sinks.schema_registry.base import KnownSchemas
from tests.streaming.protobuf_records import known, message, read

TEXT = """syntax = "proto3";
message Order {
  int64 id = 1; string url = 2; string device = 3; string user_id = 4; double price = 5; int32 quantity = 6;
  bool paid = 7; optional string note = 8;
}"""
PROTOBUF_SCHEMA: KnownSchemas = known(TEXT)


def protobuf_record(row: Mapping[str, Any], id_: int = 1) -> bytes:
    return message(TEXT, "Order", {key: value for key, value in row.items() if value is not None}, id_=id_)


def number_of(record: bytes) -> int:
    return int(read(TEXT, "Order", record).id)
