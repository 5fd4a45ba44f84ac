"""A KAFKA store without Spark: its topics as entities, their records as bytes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Entity, EntityRecord, KeyedRecord, Position
from spark_sinks.kafka.admin import Cluster, Topic, client_settings, valid_topic_name
from spark_sinks.kafka.errors import could_not_connect, entity_exists, kafka_error, reported
from spark_sinks.kafka.limits import KAFKA_TIMEOUT_S
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.properties import TopicProperties
from spark_sinks.kafka.records import RecordWriter

_POLL_S = 0.1
_POLL_RECORDS = 500
_VISIBLE_POLL_S = 0.02


class KafkaClient:
    """A :class:`spark_sinks.base.StoreClient` over one cluster."""

    def __init__(self, store: str, options: KafkaOptions, *, timeout_s: float = KAFKA_TIMEOUT_S) -> None:
        self._store = store
        self._options = options
        self._timeout_s = timeout_s
        self._cluster = Cluster(store, options, timeout_s=timeout_s)

    def check(self) -> None:
        self._cluster.topics()

    def list_entities(self) -> Sequence[Entity]:
        return [Entity(name, (("partitions", str(partitions)),)) for name, partitions in self._cluster.topics()]

    def describe_entity(self, name: str) -> Entity:
        topic = self._cluster.topic(name)
        details = [
            ("partitions", str(len(topic.partitions))),
            ("replicas", str(topic.replicas)),
            ("topic_id", topic.id),
            *self._cluster.configs(name),
        ]
        return Entity(name, tuple(details))

    def entity_exists(self, name: str) -> bool:
        return self._cluster.topic_or_none(name) is not None

    def check_create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        wanted = TopicProperties.from_properties(properties)
        _check_name(name)
        if self.entity_exists(name):
            raise entity_exists(self._store, name)
        self._cluster.create_topic(name, wanted.partitions, wanted.replicas, wanted.configs, validate_only=True)

    def create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        wanted = TopicProperties.from_properties(properties)
        _check_name(name)
        self._cluster.create_topic(name, wanted.partitions, wanted.replicas, wanted.configs)
        self._wait_until(name, lambda: self._cluster.topic_or_none(name) is not None)

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        for key in properties:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{key}" is not known for DROP ENTITY in a store of type KAFKA',
            )
        topic = self._cluster.topic(name)
        if topic.internal or name.startswith("__"):
            raise SqlError(
                sqlstates.INSUFFICIENT_PRIVILEGE,
                f'entity "{name}" is internal to store "{self._store}" and cannot be dropped',
            )
        self._cluster.delete_topic(name)
        self._wait_until(name, lambda: self._gone(topic))

    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        # Where it starts is fixed here and not at the first look at the iterator, so that what is written in between is
        # printed.
        topic = self._cluster.topic(name)
        if from_beginning:
            starts = dict(self._cluster.offsets(name, topic.partitions).low)
        else:
            starts = self._cluster.stable_ends(name, topic.partitions)
        return self._follow(name, starts, limit, stopped)

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        for unknown in properties:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{unknown}" is not known for INSERT INTO ENTITY in a store of type KAFKA',
            )
        self._cluster.topic(name)  # a producer would make the topic where brokers allow it
        settings = {
            **client_settings(self._options),
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",  # as Java's producers do, so that equal keys meet
            "delivery.timeout.ms": int(self._timeout_s * 1000),
        }
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append(error)

        producer = Producer(settings)
        try:
            producer.produce(
                name,
                value=None if value is None else value.encode(),
                key=None if key is None else key.encode(),
                on_delivery=delivered,
            )
        except KafkaException as error:
            raise reported(self._store, name, kafka_error(error)) from error
        left = producer.flush(self._timeout_s + 1.0)
        if failed:
            raise reported(self._store, name, failed[0], self._cluster.connection_error())
        if left:
            raise could_not_connect(self._store, "The record was not acknowledged in time")

    def write_records(self, writes: Sequence[tuple[str, Iterable[bytes]]]) -> None:
        self.write_keyed_records([(name, ((None, value) for value in values)) for name, values in writes])

    def write_keyed_records(self, writes: Sequence[tuple[str, Iterable[KeyedRecord]]]) -> None:
        RecordWriter(self._store, self._options, self._cluster, timeout_s=self._timeout_s).write(writes)

    def position(self, name: str, starting: str) -> Position:
        if starting not in ("earliest", "latest"):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'unrecognized starting position "{starting}"',
                hint="It is earliest or latest.",
            )
        topic = self._cluster.topic(name)
        if starting == "earliest":
            offsets = self._cluster.offsets(name, topic.partitions).low
        else:
            offsets = self._cluster.stable_ends(name, topic.partitions)
        return {
            "topic_id": topic.id,
            "partitions": {str(partition): offsets[partition] for partition in sorted(offsets)},
        }

    def close(self) -> None:
        self._cluster.close()

    # --- waiting ---------------------------------------------------------------------------------------------------
    def _wait_until(self, name: str, condition: Callable[[], bool]) -> None:
        """Controllers acknowledge before every broker knows."""
        deadline = time.monotonic() + self._timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise could_not_connect(self._store, f'The brokers do not agree on topic "{name}" yet')
            time.sleep(_VISIBLE_POLL_S)

    def _gone(self, topic: Topic) -> bool:
        now = self._cluster.topic_or_none(topic.name)
        return now is None or now.id != topic.id

    # --- printing --------------------------------------------------------------------------------------------------
    def _follow(
        self, topic: str, starts: Mapping[int, int], limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        consumer = Consumer(
            {
                **client_settings(self._options),
                "group.id": f"mvserver-print-{uuid.uuid4()}",  # required by the client; nothing is committed under it
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "allow.auto.create.topics": False,
            }
        )
        try:
            consumer.assign([Place(topic, partition, offset) for partition, offset in starts.items()])
            sent = 0
            down_since: float | None = None
            while (limit is None or sent < limit) and not stopped():
                wanted = _POLL_RECORDS if limit is None else min(_POLL_RECORDS, limit - sent)
                for message in consumer.consume(wanted, _POLL_S):
                    error = message.error()
                    if error is None:
                        down_since = None
                        yield _record(message)
                        sent += 1
                    elif error.code() == KafkaError._ALL_BROKERS_DOWN:
                        down_since = down_since or time.monotonic()
                    elif not error.retriable() and error.code() != KafkaError._TRANSPORT:
                        raise reported(self._store, topic, error)
                if down_since is not None and time.monotonic() - down_since > self._timeout_s:
                    self._cluster.topic(topic)  # raises while the cluster is away
                    down_since = None
        finally:
            consumer.close()


def _record(message: Message) -> EntityRecord:
    kind, timestamp = message.timestamp()
    return EntityRecord(
        _bytes(message.key()),
        _bytes(message.value()),
        f"{message.partition()}:{message.offset()}",
        None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
    )


def _bytes(content: object) -> bytes | None:
    if isinstance(content, str):
        return content.encode()
    return content if isinstance(content, bytes) else None


def _check_name(name: str) -> None:
    if not valid_topic_name(name):
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'invalid entity name "{name}"',
            detail="A topic's name has 1 to 249 letters, digits, dots, underscores and hyphens.",
        )
