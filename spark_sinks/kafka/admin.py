"""One connection to a cluster for what can be asked of it: topics, their ids, offsets. Every request has a bound.

A topic is always looked at by the admin protocol's describe request: an ordinary metadata request would create a
missing topic on brokers that create topics automatically.
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from mvserver.errors import SqlError
from spark_sinks.kafka.errors import could_not_connect, electing, kafka_error, no_entity, reported
from spark_sinks.kafka.limits import KAFKA_TIMEOUT_S, KAFKA_TOPIC_NAME_CHARACTERS_MAX
from spark_sinks.kafka.options import KafkaOptions

# The future of a request ends when the request does; this is for the case that it does not.
_FUTURE_GRACE_S = 2.0
_ELECTION_POLL_S = 0.01
_METADATA_POLL_S = 0.02
_Wanted = tuple[Any, IsolationLevel]
_EARLIEST: _Wanted = OffsetSpec.earliest(), IsolationLevel.READ_COMMITTED  # type: ignore[no-untyped-call]
_STABLE: _Wanted = OffsetSpec.latest(), IsolationLevel.READ_COMMITTED  # type: ignore[no-untyped-call]
_LATEST: _Wanted = OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED  # type: ignore[no-untyped-call]
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@dataclass(frozen=True)
class Topic:
    """``id`` tells a topic from one that was deleted and made again under the same name."""

    name: str
    id: str
    partitions: tuple[int, ...]
    replicas: int
    internal: bool


@dataclass(frozen=True)
class Offsets:
    """``low`` is the first offset still there; ``stable`` what a reader of committed records reaches now."""

    low: Mapping[int, int]
    stable: Mapping[int, int]


def valid_topic_name(name: str) -> bool:
    return (
        0 < len(name) <= KAFKA_TOPIC_NAME_CHARACTERS_MAX
        and name not in (".", "..")
        and _NAME_CHARACTERS.issuperset(name)
    )


def client_settings(options: KafkaOptions) -> dict[str, Any]:
    """Common to all clients of librdkafka: quiet, and quick to find a broker that has come back."""
    return {**options.librdkafka(), "log_level": 0, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1000}


class Cluster:
    """Raises SqlError: 08006 when the cluster does not answer in time, 42704 for a topic that is not there.

    May be used by several threads. Nothing connects before the first request.
    """

    def __init__(self, store: str, options: KafkaOptions, *, timeout_s: float = KAFKA_TIMEOUT_S) -> None:
        self.store = store
        self._options = options
        self._timeout_s = timeout_s
        self._patience_s = 2 * timeout_s + _FUTURE_GRACE_S
        self._lock = threading.Lock()
        self._client: AdminClient | None = None
        self._connection_error: str | None = None

    def topics(self) -> list[tuple[str, int]]:
        """Names and numbers of partitions, internal topics left out."""
        admin = self._admin()
        try:
            found = admin.list_topics(timeout=self._timeout_s)
        except KafkaException as error:
            raise self._reported(None, kafka_error(error)) from error
        return sorted(
            (name, len(topic.partitions)) for name, topic in found.topics.items() if not name.startswith("__")
        )

    def topic(self, name: str) -> Topic:
        topic = self.topic_or_none(name)
        if topic is None:
            raise no_entity(self.store, name)
        return topic

    def topic_or_none(self, name: str) -> Topic | None:
        if not valid_topic_name(name):
            return None
        asked = self._admin().describe_topics(TopicCollection([name]), request_timeout=self._timeout_s)
        try:
            found = self._result(asked[name])
        except KafkaException as error:
            if kafka_error(error).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise self._reported(name, kafka_error(error)) from error
        partitions = tuple(sorted(partition.id for partition in found.partitions))
        replicas = max((len(partition.replicas) for partition in found.partitions), default=0)
        identity = str(found.topic_id).replace("+", "-").replace("/", "_")  # as Kafka's own tools write it
        return Topic(found.name, identity, partitions, replicas, bool(found.is_internal))

    def configs(self, name: str) -> list[tuple[str, str]]:
        """The topic's settings that differ from their defaults."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        asked = self._admin().describe_configs([resource], request_timeout=self._timeout_s)
        found = self._request(name, asked[resource])
        return sorted(
            (key, str(entry.value)) for key, entry in found.items() if not entry.is_default and not entry.is_sensitive
        )

    def offsets(self, topic: str, partitions: Sequence[int]) -> Offsets:
        low, stable = self._list_offsets(topic, partitions, _EARLIEST, _STABLE)
        return Offsets(low, stable)

    def stable_ends(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """The ends before the first open transaction: Spark's connector stops there too when it reads committed."""
        (found,) = self._list_offsets(topic, partitions, _STABLE)
        return found

    def ends(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """The ends with what is in open transactions."""
        (found,) = self._list_offsets(topic, partitions, _LATEST)
        return found

    def create_topic(
        self, name: str, partitions: int, replicas: int, configs: Mapping[str, str], *, validate_only: bool = False
    ) -> None:
        """-1 for partitions or replicas is the broker's default. Waits until the brokers tell of the topic.

        The controller answers before they have heard of it, and the next statement would not find it.
        """
        topic = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=dict(configs))
        asked = self._admin().create_topics(
            [topic],
            request_timeout=self._timeout_s,
            operation_timeout=self._timeout_s,  # without it the client ignores what the broker refuses
            validate_only=validate_only,
        )
        self._request(name, asked[name])
        if not validate_only:
            self._await_topic(name)

    def _await_topic(self, name: str) -> None:
        deadline = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline:
            try:
                if self.topic_or_none(name) is not None:
                    return
            except SqlError:  # the topic was made: who may not describe it has not failed to make it
                return
            time.sleep(_METADATA_POLL_S)

    def delete_topic(self, name: str) -> None:
        asked = self._admin().delete_topics([name], request_timeout=self._timeout_s, operation_timeout=self._timeout_s)
        self._request(name, asked[name])

    def connection_error(self) -> str | None:
        """The last reason for which a connection failed, since the last request that went through."""
        if self._client is not None:
            self._client.poll(0)
        return self._connection_error

    def close(self) -> None:
        # An AdminClient ends its threads when it is collected; it has no close of its own.
        with self._lock:
            self._client = None

    # --- requests --------------------------------------------------------------------------------------------------
    def _admin(self) -> AdminClient:
        with self._lock:
            if self._client is None:
                settings = client_settings(self._options)
                settings["error_cb"] = self._on_error
                self._client = AdminClient(settings)
            client = self._client
        client.poll(0)  # errors that nobody collected would pile up
        return client

    def _on_error(self, error: KafkaError) -> None:
        # "all brokers down" follows the true reason and would hide it
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._connection_error is None:
            self._connection_error = error.str()

    def _list_offsets(self, topic: str, partitions: Sequence[int], *wanted: _Wanted) -> list[dict[int, int]]:
        """All that is wanted is asked at once; again while leaders are being chosen, within the time of one request."""
        if not partitions:
            return [{} for _ in wanted]
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                found = self._asked_offsets(topic, partitions, wanted)
                break
            except KafkaException as raised:
                error = kafka_error(raised)
                if not electing(error) or time.monotonic() + _ELECTION_POLL_S > deadline:
                    raise self._reported(topic, error) from raised
            time.sleep(_ELECTION_POLL_S)
        untold = [partition for offsets in found for partition, offset in offsets.items() if offset < 0]
        if untold:  # so librdkafka reports a leader that did not answer in time, without an error
            detail = f'The leader of partition {min(untold)} of topic "{topic}" did not answer'
            raise could_not_connect(self.store, self.connection_error() or detail)
        return found

    def _asked_offsets(self, topic: str, partitions: Sequence[int], wanted: Sequence[_Wanted]) -> list[dict[int, int]]:
        admin = self._admin()
        asked = [
            admin.list_offsets(
                {TopicPartition(topic, partition): which for partition in partitions},
                isolation_level=isolation,
                request_timeout=self._timeout_s,
            )
            for which, isolation in wanted
        ]
        concurrent.futures.wait([future for each in asked for future in each.values()], self._patience_s)
        return [{place.partition: self._result(future).offset for place, future in each.items()} for each in asked]

    def _request(self, topic: str | None, future: concurrent.futures.Future[Any]) -> Any:
        try:
            return self._result(future)
        except KafkaException as error:
            raise self._reported(topic, kafka_error(error)) from error

    def _result(self, future: concurrent.futures.Future[Any]) -> Any:
        try:
            result = future.result(self._patience_s)
        except TimeoutError as error:
            raise could_not_connect(self.store, self.connection_error() or "The request had no answer") from error
        self._connection_error = None
        return result

    def _reported(self, topic: str | None, error: KafkaError) -> Exception:
        return reported(self.store, topic, error, self.connection_error())
