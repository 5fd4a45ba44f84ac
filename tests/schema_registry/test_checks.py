"""Values of JSON compared with their schemas, without Spark: what is told of a record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_sinks.decode.checked_records import record_check
from spark_sinks.decode.columns import WANTED

SCHEMA = {
    "type": "object",
    "required": ["user"],
    "properties": {"user": {"type": "integer", "minimum": 1}, "where": {"$ref": "place.json"}},
}
PLACE = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 5}}}


def known(*schemas: Any, absent: tuple[int, ...] = (), references: tuple[tuple[str, str], ...] = ()) -> str:
    """With the ids 1, 2 ..."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in schemas]
    each = [{"id": i, "kind": "JSON", "text": text, "references": references} for i, text in enumerate(texts, 1)]
    return json.dumps({"schemas": each, "absent": absent})


def record(value: Any, id_: int = 1) -> bytes:
    return b"\0" + id_.to_bytes(4, "big") + (value if isinstance(value, bytes) else json.dumps(value).encode())


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"user": 1}, None),
        ({"user": 1, "where": {"city": "Bonn"}}, None),
        ({"user": 1.0}, None),  # a whole number, as JSON Schema has it
        ({"user": "1"}, "the value is not of schema 1, at $.user: '1' is not of type 'integer'"),
        ({"user": 0}, "the value is not of schema 1, at $.user: 0 is less than the minimum of 1"),
        ({}, "the value is not of schema 1, at $: 'user' is a required property"),
        (
            {"user": 1, "where": {"city": "Hamburg"}},
            "the value is not of schema 1, at $.where.city: 'Hamburg' is too long",
        ),
        (b"{", None),  # which the decoder tells
        ([1], "the value is not of schema 1, at $: [1] is not of type 'object'"),
    ],
)
def test_reasons(value: Any, told: str | None) -> None:
    check = record_check(known(SCHEMA, references=(("place.json", json.dumps(PLACE)),)))
    assert check(record(value)) == told


def test_ids() -> None:
    check = record_check(known(SCHEMA, True, absent=(9,)))
    assert check(record({}, 2)) is None
    assert check(record({}, 3)) == f"{WANTED}3"
    assert check(record({}, 9)) == "schema 9 is not in the schema registry"
    assert check(b"{}") is None
    assert check(b"") is None


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("{", "schema 1 cannot be used: "),
        ({"type": "nothing"}, "schema 1 cannot be used: "),
        ({"$ref": "http://127.0.0.1:1/other.json"}, "schema 1 cannot be used: "),
        ({"$ref": "file:///etc/passwd"}, "schema 1 cannot be used: "),
    ],
)
def test_a_schema_that_cannot_be_used_reaches_nothing(schema: Any, told: str) -> None:
    assert (record_check(known(schema))(record({"user": 1})) or "").startswith(told)


def test_drafts() -> None:
    """Each schema is read as its own draft says; by default as the seventh."""
    newest = {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "integer"}]}
    check = record_check(known(newest, {"items": [{"type": "integer"}]}))
    assert check(record([1, "a"], 1)) is None
    assert check(record(["a"], 1)) == "the value is not of schema 1, at $[0]: 'a' is not of type 'integer'"
    assert check(record(["a"], 2)) == "the value is not of schema 2, at $[0]: 'a' is not of type 'integer'"
