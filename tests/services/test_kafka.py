"""The broker that tests and the demo start, treated badly."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from mvserver.demo import jars
from mvserver.demo.kafka_broker import KafkaBroker

pytestmark = pytest.mark.kafka


def topics(broker: KafkaBroker, timeout_s: float = 10.0) -> set[str]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    return set(admin.list_topics(timeout=timeout_s).topics)


def test_topics_survive_kill_restart_and_pause(own_kafka_broker: KafkaBroker) -> None:
    from tests.services.kafka import create_topic

    broker = own_kafka_broker
    port, first = broker.port, broker.pid
    create_topic(broker, "t")
    broker.kill()
    assert not broker.running()
    with pytest.raises(KafkaException):
        topics(broker, 0.5)
    broker.start()
    assert (broker.port, broker.pid != first) == (port, True)
    assert "t" in topics(broker)
    broker.pause()
    with pytest.raises(KafkaException):
        topics(broker, 0.5)
    broker.resume()
    assert "t" in topics(broker)
    broker.stop()
    broker.stop()
    assert not broker.running()


def test_jars_are_remembered(kafka_broker: KafkaBroker) -> None:
    found = jars.broker_jars()
    assert f"kafka_2.13-{KafkaBroker.version}.jar" in {path.name for path in found}
    assert jars.broker_jars() == found
