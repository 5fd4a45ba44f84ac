"""Topics whose records have schemas in a registry, end to end: a real broker, a real registry, one server."""

from __future__ import annotations

import base64
import datetime as dt
import json
import signal
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from mvserver.demo.kafka_broker import KafkaBroker
from spark_sinks.schema_registry.base import RegisteredSchema
from spark_sinks.schema_registry.protobuf import descriptor_set
from tests.faults.live import LiveServer, temporary_server
from tests.services.kafka import create_topic
from tests.services.schema_registry import Registry
from tests.streaming.avro_records import of_fields, record
from tests.streaming.protobuf_records import message

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.registry]


@dataclass(frozen=True)
class World:
    server: LiveServer
    broker: KafkaBroker
    registry: Registry

    def topic(self, partitions: int = 1) -> str:
        return create_topic(self.broker, f"t_{uuid.uuid4().hex[:10]}", partitions)

    def send(self, topic: str, *values: bytes | None, key: bytes | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "enable.idempotence": True})
        for value in values:
            producer.produce(topic, key=key, value=value)
        assert producer.flush(60) == 0

    def register(self, topic: str, schema: Any, *, part: str = "value", kind: str = "AVRO") -> int:
        return self.registry.register(f"{topic}-{part}", json.dumps(schema), kind)


@pytest.fixture(scope="module")
def world(kafka_broker: KafkaBroker, schema_registry: Registry) -> Iterator[World]:
    with temporary_server() as server:
        server.start()
        server.run(
            f"CREATE SCHEMA_REGISTRY sr WITH ('type' = CONFLUENT, 'uris' = '{schema_registry.address}')",
            f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}', 'schema_registry.name' = sr)",
            f"CREATE STORE bare WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
            "USE STORE k",
        )
        yield World(server, kafka_broker, schema_registry)


FIRST = of_fields(("orderId", "long"), ("item", ["null", "string"]), name="Order")
SECOND = {
    **FIRST,
    "fields": [*FIRST["fields"], {"name": "price", "type": ["null", "double"], "default": None}],
}


def test_columns_come_from_the_registry_and_writers_evolve(world: World) -> None:
    """A second schema comes while the view runs; records without any schema are rows of rejected_rows."""
    topic = world.topic()
    first, second = world.register(topic, FIRST), world.register(topic, SECOND)
    world.send(topic, record(FIRST, {"orderId": 1, "item": "tea"}, first))
    world.server.run(
        f"CREATE STREAM orders WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'avro')",
        "CREATE MATERIALIZED VIEW per_item AS SELECT item, count(*) AS n FROM orders GROUP BY item",
        "CREATE MATERIALIZED VIEW all_orders AS SELECT orderid, price FROM orders",
    )
    columns = world.server.query("DESCRIBE RELATION COLUMNS orders")
    assert [row[1:3] for row in columns] == [("orderid", "BIGINT"), ("item", "VARCHAR"), ("price", "DOUBLE")]
    world.server.wait_equal("SELECT item, n FROM per_item", {("tea",): 1})
    world.send(
        topic,
        record(SECOND, {"orderId": 2, "item": "tea", "price": 1.5}, second),
        b"no schema",
        record(FIRST, {"orderId": 3, "item": None}, 1_999_999_999),
        record(FIRST, {"orderId": 4, "item": None}, first),
    )
    world.server.wait_equal("SELECT item, n FROM per_item", {("tea",): 2, (None,): 1})
    assert world.server.query("SELECT orderid, price FROM all_orders ORDER BY 1") == [(1, None), (2, 1.5), (4, None)]
    rejected = "SELECT position, reason FROM mv_catalog.rejected_rows WHERE relation LIKE '%orders' ORDER BY position"
    assert world.server.query(rejected) == [
        ("0:2", "the value does not begin with the id of a schema"),
        ("0:3", "schema 1999999999 is not in the schema registry"),
    ]


