"""Records that a statement writes to topics: all of them in one transaction, or none.

Each call has a producer, and so a transactional id, of its own: it has nothing to read back, since whoever calls is
told how it went.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import KeyedRecord
from spark_sinks.kafka.admin import Cluster, client_settings
from spark_sinks.kafka.errors import could_not_connect, kafka_error, reported, sentence
from spark_sinks.kafka.limits import KAFKA_RECORD_BYTES_MAX, KAFKA_TRANSACTION_TIMEOUT_S
from spark_sinks.kafka.options import KafkaOptions

_ATTEMPT_S = 2.0  # one call into the client; the deadline is kept over several
_ROOM_POLL_S = 0.05
_RETRY_PAUSE_S = 0.1


class RecordWriter:
    def __init__(self, store: str, options: KafkaOptions, cluster: Cluster, *, timeout_s: float) -> None:
        self._store = store
        self._options = options
        self._cluster = cluster
        self._timeout_s = timeout_s
        self._refused: tuple[str | None, KafkaError] | None = None

    def write(self, writes: Sequence[tuple[str, Iterable[KeyedRecord]]]) -> None:
        for topic, _ in writes:
            self._cluster.topic(topic)  # a producer would make the topic where brokers allow it
        producer = Producer(
            {
                **client_settings(self._options),
                "transactional.id": f"mvserver-copy-{uuid.uuid4()}",
                "transaction.timeout.ms": int(KAFKA_TRANSACTION_TIMEOUT_S * 1000),
                "socket.timeout.ms": int(self._timeout_s * 1000),
                "acks": "all",
                "delivery.report.only.error": True,
                "compression.type": "lz4",
                "message.max.bytes": KAFKA_RECORD_BYTES_MAX,
                "linger.ms": 5,
            }
        )
        try:
            self._until_done(producer.init_transactions)
            producer.begin_transaction()
        except KafkaException as error:
            raise self._reported(None, kafka_error(error)) from error
        try:
            for topic, records in writes:
                self._produce(producer, topic, records)
        except BaseException as error:
            self._abort(producer)
            if isinstance(error, KafkaException):
                raise self._reported(None, kafka_error(error)) from error
            raise
        self._commit(producer)

    def _produce(self, producer: Producer, topic: str, records: Iterable[KeyedRecord]) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None and self._refused is None:
                self._refused = (topic, error)

        for key, value in records:
            arguments: dict[str, Any] = {"key": key, "value": value, "on_delivery": delivered}
            deadline = time.monotonic() + self._timeout_s
            while True:
                try:
                    producer.produce(topic, **arguments)
                    break
                except BufferError:
                    waiting = len(producer)
                    producer.poll(_ROOM_POLL_S)
                    if len(producer) < waiting:
                        deadline = time.monotonic() + self._timeout_s  # slow is not dead
                    if time.monotonic() > deadline:
                        raise could_not_connect(self._store, "Records were not acknowledged in time") from None
            producer.poll(0)
            if self._refused is not None:
                raise self._reported(*self._refused)

    def _commit(self, producer: Producer) -> None:
        try:
            self._until_done(producer.commit_transaction)
        except KafkaException as raised:
            error = kafka_error(raised)
            if error.txn_requires_abort():
                self._abort(producer)
                raise self._reported(*(self._refused or (None, error))) from raised
            detail = self._cluster.connection_error() or error.str()
            raise SqlError(
                sqlstates.TRANSACTION_RESOLUTION_UNKNOWN,
                f'store "{self._store}" went away during a commit',
                detail=f"{sentence(detail)} It is not known whether the records were written.",
                hint="Look at the entity before writing them again.",
            ) from raised

    def _abort(self, producer: Producer) -> None:
        """Where the cluster does not answer, it aborts by its own time-out."""
        try:
            producer.abort_transaction(_ATTEMPT_S)
        except KafkaException as error:
            producer.purge()
            self._refused = self._refused or (None, kafka_error(error))

    def _reported(self, topic: str | None, error: KafkaError) -> SqlError:
        return reported(self._store, topic, error, self._cluster.connection_error())

    def _until_done(self, call: Callable[[float], Any]) -> None:
        """A retriable error means that the same call is to be made again, in which the client goes on where it was."""
        deadline = time.monotonic() + max(self._timeout_s, _ATTEMPT_S)
        while True:
            try:
                call(_ATTEMPT_S)
            except KafkaException as error:
                if not kafka_error(error).retriable() or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_PAUSE_S)
            else:
                return
