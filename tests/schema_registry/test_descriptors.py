"""Descriptors from files, without a server: what a file has, and which schema a name of it means."""

from __future__ import annotations

import json

import pytest

from mvserver.errors import SqlError
from spark_sinks.decode import columns_of_descriptor
from spark_sinks.schema_registry.base import PROTOBUF, RegisteredSchema
from spark_sinks.schema_registry.descriptors import Descriptors, descriptors_of, schema_of
from spark_sinks.schema_registry.protobuf import descriptor_set

PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Visit {
  message Page { string url = 1; }
  int64 userId = 1; Page page = 2; google.protobuf.Timestamp at = 3; map<string, int32> seen = 4;
}
message Order { uint32 n = 1; }
"""
ITEM = {"type": "record", "name": "Item", "namespace": "shop", "fields": [{"name": "name", "type": "string"}]}
BASKET = {
    "type": "record",
    "name": "shop.Basket",
    "fields": [{"name": "items", "type": {"type": "array", "items": "shop.Item"}}],
}


def columns(found: Descriptors, message: str) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns_of_descriptor(schema_of(found, message))]


def test_a_proto_file_has_its_messages() -> None:
    found = descriptors_of("a/visits.proto", PROTO.encode())
    assert (found.kind, found.messages) == ("PROTOBUF", ("shop.Visit", "shop.Visit.Page", "shop.Order"))
    assert schema_of(found, "shop.Visit.Page").places == (0, 0)
    assert schema_of(found, "shop.Order").places == (1,)
    assert columns(found, "shop.Visit") == [
        ("userid", "BIGINT"),
        ("page", 'STRUCT<"url" VARCHAR>'),
        ("at", "TIMESTAMP_LTZ"),
        ("seen", "MAP<VARCHAR, INTEGER>"),
    ]
    assert columns(found, "shop.Visit.Page") == [("url", "VARCHAR")]


@pytest.mark.parametrize("with_imports", [True, False])
def test_a_compiled_file_is_the_same(with_imports: bool) -> None:
    """Google's own files are known where protoc has left them out."""
    whole = descriptor_set(RegisteredSchema(0, PROTOBUF, PROTO))
    if not with_imports:
        del whole.file[:-1]
    found = descriptors_of("visits.desc", whole.SerializeToString())
    assert found.messages == ("shop.Visit", "shop.Visit.Page", "shop.Order")
    assert columns(found, "shop.Order") == [("n", "BIGINT")]


def test_a_schema_of_avro() -> None:
    found = descriptors_of("item.avsc", json.dumps(ITEM).encode())
    assert (found.kind, found.messages) == ("AVRO", ("shop.Item",))
    assert columns(found, "shop.Item") == [("name", "VARCHAR")]


def test_schemas_of_avro_that_use_each_other() -> None:
    found = descriptors_of("shop.avsc", json.dumps([ITEM, BASKET]).encode())
    assert found.messages == ("shop.Item", "shop.Basket")
    assert [name for name, _ in schema_of(found, "shop.Basket").schema.references] == ["shop.Item"]
    assert schema_of(found, "shop.Item").schema.references == ()
    assert columns(found, "shop.Basket") == [("items", 'ARRAY<STRUCT<"name" VARCHAR>>')]


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("a.txt", b"", "ends with none of"),
        ("a.desc", b"\xff\xff", "no FileDescriptorSet"),
        ("a.desc", b"", "has no message"),
        ("a.proto", b"messag Visit {}", "Expected"),
        ("a.proto", b"\xff", "not UTF-8"),
        ("a.proto", b'syntax = "proto3"; import "other.proto"; message A { Other o = 1; }', "other.proto"),
        ("a.avsc", b"{", "JSONDecodeError"),
        ("a.avsc", b'"string"', "no schema of a record"),
        ("a.avsc", b"[]", "no schema of a record"),
        ("a.avsc", b'{"type": "record", "name": "A", "fields": [{"name": "b", "type": "B"}]}', "B"),
        ("a.avsc", b'{"type": "record", "fields": []}', ""),
    ],
)
def test_a_file_that_is_none_is_refused(file: str, content: bytes, told: str) -> None:
    with pytest.raises(SqlError) as caught:
        descriptors_of(file, content)
    assert caught.value.sqlstate == "22023"
    assert caught.value.message == f'file "{file}" has no descriptors that can be used'
    assert told in (caught.value.detail or "")
