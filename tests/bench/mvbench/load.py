"""Events into a topic: many at once before a measurement, or at a steady rate with markers during one."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from mvbench.workload import Generator, Workload

PARTITIONS = 4
MARKER_EVERY_S = 0.1
_SLICE = 5_000  # events of one partition in a row while preloading
_FLUSH_TIMEOUT_S = 120.0
_POOL = 100_000  # different events of a live load, sent again and again
_TICK_S = 0.01


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
    began = time.monotonic()
    partition = 0
    for values in generator.chunks(start, start + count):
        for at in range(0, len(values), _SLICE):
            _send(producer, topic, values[at : at + _SLICE], partition)
            partition = (partition + 1) % PARTITIONS
    left = producer.flush(_FLUSH_TIMEOUT_S)
    generator.close()
    if left:
        raise TimeoutError(f"{left} events were not acknowledged within {_FLUSH_TIMEOUT_S:g} s")
    return count / (time.monotonic() - began)


def _send(producer: Producer, topic: str, values: list[bytes], partition: int) -> None:
    messages: list[dict[str, Any]] = [{"value": value} for value in values]
    while messages:
        queued = producer.produce_batch(topic, messages, partition=partition)
        if queued == len(messages):
            producer.poll(0)
            return
        refused = [message for message in messages if "_error" in message]
        for message in refused:
            if message["_error"].code() != KafkaError._QUEUE_FULL:
                raise KafkaException(message["_error"])
        messages = [{"value": message["value"]} for message in refused]
        producer.poll(0.05)


@dataclass(frozen=True)
class Marker:
    number: int
    stamp: float  # time.time() just before it was handed to the producer


class LiveLoad:
    """A producer in a process of its own, so that it neither waits for the measuring client nor disturbs it.

    Markers are events of their own; marker n is sent n * MARKER_EVERY_S after ``begin_at``.
    """

    def __init__(self, bootstrap: str, topic: str, workload: Workload, rate: int, *, first_marker: int = 0) -> None:
        context = multiprocessing.get_context("spawn")
        self._mine, theirs = context.Pipe()
        self.begin_at = 0.0
        self.first_marker = first_marker
        self._process = context.Process(
            target=_produce_live, args=(theirs, bootstrap, topic, workload.name, rate, first_marker), daemon=True
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
    pipe: Connection, bootstrap: str, topic: str, workload_name: str, rate: int, first_marker: int
) -> None:
    from mvbench import workload as workloads  # in the child

    workload: Workload = getattr(workloads, workload_name.upper())
    producer = Producer(
        {"bootstrap.servers": bootstrap, "log_level": 2, "compression.type": "lz4", "linger.ms": 1, "acks": "all"}
    )
    generator = Generator(workload, seed=7)
    pool = generator.chunk(0, _POOL)
    generator.close()
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
                    values = [pool[(at + offset) % _POOL] for offset in range(number)]
                    _send(producer, topic, values, partition)
                    at += number
            sent += due
        if passed >= len(stamps) * MARKER_EVERY_S:
            number = first_marker + len(stamps)
            value = workload.marker_value(number)
            stamps.append(time.time())
            producer.produce(topic, value, partition=number % PARTITIONS)
        producer.poll(0)
        next_tick = (int(passed / _TICK_S) + 1) * _TICK_S + begin_at
        time.sleep(max(0.0, next_tick - time.time()))  # the rate is kept by the clock
    producer.flush(_FLUSH_TIMEOUT_S)
    pipe.send((sent + len(stamps), stamps))
