"""What tests of the dialect lenses put into topics and read from them."""

from __future__ import annotations

import json
import struct
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

NOW_MS = 1_700_000_000_000
PATIENCE_S = 90.0


class Broker:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def put(
        self,
        topic: str,
        *records: tuple[bytes | None, bytes | None, int],
        headers: list[tuple[str, str | bytes | None]] | None = None,
    ) -> None:
        """Each record is (key, value, seconds after a fixed moment)."""
        for key, value, second in records:
            moment = NOW_MS + second * 1000
            self._producer.produce(topic, key=key, value=value, timestamp=moment, headers=headers or [])
        assert self._producer.flush(30) == 0

    def records(self, topic: str, count: int) -> list[tuple[bytes | None, Any]]:
        """The first committed records, as soon as there are so many: (key, value), JSON values decoded."""
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[tuple[bytes | None, Any]] = []
        until = time.monotonic() + PATIENCE_S
        while len(found) < count and time.monotonic() < until:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append((message.key(), _value(message.value())))
        consumer.close()
        assert len(found) >= count, (topic, found)
        return found

    def rows(self, topic: str, wanted: dict[bytes | None, Any]) -> None:
        """The last value of each key, when it is as wanted."""
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: dict[bytes | None, Any] = {}
        seen: list[Any] = []
        until = time.monotonic() + PATIENCE_S
        while found != wanted and time.monotonic() < until:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                value = _value(message.value())
                seen.append((message.key(), value))
                if value is None:
                    found.pop(message.key(), None)
                else:
                    found[message.key()] = value
            elif message is not None:
                seen.append(str(message.error()))
        consumer.close()
        assert found == wanted, (topic, seen)


def _value(raw: bytes | None) -> Any:
    if raw is None:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def integer(value: int) -> bytes:
    return struct.pack(">i", value)
