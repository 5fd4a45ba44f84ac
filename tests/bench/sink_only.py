"""What the transactions of a sink cost: the same batches written to one topic by KafkaSink, and by a producer that
waits for their acknowledgement alone. The two take turns.

    python -m tests.bench.sink_only [batches]
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from mvserver.demo.kafka_broker import KafkaBroker
from spark_sinks.base import SinkRecords
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.sink import KafkaSink
from tests.services.kafka import create_topic

SIZES = (1, 100, 1_000, 10_000)


def main(batches: int) -> None:
    with tempfile.TemporaryDirectory() as folder, KafkaBroker(Path(folder)) as broker:
        topic = create_topic(broker, "out", 2)
        sink = KafkaSink("k", KafkaOptions.from_properties({"uris": broker.bootstrap}), topic, str(uuid.uuid4()))
        sink.open()
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5,
             "compression.type": "lz4", "partitioner": "murmur2_random", "delivery.report.only.error": True}
        )  # fmt: skip
        for size in SIZES:
            values = [json.dumps({"n": number, "text": "x" * 180}).encode() for number in range(size)]
            keys = [str(number % 100).encode() for number in range(size)]

            def exactly_once(keys: list[bytes] = keys, values: list[bytes] = values) -> None:
                sink.write(
                    SinkRecords(keys, values, [None] * len(values)), {"topic_id": "t", "partitions": {"0": 1, "1": 1}}
                )

            def at_least_once(keys: list[bytes] = keys, values: list[bytes] = values) -> None:
                for key, value in zip(keys, values, strict=True):
                    producer.produce(topic, value, key)
                assert producer.flush(60) == 0

            taken: dict[str, list[float]] = {"exactly once": [], "at least once": []}
            for turn in range(batches + 1):
                for name, write in (("exactly once", exactly_once), ("at least once", at_least_once)):
                    spent = _seconds(write)
                    if turn:  # the first is for connections and code
                        taken[name].append(spent)
            medians = {name: statistics.median(each) * 1000 for name, each in taken.items()}
            print(f"{size:6} records: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in medians.items()))
        sink.close()


def _seconds(write: Callable[[], None]) -> float:
    begun = time.perf_counter()
    write()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
