"""Flights as keyed JSON records on a topic, in time order, from a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mvserver.demo.flights_data import Flight

_FLUSH_TIMEOUT_S = 60.0
_POLL_EVERY = 1_000


class Replay:
    """``rate`` is in records a second; None is as fast as the broker takes them."""

    def __init__(self, bootstrap: str, topic: str, flights: Sequence[Flight], rate: float | None) -> None:
        self.sent = 0
        self.acknowledged = 0
        self.error: Exception | None = None
        self._topic = topic
        self._flights = flights
        self._rate = rate
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 2,  # what fails is told by delivery reports
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 20,
                "queue.buffering.max.messages": 100_000,
            }
        )
        self._thread = threading.Thread(target=self._run, name="replay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def done(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            began = time.monotonic()
            for number, flight in enumerate(self._flights, start=1):
                if self._stop.is_set():
                    return
                self._produce(flight)
                self.sent = number
                if number % _POLL_EVERY == 0:
                    self._producer.poll(0)
                if self._rate is not None and number / self._rate > (ahead := time.monotonic() - began):
                    self._producer.poll(0)
                    self._stop.wait(number / self._rate - ahead)
            left = self._producer.flush(_FLUSH_TIMEOUT_S)
            if left and self.error is None:
                self.error = TimeoutError(f"{left} records were not acknowledged within {_FLUSH_TIMEOUT_S:g} s")
        except KafkaException as error:
            self.error = error

    def _produce(self, flight: Flight) -> None:
        while True:
            try:
                self._producer.produce(self._topic, flight.value(), flight.key, on_delivery=self._delivered)
            except BufferError:  # the queue is full: let it drain
                self._producer.poll(0.1)
                if self._stop.is_set():
                    return
            else:
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged += 1
        elif self.error is None:
            self.error = KafkaException(error)
