"""A topic as Spark's real-time tasks read it, and what lies behind its last record."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, TopicPartition

from spark_sinks.base import Position
from spark_sinks.kafka import positions
from spark_sinks.kafka.admin import client_settings
from spark_sinks.kafka.options import KafkaOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PASSED_S = 2.0  # how long the question may take whether there is a record
# A task waits for records at the broker. One that waits shorter asks again and again, and takes a processor for that.
WAITING = {"kafka.fetch.max.wait.ms": "500"}


class LiveTopic:
    """A :class:`spark_sinks.base.LiveReading` of one topic. ``open_frame`` makes a reader's frame from a position on,
    with further options."""

    def __init__(
        self,
        topic: str,
        options: KafkaOptions,
        open_frame: Callable[[SparkSession, Position, Mapping[str, str]], DataFrame],
    ) -> None:
        self._topic = topic
        self._options = options
        self._open_frame = open_frame
        self._lock = threading.Lock()
        self._consumer: Consumer | None = None

    @property
    def refusal(self) -> str | None:
        return None if self._options.live_lane else "its store's property live_lane is off"

    @contextmanager
    def stream(self, spark: SparkSession, start: Position) -> Iterator[DataFrame]:
        yield self._open_frame(spark, start, WAITING)

    def position(self, start: Position, places: Mapping[str, int]) -> Position:
        moved = {int(partition): place for partition, place in places.items()}
        return positions.make_position(positions.topic_id_of(start), {**positions.offsets_of(start), **moved})

    def passed(self, start: Position, end: Position) -> Position | None:
        """Offsets without a record at the end of a partition: marks of transactions, and records of those that were
        given up."""
        spans = {p: span for p, span in positions.ranges(start, end).items() if span[1] > span[0]}
        reached = self._reached(spans)
        if len(reached) < len(spans):
            return None
        ends = {p: spans[p][1] for p, at in reached.items() if at >= spans[p][1]}
        return positions.make_position(positions.topic_id_of(start), {**positions.offsets_of(start), **ends})

    def close(self) -> None:
        with self._lock:
            if self._consumer is not None:
                self._consumer.close()
                self._consumer = None

    def _reached(self, spans: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """The offset of each partition's first record from the begin of its span on, or of its end where it has none.
        Without those that were not answered in time."""
        found: dict[int, int] = {}
        if not spans:
            return found
        with self._lock:
            consumer = self._consumer or self._opened()
            self._consumer = consumer
            consumer.assign([TopicPartition(self._topic, p, begin) for p, (begin, _) in spans.items()])
            deadline = time.monotonic() + PASSED_S
            try:
                while len(found) < len(spans) and time.monotonic() < deadline:
                    message = consumer.poll(max(0.0, deadline - time.monotonic()))
                    if message is None:
                        continue
                    error, partition, offset = message.error(), message.partition(), message.offset()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        return {}  # the broker is away, or the topic is another: looks and tasks will tell
                    if partition is not None and partition in spans and offset is not None:
                        found.setdefault(partition, offset)
            finally:
                with contextlib.suppress(Exception):  # of a consumer that is broken; it is asked no more
                    consumer.unassign()
        return found

    def _opened(self) -> Consumer:
        return Consumer(
            {
                **client_settings(self._options),
                "group.id": f"mvserver-{uuid.uuid4()}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "allow.auto.create.topics": False,
                "queued.max.messages.kbytes": 1024,
                "fetch.wait.max.ms": 10,
            }
        )