def test_changelogs_have_keys_of_avro(world: World) -> None:
    topic = world.topic()
    key, value = of_fields(("id", "long"), name="Key"), of_fields(("id", "long"), ("name", "string"), name="Value")
    key_id, value_id = world.register(topic, key, part="key"), world.register(topic, value)
    for number, name in ((1, "ann"), (2, "ben"), (1, "anna")):
        world.send(
            topic, record(value, {"id": number, "name": name}, value_id), key=record(key, {"id": number}, key_id)
        )
    world.server.run(
        "CREATE CHANGELOG people (id BIGINT, name VARCHAR, PRIMARY KEY (id)) "
        f"WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'avro', 'key.format' = 'avro')",
        "CREATE MATERIALIZED VIEW names AS SELECT id, name FROM people",
    )
    world.server.wait_equal("SELECT id, name FROM names", {(1,): "anna", (2,): "ben"})
    world.send(topic, None, key=record(key, {"id": 2}, key_id))
    world.server.wait_equal("SELECT id, name FROM names", {(1,): "anna"})


def test_changelogs_without_columns(world: World) -> None:
    """The primary key is what the keys' schema has, also where values do not have it; or what the statement names."""
    topic = world.topic()
    key, value = of_fields(("Id", "long"), name="Key"), of_fields(("name", "string"), name="Value")
    key_id, value_id = world.register(topic, key, part="key"), world.register(topic, value)
    for number, name in ((1, "ann"), (2, "ben"), (1, "anna")):
        world.send(topic, record(value, {"name": name}, value_id), key=record(key, {"Id": number}, key_id))
    bare = world.topic()
    whole = of_fields(("id", "long"), ("name", "string"), name="Whole")
    world.send(bare, record(whole, {"id": 3, "name": "cid"}, world.register(bare, whole)), key=b"\0" * 7 + b"\3")
    world.server.run(
        f"CREATE CHANGELOG inferred WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'avro')",
        "CREATE MATERIALIZED VIEW inferred_names AS SELECT id, name FROM inferred",
        f"CREATE CHANGELOG named WITH ('store' = 'k', 'topic' = '{bare}', 'value.format' = 'avro', "
        "'key.columns' = 'id')",
        "CREATE MATERIALIZED VIEW named_names AS SELECT id, name FROM named",
    )
    columns = world.server.query("DESCRIBE RELATION COLUMNS inferred")
    assert [row[1:] for row in columns] == [("id", "BIGINT", False, True), ("name", "VARCHAR", True, False)]
    world.server.wait_equal("SELECT id, name FROM inferred_names", {(1,): "anna", (2,): "ben"})
    world.server.wait_equal("SELECT id, name FROM named_names", {(3,): "cid"})
    world.send(topic, None, key=record(key, {"Id": 2}, key_id))
    world.send(bare, None, key=b"\0" * 7 + b"\3")
    world.server.wait_equal("SELECT id, name FROM inferred_names", {(1,): "anna"})
    world.server.wait_for(lambda: world.server.query("SELECT * FROM named_names") == [], 60, "not deleted")
    wrong = f"CREATE CHANGELOG wrong WITH ('store' = 'k', 'topic' = '{bare}', 'value.format' = 'avro'"
    with pytest.raises(psycopg.Error) as caught:
        world.server.run(f"{wrong})")
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (
        "42P16",
        "the primary key of the changelog is not known",
    )
    with pytest.raises(psycopg.errors.UndefinedColumn):
        world.server.run(f"{wrong}, 'key.columns' = 'nope')")


def test_json_with_a_schema(world: World) -> None:
    topic = world.topic()
    schema = {
        "type": "object",
        "properties": {"userId": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}},
    }
    id_ = world.register(topic, schema, kind="JSON")
    head = b"\0" + id_.to_bytes(4, "big")
    world.send(topic, head + b'{"userId": 7, "at": "2024-01-01T00:00:00Z"}', b'{"userId": 8}', head + b"{}")
    world.server.run(
        f"CREATE STREAM visits WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'json_schema')",
        "CREATE MATERIALIZED VIEW by_user AS SELECT userid, count(*) AS n, max(at) AS last FROM visits GROUP BY userid",
    )
    world.server.wait_equal("SELECT userid, n FROM by_user", {(7,): 1, (None,): 1})
    rejected = "SELECT reason FROM mv_catalog.rejected_rows WHERE relation LIKE '%visits'"
    assert world.server.query(rejected) == [("the value does not begin with the id of a schema",)]


