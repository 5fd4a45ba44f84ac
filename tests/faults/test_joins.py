"""Joins on a real broker: each joined row once over kills."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, topic_values

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def _produce(bootstrap: str, topic: str, rows: Sequence[tuple[str | None, dict[str, Any]]]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2})
    for key, row in rows:
        producer.produce(topic, key=key, value=json.dumps(row))
    assert producer.flush(60) == 0


@pytest.mark.night
def test_joined_rows_once_over_kills(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int
) -> None:
    """A view of the join, one that aggregates it, and a topic it is written to: all as one look at both topics says."""
    chance = random.Random(seed)
    bootstrap = kafka_broker.bootstrap
    left, right, sink = kafka_topic(3), kafka_topic(2), f"out-{uuid.uuid4().hex[:8]}"
    server.start()
    server.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{bootstrap}')",
        f"CREATE STREAM a (n BIGINT, k VARCHAR, t BIGINT) "
        f"WITH ('store'='s', 'topic'='{left}', 'value.format'='json', 'timestamp'='t')",
        f"CREATE STREAM b (n BIGINT, k VARCHAR, t BIGINT) "
        f"WITH ('store'='s', 'topic'='{right}', 'value.format'='json', 'timestamp'='t')",
    )
    rows: dict[str, list[dict[str, Any]]] = {left: [], right: []}

    def feed(count: int) -> None:
        for topic, known in rows.items():
            new = [
                {"n": len(known) + i, "k": chance.choice("abcdefgh"), "t": (len(known) + i) * 10} for i in range(count)
            ]
            known.extend(new)
            _produce(bootstrap, topic, [(row["k"], row) for row in new])

    feed(200)
    earliest = "WITH ('starting.position' = 'earliest')"
    join = f"FROM a {earliest} JOIN b {earliest} WITHIN 1 SECOND ON a.k = b.k"
    server.run(
        f"CREATE MATERIALIZED VIEW pairs AS SELECT a.n AS left_n, b.n AS right_n {join}",
        f"CREATE MATERIALIZED VIEW by_key AS SELECT a.k AS k, count(*) AS n {join} GROUP BY a.k",
        f"CREATE STREAM written WITH ('topic' = '{sink}', 'store' = 's', 'topic.partitions' = 1, 'topic.replicas' = 1) "
        f"AS SELECT a.n AS left_n, b.n AS right_n {join}",
    )
    for point in ("after rows", "after commit", "before relay", "after relay"):
        server.kill()
        feed(50)
        server.start(MVSERVER_FAILPOINTS=f"{point}=kill:1")
        server.wait_killed(300)
        server.start()
    feed(50)
    expected = Counter(
        (one["n"], other["n"])
        for one in rows[left]
        for other in rows[right]
        if one["k"] == other["k"] and abs(one["t"] - other["t"]) <= 1000
    )
    by_key = Counter(rows[left][one]["k"] for one, _ in expected)
    server.wait_equal("SELECT left_n, right_n, count(*) FROM pairs GROUP BY 1, 2", dict(expected))
    server.wait_equal("SELECT k, n FROM by_key", {(key,): count for key, count in by_key.items()})
    found = Counter((row["left_n"], row["right_n"]) for row in topic_values(bootstrap, sink, len(expected)))
    assert found == expected
