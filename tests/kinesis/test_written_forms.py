"""What stores make of rows on their way to a stream: identities, deletions, and records of a descriptor."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import fastavro
import pytest

from catalog.model import Column, Relation, Store
from mvserver.stores import NO_BOOKS, StoreRegistry
from spark_sinks.base import SinkRecords
from spark_sinks.encode.described import described_encoder
from spark_sinks.encode.written import Encode
from spark_sinks.schema_registry.descriptors import DescribedSchema, descriptors_of, schema_of
from spark_sinks.store_kind import StoreSettings
from tests.kinesis.test_sink import Kept
from tests.services.kinesis import KEY, REGION, SECRET, KinesisEmulator, Stream

pytestmark = pytest.mark.kinesis
MakeStream = Callable[..., Stream]
ROWS = SinkRecords([b'{"n":1}', b'{"n":2}'], [b'{"n":1,"s":"a"}', b'{"n":2,"s":null}'], [None] * 2, ["a", "b"])


class Described:
    """Of values by one schema, which has a place for an identity or not."""

    book, registering = NO_BOOKS.book, NO_BOOKS.registering

    def __init__(self, schema: DescribedSchema, *, identified: bool) -> None:
        self._schema = schema
        self._identified = identified

    def described(self, sink: Relation, part: str) -> Encode | None:
        return described_encoder(self._schema) if part.startswith("value") else None

    def has_identity(self, sink: Relation, name: str) -> bool:
        return self._identified


def written(
    kinesis: KinesisEmulator,
    stream: Stream,
    records: SinkRecords,
    schemas: Described | None = None,
    kind: str = "stream",
) -> list[bytes]:
    settings = StoreSettings({"kinesis_request_timeout": 5.0, "kinesis_poll_interval": 0.25}, (), None, 1_000_000)
    registry = StoreRegistry(settings, schemas=NO_BOOKS if schemas is None else schemas)
    properties = {
        "uris": kinesis.endpoint, "access.region": REGION, "kinesis.access_key_id": KEY,
        "kinesis.secret_access_key": SECRET,
    }  # fmt: skip
    store = Store("1", 0, "k", "KINESIS", tuple(properties.items()), "postgres", 0.0, 0.0)
    columns = (Column("n", "BIGINT"), Column("s", "VARCHAR"))
    relation = Relation("2", 0, "s", "r", kind, columns, (), "", "postgres", 0.0, "1", stream.name)
    sink = registry.sink(store, relation, "q", Kept())()
    try:
        sink.write(records, {"seq": 1})
    finally:
        sink.close()
        registry.close()
    return [value for _, value in stream.values()]


def avro(*more: str) -> DescribedSchema:
    fields = [{"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}]
    schema = {"type": "record", "name": "R", "fields": [*fields, *({"name": name, "type": "string"} for name in more)]}
    return schema_of(descriptors_of("r.avsc", json.dumps(schema).encode()), "R")


def read(schema: DescribedSchema, values: list[bytes]) -> list[object]:
    parsed = fastavro.parse_schema(json.loads(schema.schema.text))
    return [fastavro.schemaless_reader(io.BytesIO(value), parsed, None) for value in values]


def test_json_has_an_identity(kinesis: KinesisEmulator, kinesis_stream: MakeStream) -> None:
    found = written(kinesis, kinesis_stream(), ROWS)
    assert [json.loads(value)["_mv_id"] for value in found] == ["q/a", "q/b"]


def test_a_schema_with_a_place_for_it_has_the_identity(kinesis: KinesisEmulator, kinesis_stream: MakeStream) -> None:
    schema = avro("_mv_id")
    found = written(kinesis, kinesis_stream(), ROWS, Described(schema, identified=True))
    assert read(schema, found) == [{"n": 1, "s": "a", "_mv_id": "q/a"}, {"n": 2, "s": None, "_mv_id": "q/b"}]


def test_a_schema_without_one_has_the_row_alone(kinesis: KinesisEmulator, kinesis_stream: MakeStream) -> None:
    schema = avro()
    found = written(kinesis, kinesis_stream(), ROWS, Described(schema, identified=False))
    assert read(schema, found) == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]


def test_a_changelog_says_which_rows_are_gone(kinesis: KinesisEmulator, kinesis_stream: MakeStream) -> None:
    gone = SinkRecords(ROWS.keys, [ROWS.values[0], None], [None] * 2, ["a", "b"])
    found = written(kinesis, kinesis_stream(), gone, kind="changelog")
    assert [json.loads(value) for value in found] == [
        {"n": 1, "s": "a", "_mv_id": "q/a"},
        {"n": 2, "_mv_deleted": True, "_mv_id": "q/b"},
    ]