def test_json_is_compared_with_its_schema(world: World) -> None:
    """Where the relation says so. A schema that comes later is asked for."""
    topic = world.topic()
    ids = [
        world.register(topic, {"type": "object", "properties": {"userId": {"type": "integer", **more}}}, kind="JSON")
        for more in ({"minimum": 1}, {"minimum": 0})
    ]
    heads = [b"\0" + id_.to_bytes(4, "big") for id_ in ids]
    world.send(topic, *(heads[0] + text for text in (b'{"userId": 7}', b'{"userId": 0}', b"{}")))
    world.server.run(
        f"CREATE STREAM strict WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'json_schema', "
        "'value.schema.validation' = TRUE)",
        "CREATE MATERIALIZED VIEW strictly AS SELECT userid, count(*) AS n FROM strict GROUP BY userid",
    )
    world.server.wait_equal("SELECT userid, n FROM strictly", {(7,): 1, (None,): 1})
    world.send(topic, *(heads[1] + text for text in (b'{"userId": -1}', b'{"userId": "8"}', b'{"userId": 0}')))
    world.server.wait_equal("SELECT userid, n FROM strictly", {(7,): 1, (None,): 1, (0,): 1})
    rejected = "SELECT position, reason FROM mv_catalog.rejected_rows WHERE relation LIKE '%strict' ORDER BY position"
    assert world.server.query(rejected) == [
        ("0:1", f"the value is not of schema {ids[0]}, at $.userId: 0 is less than the minimum of 1"),
        ("0:3", f"the value is not of schema {ids[1]}, at $.userId: -1 is less than the minimum of 0"),
        ("0:4", f"the value is not of schema {ids[1]}, at $.userId: '8' is not of type 'integer'"),
    ]
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="json_schema alone"):
        world.server.run(
            f"CREATE STREAM odd (a INTEGER) WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'json', "
            "'value.schema.validation' = TRUE)"
        )


PROTO = """syntax = "proto3";
message Other { string unused = 1; }
message Visit { int64 userId = 1; map<string, int32> seen = 2; }
"""


def test_protobuf(world: World) -> None:
    """A schema as text, and one as Confluent's serializer registers it: a descriptor in base64."""
    topic = world.topic()
    subject = f"{topic}-value"
    first = world.registry.register(subject, PROTO.replace("message Other { string unused = 1; }", ""), "PROTOBUF")
    world.send(topic, message(PROTO, "Visit", {"userId": 7, "seen": {"a": 1}}, id_=first))
    world.server.run(
        f"CREATE STREAM seen WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'protobuf')",
        "CREATE MATERIALIZED VIEW by_visitor AS SELECT userid, sum(seen['a']) AS n FROM seen GROUP BY userid",
    )
    columns = world.server.query("DESCRIBE RELATION COLUMNS seen")
    assert [row[1:3] for row in columns] == [("userid", "BIGINT"), ("seen", "MAP<VARCHAR, INTEGER>")]
    world.server.wait_equal("SELECT userid, n FROM by_visitor", {(7,): 1})
    descriptor = descriptor_set(RegisteredSchema(0, "PROTOBUF", PROTO)).file[-1]
    serialized = base64.b64encode(descriptor.SerializeToString()).decode()
    second = world.registry.register(f"{subject}-other", serialized, "PROTOBUF")
    world.send(topic, message(PROTO, "Visit", {"userId": 7, "seen": {"a": 2}}, id_=second, index=[1]), b"\0\0\0\0")
    world.server.wait_equal("SELECT userid, n FROM by_visitor", {(7,): 3})
    rejected = "SELECT reason FROM mv_catalog.rejected_rows WHERE relation LIKE '%seen'"
    assert world.server.query(rejected) == [("the value does not begin with the id of a schema",)]
    sink = f"out_{uuid.uuid4().hex[:8]}"
    world.server.run(
        f"CREATE STREAM written WITH ('store' = 'k', 'topic' = '{sink}', 'topic.partitions' = 1, "
        "'topic.replicas' = 1) AS SELECT userid, seen, ARRAY['x', 'y'] AS tags, "
        "CAST('2024-02-29 12:00:00' AS TIMESTAMP) AS at FROM seen WITH ('starting.position' = 'earliest')",
        "CREATE MATERIALIZED VIEW written_back AS SELECT seen['a'] AS n, userid, tags[2] AS y, at FROM written",
    )
    world.server.wait_equal("SELECT n, userid FROM written_back", {(1,): 7, (2,): 7})
    assert world.server.query("SELECT DISTINCT y, at FROM written_back") == [("y", dt.datetime(2024, 2, 29, 12))]
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="cannot be written: Protobuf has no such type"):
        world.server.run(
            f"CREATE STREAM d WITH ('store' = 'k', 'topic' = '{sink}') AS "
            "SELECT CAST(userid AS DECIMAL(9, 2)) AS d FROM seen"
        )


