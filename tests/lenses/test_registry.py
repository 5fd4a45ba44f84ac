"""Programs over topics that nobody has declared: their fields come from a real schema registry, keys and values."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server
from tests.lenses.broker import Broker
from tests.schema_registry.test_records import World
from tests.services.kafka import create_topic
from tests.services.schema_registry import Registry
from tests.streaming.avro_records import of_fields, record

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.registry]

KEY = of_fields(("shop", "int"), ("no", "long"), name="Key")
VALUE = of_fields(("itemId", "string"), ("pieces", "int"), ("note", ["null", "string"]), name="Value")


@pytest.fixture(scope="module")
def world(kafka_broker: KafkaBroker, schema_registry: Registry) -> Iterator[World]:
    with temporary_server() as server:
        server.start()
        server.run(
            f"CREATE SCHEMA_REGISTRY sr WITH ('type' = CONFLUENT, 'uris' = '{schema_registry.address}')",
            f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}', 'schema_registry.name' = sr)",
        )
        yield World(server, kafka_broker, schema_registry)


def run(server: LiveServer, program: str) -> None:
    with server.connect() as connection:
        connection.execute("USE STORE k")
        connection.execute(f"LENSES $${program}$$".encode())


def avro_values(world: World, topic: str, count: int) -> list[Any]:
    return [(key, of_avro(world, topic, value)) for key, value in written(world, topic, count)]


def of_avro(world: World, topic: str, raw: bytes, part: MessageField = MessageField.VALUE) -> Any:
    return AvroDeserializer(world.registry.client)(raw, SerializationContext(topic, part))


def written(world: World, topic: str, count: int) -> list[tuple[bytes, bytes]]:
    consumer = Consumer(
        {"bootstrap.servers": world.broker.bootstrap, "group.id": "avro", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes, bytes]] = []
    for _ in range(180):
        if len(found) == count:
            break
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append((message.key(), message.value()))
    consumer.close()
    return found


def test_fields_come_from_the_registry_and_avro_is_written(world: World) -> None:
    mark = uuid.uuid4().hex[:8]
    topic, copies, counts, keyed, proto = (f"{name}-{mark}" for name in ("sales", "copies", "counts", "keyed", "proto"))
    create_topic(world.broker, topic, 1)
    key_id, value_id = world.register(topic, KEY, part="key"), world.register(topic, VALUE)
    producer = Producer({"bootstrap.servers": world.broker.bootstrap})

    def sell(shop: int, no: int, item: str, pieces: int, note: str | None) -> None:
        key = record(KEY, {"shop": shop, "no": no}, key_id)
        producer.produce(
            topic, key=key, value=record(VALUE, {"itemId": item, "pieces": pieces, "note": note}, value_id)
        )

    sell(1, 10, "tea", 2, None)
    sell(1, 11, "cup", 1, "blue")
    sell(1, 10, "tea", 5, "more")
    assert producer.flush(30) == 0
    run(
        world.server,
        f"""
        SET defaults.topic.autocreate = true;
        SET defaults.topic.value.avro.namespace = org.shop;
        SET topic.`{copies}`.value.avro.record = Copy;
        INSERT INTO {copies} SELECT STREAM itemId AS _key, itemId, pieces * 2 AS doubled, note, _key.no FROM {topic};
        INSERT INTO {counts} STORE VALUE AS JSON SELECT TABLE SUM(pieces) AS pieces FROM {topic} GROUP BY _key.shop;
        INSERT INTO {keyed} STORE KEY AS AVRO VALUE AS JSON SELECT TABLE SUM(pieces) AS pieces FROM {topic}
        GROUP BY _key.shop, itemId;
        INSERT INTO {proto} STORE KEY AS PROTOBUF VALUE AS PROTOBUF
        SELECT STREAM itemId AS _key.item, _key.no AS _key.no, pieces FROM {topic};
        """,
    )
    assert avro_values(world, copies, 3) == [
        (b"tea", {"itemId": "tea", "doubled": 4, "note": None, "no": 10}),
        (b"cup", {"itemId": "cup", "doubled": 2, "note": "blue", "no": 11}),
        (b"tea", {"itemId": "tea", "doubled": 10, "note": "more", "no": 10}),
    ]
    Broker(world.broker.bootstrap).rows(counts, {(1).to_bytes(4, "big"): {"pieces": 6}})
    by_key = {str(of_avro(world, keyed, key, MessageField.KEY)): value for key, value in written(world, keyed, 2)}
    assert {key: json.loads(value) for key, value in by_key.items()} == {
        str({"shop": 1, "itemId": "tea"}): {"pieces": 5},
        str({"shop": 1, "itemId": "cup"}): {"pieces": 1},
    }
    # what is written as Protobuf is read by the schemas that were registered with it
    back = f"INSERT INTO {proto}-back STORE KEY AS JSON VALUE AS JSON SELECT STREAM * FROM {proto};"
    run(world.server, f"SET defaults.topic.autocreate = true; {back}")
    assert [(json.loads(key), json.loads(value)) for key, value in written(world, f"{proto}-back", 3)] == [
        ({"item": "tea", "no": 10}, {"pieces": 2}),
        ({"item": "cup", "no": 11}, {"pieces": 1}),
        ({"item": "tea", "no": 10}, {"pieces": 5}),
    ]

    latest = world.registry.client.get_latest_version(f"{copies}-value").schema.schema_str
    assert latest is not None
    assert [json.loads(latest)[key] for key in ("namespace", "name")] == ["org.shop", "Copy"]


def test_one_value_is_avro_without_a_record_around_it(world: World) -> None:
    mark = uuid.uuid4().hex[:8]
    topic, names, days = (f"{name}-{mark}" for name in ("goods", "names", "days"))
    create_topic(world.broker, topic, 1)
    value_id = world.register(topic, VALUE)
    producer = Producer({"bootstrap.servers": world.broker.bootstrap})
    for item, pieces in (("tea", 2), ("cup", 1)):
        producer.produce(topic, value=record(VALUE, {"itemId": item, "pieces": pieces, "note": None}, value_id))
    assert producer.flush(30) == 0
    run(
        world.server,
        f"""
        SET defaults.topic.autocreate = true;
        INSERT INTO {names} STORE KEY AS AVRO VALUE AS AVRO
        SELECT STREAM CAST(pieces AS LONG) AS _key, itemId AS _value FROM {topic};
        INSERT INTO {days} STORE KEY AS AVRO VALUE AS AVRO
        SELECT STREAM COUNT(*) AS _value FROM {topic}
        GROUP BY TO_DATE('2024-05-0' || CAST(pieces AS STRING), 'yyyy-MM-dd');
        """,
    )
    assert [
        (of_avro(world, names, key, MessageField.KEY), of_avro(world, names, value))
        for key, value in written(world, names, 2)
    ] == [(2, "tea"), (1, "cup")]
    texts = [
        world.registry.client.get_latest_version(f"{subject}").schema.schema_str
        for subject in (f"{names}-key", f"{names}-value", f"{days}-key")
    ]
    assert [json.loads(text or "") for text in texts] == ["long", "string", {"type": "int", "logicalType": "date"}]
    # What was written is read by the schemas that were registered with it, key and value.
    run(
        world.server,
        f"""
        SET defaults.topic.autocreate = true;
        INSERT INTO {names}-back STORE KEY AS LONG VALUE AS JSON
        SELECT STREAM _key * 10 AS _key, UPPER(_value) AS name FROM {names};
        INSERT INTO {days}-back STORE KEY AS STRING VALUE AS JSON
        SELECT TABLE SUM(_value) AS n FROM {days} GROUP BY MKSTRING(_key);
        """,
    )
    assert [(int.from_bytes(key, "big"), json.loads(value)) for key, value in written(world, f"{names}-back", 2)] == [
        (20, {"name": "TEA"}), (10, {"name": "CUP"})
    ]  # fmt: skip
    Broker(world.broker.bootstrap).rows(f"{days}-back", {b"2024-05-02": {"n": 1}, b"2024-05-01": {"n": 1}})
