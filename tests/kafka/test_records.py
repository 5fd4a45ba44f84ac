"""Records that a statement writes to topics: all in one transaction or none, on a real broker."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from mvserver.demo.kafka_broker import KafkaBroker
from mvserver.errors import SqlError
from spark_sinks.kafka.client import KafkaClient
from spark_sinks.kafka.options import KafkaOptions

pytestmark = pytest.mark.kafka
MakeTopic = Callable[..., str]


@pytest.fixture
def client(kafka_broker: KafkaBroker) -> Iterator[KafkaClient]:
    made = KafkaClient("k", KafkaOptions.from_properties({"uris": kafka_broker.bootstrap}))
    yield made
    made.close()


def committed(broker: KafkaBroker, client: KafkaClient, topic: str, count: int) -> list[bytes]:
    """All committed values: ``count`` of them and then none. Markers may follow a commit's answer."""
    partitions = client.position(topic, "earliest")["partitions"]
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "test", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, int(partition), 0) for partition in partitions])
    values: list[bytes] = []
    ended: set[int | None] = set()
    deadline = time.monotonic() + 20
    while len(ended) < len(partitions) or len(values) < count:
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, 0.2):
            if message.error() is not None:
                ended.add(message.partition())
            else:
                assert message.key() is None
                values.append(message.value())
    consumer.close()
    return sorted(values)


def test_all_topics_or_none(kafka_broker: KafkaBroker, kafka_topic: MakeTopic, client: KafkaClient) -> None:
    one, two = kafka_topic(3), kafka_topic()
    values = [b"%d" % at for at in range(5_000)]
    client.write_records([(one, values), (two, [b"x"])])
    assert committed(kafka_broker, client, one, 5_000) == sorted(values)
    assert committed(kafka_broker, client, two, 1) == [b"x"]

    def broken() -> Iterator[bytes]:
        yield b"never seen"
        raise SqlError("57014", "canceling statement due to user request")

    with pytest.raises(SqlError) as caught:
        client.write_records([(one, [b"neither"] * 100), (two, broken())])
    assert caught.value.sqlstate == "57014"
    with pytest.raises(SqlError) as caught:
        client.write_records([(two, [b"neither"]), ("no-such-topic", [b"y"])])
    assert (caught.value.sqlstate, caught.value.message) == (
        "42704",
        'entity "no-such-topic" does not exist in store "k"',
    )
    client.write_records([(two, [b"y"])])  # what was aborted holds up nobody
    assert committed(kafka_broker, client, two, 2) == [b"x", b"y"]
    assert len(committed(kafka_broker, client, one, 5_000)) == len(values)


def test_records_with_keys(kafka_broker: KafkaBroker, kafka_topic: MakeTopic, client: KafkaClient) -> None:
    """Beside those without, in one transaction; a key has its partition."""
    keyed, bare = kafka_topic(4), kafka_topic()
    records = [(b"k%d" % (at % 7), b"%d" % at) for at in range(200)]
    client.write_keyed_records([(keyed, [*records, (None, b"none")]), (bare, [(None, b"x")])])
    found = list(client.print_entity(keyed, from_beginning=True, limit=201, stopped=lambda: False))
    assert sorted((each.key or b"", each.value) for each in found) == sorted([*records, (b"", b"none")])
    places = {(each.key, each.position.partition(":")[0]) for each in found if each.key is not None}
    assert len(places) == 7
    for key, place in places:
        mine = [each.value for each in found if each.key == key and each.position.startswith(f"{place}:")]
        assert mine == [value for other, value in records if other == key]
    assert committed(kafka_broker, client, bare, 1) == [b"x"]


def test_a_record_that_the_topic_does_not_take(
    kafka_broker: KafkaBroker, kafka_topic: MakeTopic, client: KafkaClient
) -> None:
    topic = kafka_topic(**{"max.message.bytes": "2000"})
    with pytest.raises(SqlError) as caught:
        client.write_records([(topic, [b"small", random.Random(1).randbytes(25_000)])])
    assert caught.value.sqlstate == "54000"
    client.write_records([(topic, [b"small"])])
    assert committed(kafka_broker, client, topic, 1) == [b"small"]


def test_a_cluster_that_is_not_there() -> None:
    client = KafkaClient("k", KafkaOptions.from_properties({"uris": "127.0.0.1:1"}), timeout_s=1.0)
    with pytest.raises(SqlError) as caught:
        client.write_records([("t", [b"x"])])
    assert caught.value.sqlstate == "08006"
    client.close()