def test_a_registry_that_is_away_is_waited_for(world: World) -> None:
    """Only what needs a new schema of it stands still, and goes on by itself; nothing is rejected."""
    topic = world.topic()
    first = world.register(topic, FIRST)
    world.send(topic, record(FIRST, {"orderId": 1, "item": "tea"}, first))
    world.server.run(
        f"CREATE STREAM waits WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'avro')",
        "CREATE MATERIALIZED VIEW counted AS SELECT item, count(*) AS n FROM waits GROUP BY item",
    )
    world.server.wait_equal("SELECT item, n FROM counted", {("tea",): 1})
    unknown = {**SECOND, "fields": [*SECOND["fields"], {"name": "unit", "type": ["null", "string"], "default": None}]}
    second = world.register(topic, unknown)  # the same schema has the same id for all topics, and would be known
    world.registry.process.send_signal(signal.SIGSTOP)
    try:
        world.send(topic, record(unknown, {"orderId": 2, "item": "tea", "price": None, "unit": None}, second))
        world.server.wait_for(lambda: world.server.states()["counted"][0] == "STALLED", 300, "no stall")
        assert world.server.query("SELECT n FROM counted") == [(1,)]
        assert 'schema registry "sr" does not answer' in str(world.server.states()["counted"][1])
        world.server.run("CREATE STREAM beside (a INTEGER) WITH ('store' = 'bare', 'topic' = 'beside_it', "
                         "'value.format' = 'json', 'topic.partitions' = 1, 'topic.replicas' = 1)")  # fmt: skip
    finally:
        world.registry.process.send_signal(signal.SIGCONT)
    world.server.wait_equal("SELECT item, n FROM counted", {("tea",): 2})
    assert world.server.query("SELECT count(*) FROM mv_catalog.rejected_rows WHERE relation LIKE '%waits'") == [(0,)]


def test_what_queries_write_has_schemas_too(world: World) -> None:
    """Read back by confluent_kafka's own deserializer, and by the server."""
    source, sink, grouped = world.topic(), f"out_{uuid.uuid4().hex[:8]}", f"sums_{uuid.uuid4().hex[:8]}"
    first = world.register(source, FIRST)
    world.server.run(
        f"CREATE STREAM base WITH ('store' = 'k', 'topic' = '{source}', 'value.format' = 'avro')",
        f"CREATE STREAM priced WITH ('store' = 'k', 'topic' = '{sink}', 'value.format' = 'avro', "
        "'topic.partitions' = 1, 'topic.replicas' = 1) AS "
        "SELECT orderid, item, CAST(orderid AS DECIMAL(10, 2)) / 4 AS price, "
        "CAST('2024-02-29 12:00:00' AS TIMESTAMP) AS at, ARRAY[orderid] AS ids "
        "FROM base WITH ('starting.position' = 'earliest')",
        f"CREATE CHANGELOG sums WITH ('store' = 'k', 'topic' = '{grouped}', 'value.format' = 'avro', "
        "'key.format' = 'avro', 'topic.partitions' = 1, 'topic.replicas' = 1) AS "
        "SELECT item, count(*) AS n FROM base WITH ('starting.position' = 'earliest') GROUP BY item",
        "CREATE MATERIALIZED VIEW read_back AS SELECT orderid, item, price, ids[1] AS again FROM priced",
        "CREATE MATERIALIZED VIEW sums_back AS SELECT item, n FROM sums",
    )
    rows = [{"orderId": 1, "item": "tea"}, {"orderId": 2, "item": "mug"}, {"orderId": 3, "item": "tea"}]
    world.send(source, *(record(FIRST, row, first) for row in rows))
    world.server.wait_equal("SELECT item, n FROM sums_back", {("tea",): 2, ("mug",): 1})
    world.server.wait_equal("SELECT orderid, item, again FROM read_back", {(1, "tea"): 1, (2, "mug"): 2, (3, "tea"): 3})
    deserialize = AvroDeserializer(world.registry.client)
    read = [
        deserialize(value, SerializationContext(sink, MessageField.VALUE)) for value in values_of(world.broker, sink, 3)
    ]
    assert [(r["orderid"], r["item"], r["price"], r["at"], r["ids"]) for r in read] == [
        (n, item, Decimal(n) / 4, dt.datetime(2024, 2, 29, 12), [n]) for n, item in ((1, "tea"), (2, "mug"), (3, "tea"))
    ]
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="do not fit the schemas of subject"):
        world.server.run(
            f"CREATE STREAM other WITH ('store' = 'k', 'topic' = '{sink}', 'value.format' = 'avro') AS "
            "SELECT item AS orderid FROM base"
        )


