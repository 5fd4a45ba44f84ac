"""The client functions on a real broker."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from mvserver.demo.kafka_broker import KafkaBroker
from mvserver.errors import SqlError
from spark_sinks.kafka.client import KafkaClient
from spark_sinks.kafka.options import KafkaOptions
from tests.services.kafka import create_topic

pytestmark = pytest.mark.kafka
MakeTopic = Callable[..., str]


@pytest.fixture
def client(kafka_broker: KafkaBroker) -> Iterator[KafkaClient]:
    client = KafkaClient("k", KafkaOptions.from_properties({"uris": kafka_broker.bootstrap}))
    yield client
    client.close()


def failing(call: Callable[[], object]) -> SqlError:
    with pytest.raises(SqlError) as caught:
        call()
    return caught.value


def patience(seconds: float = 15.0) -> Callable[[], bool]:
    deadline = time.monotonic() + seconds
    return lambda: time.monotonic() > deadline


def test_entities_come_and_go(client: KafkaClient, kafka_broker: KafkaBroker) -> None:
    name = f"made.{time.time_ns()}"
    properties = {"topic.partitions": 3, "topic.replicas": 1, "kafka.topic.retention.ms": "3600000"}
    client.check()
    assert not client.entity_exists(name)
    client.check_create_entity(name, properties)
    assert not client.entity_exists(name)
    client.create_entity(name, properties)
    assert client.entity_exists(name)
    assert (name, (("partitions", "3"),)) in [(entity.name, entity.details) for entity in client.list_entities()]
    details = dict(client.describe_entity(name).details)
    assert (details["partitions"], details["replicas"], details["retention.ms"]) == ("3", "1", "3600000")
    assert len(details["topic_id"]) == 22
    for call in (client.check_create_entity, client.create_entity):
        error = failing(lambda call=call: call(name, properties))  # type: ignore[misc]
        assert (error.sqlstate, error.message) == ("42710", f'entity "{name}" already exists in store "k"')
    client.drop_entity(name, {})
    assert not client.entity_exists(name)


def test_missing_entity_is_named_and_not_made(client: KafkaClient) -> None:
    calls: list[Callable[[], object]] = [
        lambda: client.describe_entity("absent"),
        lambda: client.drop_entity("absent", {}),
        lambda: client.print_entity("absent", from_beginning=True, limit=1, stopped=patience()),
        lambda: client.insert_record("absent", "x", None, {}),
        lambda: client.position("absent", "latest"),
    ]
    for call in calls:
        error = failing(call)
        assert (error.sqlstate, error.message) == ("42704", 'entity "absent" does not exist in store "k"')
    assert not client.entity_exists("absent")
    assert not client.entity_exists("not a topic's name")
    assert "absent" not in [entity.name for entity in client.list_entities()]


@pytest.mark.parametrize(
    ("properties", "part"),
    [
        ({"topic.replicas": 3}, "replication factor of 3 cannot be reached"),
        ({"kafka.topic.retention.ms": "soon"}, "Invalid value soon for configuration retention.ms"),
        ({"kafka.topic.colour": "red"}, "Unknown topic config name: colour"),
    ],
)
def test_what_the_broker_refuses(client: KafkaClient, properties: dict[str, object], part: str) -> None:
    for call in (client.check_create_entity, client.create_entity):
        error = failing(lambda call=call: call("refused", properties))  # type: ignore[misc]
        assert (error.sqlstate, error.message) == ("22023", 'store "k" refuses the properties of the entity "refused"')
        assert error.detail is not None
        assert part in error.detail
    assert not client.entity_exists("refused")


def test_names(client: KafkaClient) -> None:
    for name in ("", "..", "a b", "a/b", "x" * 250, "ü"):
        assert failing(lambda name=name: client.create_entity(name, {})).sqlstate == "42602"  # type: ignore[misc]


def test_inserted_records_are_printed(client: KafkaClient, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic()
    before = int(time.time() * 1000)
    client.insert_record(topic, '{"a": 1}', "k1", {})
    client.insert_record(topic, "ü", None, {})
    records = list(client.print_entity(topic, from_beginning=True, limit=2, stopped=patience()))
    assert [(record.key, record.value, record.position) for record in records] == [
        (b"k1", b'{"a": 1}', "0:0"),
        (None, "ü".encode(), "0:1"),
    ]
    assert all(record.timestamp_ms is not None and record.timestamp_ms >= before for record in records)
    following = client.print_entity(topic, from_beginning=False, limit=None, stopped=patience())
    client.insert_record(topic, "new", None, {})
    assert next(following).value == b"new"


def test_printing_stops_when_asked(client: KafkaClient, kafka_topic: MakeTopic) -> None:
    asked = itertools.count()
    started = time.monotonic()
    printed = list(
        client.print_entity(kafka_topic(), from_beginning=True, limit=None, stopped=lambda: next(asked) >= 3)
    )
    assert printed == []
    assert time.monotonic() - started < 5


def test_positions(client: KafkaClient, kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic(2)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    for number in range(5):
        producer.produce(topic, str(number), partition=1)
    producer.flush()
    topic_id = dict(client.describe_entity(topic).details)["topic_id"]
    assert client.position(topic, "earliest") == {"topic_id": topic_id, "partitions": {"0": 0, "1": 0}}
    assert client.position(topic, "latest") == {"topic_id": topic_id, "partitions": {"0": 0, "1": 5}}
    assert failing(lambda: client.position(topic, "middle")).sqlstate == "22023"


def test_positions_while_leaders_are_being_chosen(client: KafkaClient, kafka_broker: KafkaBroker) -> None:
    """A broker lists a new partition some milliseconds before it leads it, and answers "not leader" in between."""
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap, "log_level": 0})
    for turn in range(3):
        topic = create_topic(kafka_broker, f"led.{turn}.{time.time_ns()}")
        for partitions in (31, 61):
            growing = admin.create_partitions([NewPartitions(topic, partitions)], operation_timeout=10)[topic]
            late = patience()
            found: set[str] = set()
            while len(found) < partitions and not late():
                found = set(client.position(topic, "latest")["partitions"])
            growing.result(20)
            assert found == {str(partition) for partition in range(partitions)}
        client.drop_entity(topic, {})


def test_open_and_aborted_transactions_are_not_printed(
    client: KafkaClient, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    topic = kafka_topic()
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, "aborted")
    producer.flush()
    assert client.position(topic, "latest")["partitions"] == {"0": 0}
    producer.abort_transaction(10)
    producer.begin_transaction()
    producer.produce(topic, "committed")
    producer.commit_transaction(10)
    records = list(client.print_entity(topic, from_beginning=True, limit=1, stopped=patience()))
    assert [(record.value, record.position) for record in records] == [(b"committed", "0:2")]
    assert client.position(topic, "latest")["partitions"] == {"0": 4}


def test_internal_topics_are_hidden_and_kept(client: KafkaClient, kafka_broker: KafkaBroker) -> None:
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": "makes-internal-topics"})
    producer.init_transactions(10)
    assert client.entity_exists("__transaction_state")
    assert not [entity for entity in client.list_entities() if entity.name.startswith("__")]
    assert failing(lambda: client.drop_entity("__transaction_state", {})).sqlstate == "42501"


def test_host_that_refuses_in_bounded_time() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"  # bound and not listening: refuses
        client = KafkaClient("far", KafkaOptions.from_properties({"uris": address}), timeout_s=1.0)
        for call in (client.check, lambda: client.describe_entity("t"), lambda: client.position("t", "latest")):
            started = time.monotonic()
            error = failing(call)
            assert (error.sqlstate, error.message) == ("08006", 'could not connect to store "far"')
            assert error.detail is not None
            assert "Connection refused" in error.detail
            assert time.monotonic() - started < 4


def test_host_that_never_answers_in_bounded_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        client = KafkaClient("mute", KafkaOptions.from_properties({"uris": address}), timeout_s=1.0)
        started = time.monotonic()
        error = failing(client.check)
        assert (error.sqlstate, error.message) == ("08006", 'could not connect to store "mute"')
        assert time.monotonic() - started < 4
