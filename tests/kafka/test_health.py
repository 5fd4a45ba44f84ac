"""What is told about a source that has changed behind the reader's back. No Spark."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from mvserver import sqlstates
from mvserver.demo.kafka_broker import KafkaBroker
from mvserver.errors import SqlError
from spark_sinks.base import SourceHealth
from spark_sinks.kafka.admin import Cluster, Offsets, Topic
from spark_sinks.kafka.client import KafkaClient
from spark_sinks.kafka.health import examine
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.positions import make_position
from spark_sinks.kafka.source import KafkaReader
from tests.services.kafka import create_topic

pytestmark = pytest.mark.kafka
MakeTopic = Callable[..., str]


def options(broker: KafkaBroker) -> KafkaOptions:
    return KafkaOptions.from_properties({"uris": broker.bootstrap})


def fill(broker: KafkaBroker, topic: str, counts: list[int]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition, count in enumerate(counts):
        for number in range(count):
            producer.produce(topic, str(number), partition=partition)
    producer.flush()


def delete_before(broker: KafkaBroker, topic: str, partition: int, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        future.result(10)


def topic_id(broker: KafkaBroker, topic: str) -> str:
    return str(KafkaClient("k", options(broker)).position(topic, "earliest")["topic_id"])


def test_well(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic(2)
    fill(kafka_broker, topic, [3, 5])
    identity = topic_id(kafka_broker, topic)
    health = KafkaReader("k", options(kafka_broker), topic).health.look(make_position(identity, {0: 0, 1: 5}))
    assert health == SourceHealth("ok", None, make_position(identity, {0: 3, 1: 5}))


def test_retention_has_passed_the_position(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic(2)
    fill(kafka_broker, topic, [60, 60])
    delete_before(kafka_broker, topic, 1, 50)
    reader = KafkaReader("k", options(kafka_broker), topic)
    identity = topic_id(kafka_broker, topic)
    health = reader.health.look(make_position(identity, {0: 0, 1: 10}))
    assert health.state == "failed"
    assert health.cause == (
        f'offsets 10 to 49 are gone from partition 1 of topic "{topic}" in store "k": '
        "The query's next offset is 10; the first one still there is 50."
    )
    assert reader.health.look(make_position(identity, {0: 0, 1: 50})).state == "ok"
    one = reader.health.look(make_position(identity, {0: 0, 1: 49}))
    assert one.cause is not None
    assert one.cause.startswith("offset 49 is gone from partition 1")


def test_position_beyond_the_end(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic()
    fill(kafka_broker, topic, [4])
    health = KafkaReader("k", options(kafka_broker), topic).health.look(
        make_position(topic_id(kafka_broker, topic), {0: 9})
    )
    assert health.state == "failed"
    assert health.cause is not None
    assert health.cause.startswith(
        f'partition 0 of topic "{topic}" in store "k" ends at offset 4, before the query\'s position 9'
    )


def test_open_transaction_does_not_look_like_loss(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic()
    fill(kafka_broker, topic, [4])
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush()
    identity = topic_id(kafka_broker, topic)
    reader = KafkaReader("k", options(kafka_broker), topic)
    assert reader.health.look(make_position(identity, {0: 5})) == SourceHealth(
        "ok", None, make_position(identity, {0: 4})
    )
    producer.abort_transaction(10)


def test_new_partitions_are_read_from_their_beginning(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic()
    identity = topic_id(kafka_broker, topic)
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(10)
    reader = KafkaReader("k", options(kafka_broker), topic)
    deadline = time.monotonic() + 10
    while (health := reader.health.look(make_position(identity, {0: 0}))).latest != make_position(
        identity, {0: 0, 1: 0, 2: 0}
    ):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert health.state == "ok"
    fill(kafka_broker, topic, [0, 0, 6])
    delete_before(kafka_broker, topic, 2, 4)
    lost = reader.health.look(make_position(identity, {0: 0}))
    assert lost.cause is not None
    assert lost.cause.startswith(f'offsets 0 to 3 are gone from partition 2 of topic "{topic}"')


def test_topic_made_anew_is_noticed_by_its_id(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic(2)
    fill(kafka_broker, topic, [3, 3])
    client = KafkaClient("k", options(kafka_broker))
    position = client.position(topic, "latest")
    reader = KafkaReader("k", options(kafka_broker), topic)
    reader.confirm(position)
    client.drop_entity(topic, {})
    gone = reader.health.look(position)
    assert (gone.state, gone.latest) == ("failed", None)
    assert gone.cause == f'topic "{topic}" does not exist in store "k": It was there when the query was created.'
    with pytest.raises(SqlError) as caught:
        reader.confirm(position)
    assert caught.value.sqlstate == "42704"
    create_topic(kafka_broker, topic, 2)
    fill(kafka_broker, topic, [3, 30])  # longer than before: offsets alone would not show it
    again = reader.health.look(position)
    assert again.state == "failed"
    assert again.cause is not None
    assert again.cause.startswith(f'topic "{topic}" in store "k" was deleted and created again: The query reads ')
    with pytest.raises(SqlError) as caught:
        reader.confirm(position)
    assert caught.value.sqlstate == "55000"


def test_broker_that_is_paused_killed_and_comes_back(own_kafka_broker: KafkaBroker) -> None:
    topic = create_topic(own_kafka_broker, "t")
    fill(own_kafka_broker, topic, [3])
    position = make_position(topic_id(own_kafka_broker, topic), {0: 1})
    reader = KafkaReader("k", options(own_kafka_broker), topic, timeout_s=0.5)
    assert reader.health.look(position).state == "ok"

    def stalled() -> None:
        started = time.monotonic()
        health = reader.health.look(position)
        assert (health.state, (health.cause or "").split(": ")[0]) == ("stalled", 'could not connect to store "k"')
        assert time.monotonic() - started < 5

    def recovers() -> None:
        deadline = time.monotonic() + 20
        while reader.health.look(position).state != "ok":
            assert time.monotonic() < deadline

    own_kafka_broker.pause()
    stalled()
    own_kafka_broker.resume()
    recovers()
    own_kafka_broker.kill()
    stalled()
    own_kafka_broker.start()
    recovers()


def test_an_answer_is_right_or_an_error_while_the_broker_stops_at_random(own_kafka_broker: KafkaBroker) -> None:
    """librdkafka ends a request for offsets that had no answer with offset -1001 and no error."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    topic = create_topic(own_kafka_broker, "t")
    fill(own_kafka_broker, topic, [3])
    cluster = Cluster("k", options(own_kafka_broker), timeout_s=0.5)
    identity = cluster.topic(topic).id
    asked: tuple[tuple[Callable[[], object], object], ...] = (
        (lambda: cluster.offsets(topic, (0,)), Offsets({0: 0}, {0: 3})),
        (lambda: cluster.ends(topic, (0,)), {0: 3}),
        (lambda: cluster.topic(topic), Topic(topic, identity, (0,), 1, False)),
        (lambda: examine(cluster, topic, make_position(identity, {0: 3})).state, "ok"),
    )
    for question, answer in asked:
        assert question() == answer
        for _ in range(3):
            unanswered_by_a_stopping_broker(own_kafka_broker, question, answer, chance.random() * 0.05)


def unanswered_by_a_stopping_broker(
    broker: KafkaBroker, question: Callable[[], object], answer: object, after_s: float
) -> None:
    """Asks again and again, also while the broker stops ``after_s`` from now, until there is no answer."""
    stopping = threading.Timer(after_s, broker.pause)
    stopping.start()
    deadline = time.monotonic() + 20
    try:
        while (said := asked_once(question)) == answer:
            assert time.monotonic() < deadline, "the broker did not stop"
        assert said in ("stalled", sqlstates.CONNECTION_FAILURE), said
    finally:
        stopping.join()
        broker.resume()
    while asked_once(question) != answer:
        assert time.monotonic() < deadline, "the broker did not come back"


def asked_once(question: Callable[[], object]) -> object:
    try:
        return question()
    except SqlError as error:
        return error.sqlstate
