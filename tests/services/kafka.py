"""A real Kafka broker for the whole test run, and topics of their own for the tests that share it."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from mvserver.demo.kafka_broker import KafkaBroker


def _broker() -> Iterator[KafkaBroker]:
    folder = Path(tempfile.mkdtemp(prefix="mvserver-kafka-"))
    broker = KafkaBroker(folder)
    try:
        yield broker.start()
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[KafkaBroker]:
    """Shared by all tests: leave it running. Tests that kill or pause a broker use ``own_kafka_broker``."""
    yield from _broker()


@pytest.fixture
def own_kafka_broker() -> Iterator[KafkaBroker]:
    """A broker that the test may treat as it likes."""
    yield from _broker()


@pytest.fixture
def kafka_topic(kafka_broker: KafkaBroker) -> Callable[..., str]:
    """Makes a topic on the shared broker, under a name that no other test uses."""

    def make(partitions: int = 1, **config: str) -> str:
        return create_topic(kafka_broker, f"t-{uuid.uuid4().hex[:12]}", partitions, **config)

    return make


def create_topic(broker: KafkaBroker, name: str, partitions: int = 1, **config: str) -> str:
    """Underscores in the names of settings stand for dots. Returns when the topic can be used."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
    admin.create_topics([topic], operation_timeout=10)[name].result(20)
    deadline = time.monotonic() + 10
    while True:
        found = admin.describe_topics(TopicCollection([name]), request_timeout=5)[name]
        if found.exception(10) is None and all(part.leader is not None for part in found.result().partitions):
            return name
        if time.monotonic() > deadline:
            raise TimeoutError(f"topic {name} did not appear")
        time.sleep(0.02)
