"""Events into a topic: many at once before a measurement, or at a steady rate with markers during one."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.bench.workload import Generator, Message, Workload

PARTITIONS = 4
MARKER_EVERY_S = 0.1
_SLICE = 5_000  # events of one partition in a row while preloading
_FLUSH_TIMEOUT_S = 120.0
_POOL = 100_000  # different events of a live load, sent again and again
_TICK_S = 0.01
_BY_KEY = -1  # the partition that the producer chooses by a message's key


def preload(bootstrap: str, topic: str, workload: Workload, count: int, seed: int, *, start: int = 0) -> float:
    """Sends the events ``start`` to ``start + count - 1``. Returns events a second, the generator's time included."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 2,
            "compression.type": "lz4",
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 524_288,
        }
    )
    generator = Generator(workload, seed)
    before = _kept(bootstrap, topic)
    began = time.monotonic()
    partition = 0
    for messages in generator.chunks(start, start + count):
        for at in range(0, len(messages), _SLICE):
            _send(producer, topic, messages[at : at + _SLICE], partition)
            partition = (partition + 1) % PARTITIONS
    producer.flush(_FLUSH_TIMEOUT_S)
    rate = count / (time.monotonic() - began)
    generator.close()
    _check_kept(bootstrap, topic, before + count)
    return rate


def _send(producer: Producer, topic: str, messages: list[Message], partition: int) -> None:
    """Those with a key go where the key says."""
    if messages and "key" in messages[0]:
        partition = _BY_KEY
    while messages:
        queued = producer.produce_batch(topic, messages, partition=partition)
        if queued == len(messages):
            producer.poll(0)
            return
        refused: list[dict[str, Any]] = [message for message in messages if "_error" in message]
        for message in refused:
            if message["_error"].code() != KafkaError._QUEUE_FULL:
                raise KafkaException(message["_error"])
        messages = [{name: part for name, part in message.items() if name != "_error"} for message in refused]
        producer.poll(0.05)


def _kept(bootstrap: str, topic: str) -> int:
    """How many records the broker has taken; it may refuse some that the producer was given."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "log_level": 2})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, number))[1] for number in range(PARTITIONS)]
    finally:
        consumer.close()
    return sum(ends)


def _check_kept(bootstrap: str, topic: str, expected: int, *, alone: bool = True) -> None:
    kept = _kept(bootstrap, topic)
    if kept < expected or (alone and kept != expected):
        raise RuntimeError(f"topic {topic} has {kept} records instead of {expected}")


@dataclass(frozen=True)
class Marker:
    number: int
    stamp: float  # time.time() just before it was handed to the producer


class LiveLoad:
    """A producer in a process of its own, so that it neither waits for the measuring client nor disturbs it.

    Markers are events of their own; marker n is sent n * MARKER_EVERY_S after ``begin_at``. ``alone``: nobody else
    sends to the topic meanwhile.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        workload: Workload,
        rate: int,
        *,
        first_marker: int = 0,
        alone: bool = True,
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._mine, theirs = context.Pipe()
        self.begin_at = 0.0
        self.first_marker = first_marker
        self._process = context.Process(
            target=_produce_live, args=(theirs, bootstrap, topic, workload, rate, first_marker, alone), daemon=True
        )
        self._markers: list[Marker] = []
        self.sent = 0

    def start(self) -> None:
        start_together([self])

    def prepare(self) -> None:
        self._process.start()

    def begin(self, moment: float) -> None:
        self.begin_at = moment
        self._mine.send(moment)

    def wait_ready(self) -> None:
        if self._mine.recv() != "ready":
            raise RuntimeError("the producer did not get ready")

    def stop(self) -> list[Marker]:
        """Ends the load and returns all markers that were sent."""
        self._mine.send("stop")
        self.sent, stamps = self._mine.recv()
        self._process.join(_FLUSH_TIMEOUT_S)
        return [Marker(self.first_marker + number, stamp) for number, stamp in enumerate(stamps)]


def start_together(loads: Sequence[LiveLoad]) -> None:
    """All begin at one moment: the n-th markers of all are sent together."""
    for load in loads:
        load.prepare()
    for load in loads:
        load.wait_ready()
    moment = time.time() + 0.2
    for load in loads:
        load.begin(moment)


def _produce_live(
    pipe: Connection, bootstrap: str, topic: str, workload: Workload, rate: int, first_marker: int, alone: bool
) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "log_level": 2, "compression.type": "lz4", "linger.ms": 1, "acks": "all"}
    )
    generator = Generator(workload, seed=7)
    pool = generator.chunk(0, _POOL)
    generator.close()
    before = _kept(bootstrap, topic)
    pipe.send("ready")
    begin_at: float = pipe.recv()
    stamps: list[float] = []
    sent = at = 0
    while not pipe.poll(0):
        now = time.time()
        passed = now - begin_at
        if passed < 0:
            time.sleep(min(_TICK_S, -passed))  # all producers begin at one moment
            continue
        due = int(passed * rate) - sent
        if due > 0:
            for partition in range(PARTITIONS):
                number = due // PARTITIONS + (1 if partition < due % PARTITIONS else 0)
                if number:
                    messages = [pool[(at + offset) % _POOL] for offset in range(number)]
                    _send(producer, topic, messages, partition)
                    at += number
            sent += due
        if passed >= len(stamps) * MARKER_EVERY_S:
            number = first_marker + len(stamps)
            marker = workload.marker_message(number)
            stamps.append(time.time())
            _send(producer, topic, [marker], number % PARTITIONS)
        producer.poll(0)
        next_tick = (int(passed / _TICK_S) + 1) * _TICK_S + begin_at
        time.sleep(max(0.0, next_tick - time.time()))  # the rate is kept by the clock
    producer.flush(_FLUSH_TIMEOUT_S)
    _check_kept(bootstrap, topic, before + sent + len(stamps), alone=alone)
    pipe.send((sent + len(stamps), stamps))