def test_streams_are_written_with_keys_of_a_schema(world: World) -> None:
    source, sink = world.topic(), world.topic()
    first = world.register(source, FIRST)
    world.server.run(
        f"CREATE STREAM keyless WITH ('store' = 'k', 'topic' = '{source}', 'value.format' = 'avro')",
        f"CREATE STREAM keyed WITH ('store' = 'k', 'topic' = '{sink}', 'value.format' = 'json', 'key.format' = 'avro', "
        "'key.columns' = 'item, orderid') AS SELECT orderid, item FROM keyless WITH ('starting.position' = 'earliest')",
        f"CREATE CHANGELOG keyed_rows (item VARCHAR, orderid BIGINT, PRIMARY KEY (item, orderid)) WITH ('store' = 'k', "
        f"'topic' = '{sink}', 'value.format' = 'json', 'key.format' = 'avro')",
        "CREATE MATERIALIZED VIEW keyed_view AS SELECT item, orderid FROM keyed_rows",
    )
    world.send(source, record(FIRST, {"orderId": 7, "item": "tea"}, first))
    world.server.wait_for(lambda: world.server.query("SELECT * FROM keyed_view") == [("tea", 7)], 120, "not there")
    deserialize = AvroDeserializer(world.registry.client)
    ((key, value),) = records_of(world.broker, sink, 1)
    assert deserialize(key, SerializationContext(sink, MessageField.KEY)) == {"item": "tea", "orderid": 7}
    assert json.loads(value) == {"orderid": 7, "item": "tea"}
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="its keys have the format avro"):
        world.server.run("COPY keyed FROM STDIN")


def values_of(broker: KafkaBroker, topic: str, count: int) -> list[bytes]:
    return [value for _, value in records_of(broker, topic, count)]


def records_of(broker: KafkaBroker, topic: str, count: int) -> list[tuple[bytes, bytes]]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": uuid.uuid4().hex,
                         "auto.offset.reset": "earliest"})  # fmt: skip
    consumer.subscribe([topic])
    found: list[tuple[bytes, bytes]] = []
    deadline = time.monotonic() + 90
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append((message.key() or b"", message.value() or b""))
    consumer.close()
    return found


REFUSED = [
    ("CREATE STREAM x (a INTEGER) WITH ('store' = 'bare', 'topic' = '{topic}', 'value.format' = 'avro')", "55000",
     'store "bare" names no schema registry, which the format avro needs'),
    ("CREATE STREAM x WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'avro')", "42704",
     'subject "{topic}-value" does not exist in schema registry "sr"'),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "sqlstate", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_declared_is_refused(world: World, statement: str, sqlstate: str, message: str) -> None:
    topic = world.topic()
    with pytest.raises(psycopg.Error) as raised:
        world.server.run(statement.format(topic=topic))
    assert (raised.value.sqlstate, raised.value.diag.message_primary) == (sqlstate, message.format(topic=topic))


def test_a_stream_of_another_kind_is_refused(world: World) -> None:
    topic = world.topic()
    world.register(topic, FIRST)
    with pytest.raises(psycopg.errors.DatatypeMismatch, match="has schemas of kind AVRO, not JSON"):
        world.server.run(f"CREATE STREAM x WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'json_schema')")
