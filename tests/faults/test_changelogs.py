"""Changelogs on a real broker: keys and tombstones in, upserts and tombstones out, each exactly once over kills."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

USERS = (
    "CREATE CHANGELOG users (userid VARCHAR, region VARCHAR, age INTEGER, PRIMARY KEY (userid)) "
    "WITH ('store' = 's', 'topic' = '{}', 'value.format' = 'json')"
)


class Users:
    """Seeded changes of users; what the broker has acknowledged is the truth."""

    def __init__(self, seed: int, bootstrap: str, topic: str) -> None:
        self._random = random.Random(seed)
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2})
        self._topic = topic
        self.rows: dict[str, dict[str, Any]] = {}

    def change(self, count: int) -> None:
        for _ in range(count):
            user = f"User_{self._random.randrange(40)}"
            value = None
            if self._random.random() < 0.3:
                self.rows.pop(user, None)
            else:
                region = self._random.choice(["north", "south", "east", "west"])
                value = self.rows[user] = {"userid": user, "region": region, "age": self._random.randrange(90)}
            self._producer.produce(self._topic, key=user, value=None if value is None else json.dumps(value))
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def regions(self) -> dict[tuple[Any, ...], int]:
        return dict(Counter((row["region"],) for row in self.rows.values()))

    def ages(self) -> dict[tuple[Any, ...], int]:
        ages: Counter[tuple[Any, ...]] = Counter()
        for row in self.rows.values():
            ages[(row["region"],)] += row["age"]
        return dict(ages)


def latest(bootstrap: str, topic: str, settled: Callable[[dict[str, Any]], bool]) -> tuple[dict[str, Any], list[Any]]:
    """The committed records of a topic by key, tombstones taken out, and all of them in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found: dict[str, Any] = {}
    records: list[Any] = []
    deadline, quiet_until = time.monotonic() + 60, None
    while time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            key = (message.key() or b"").decode()
            value = message.value()
            records.append((key, value))
            if value is None:
                found.pop(key, None)
            else:
                found[key] = json.loads(value)
            quiet_until = None
        elif settled(found):
            quiet_until = quiet_until or time.monotonic() + 1.5
            if time.monotonic() > quiet_until:
                break
    consumer.close()
    return found, records


def no_repetition(records: list[tuple[str, bytes | None]]) -> bool:
    """A record that says again what its key has is one that was sent twice."""
    last: dict[str, bytes | None] = {}
    for key, value in records:
        if key in last and last[key] == value:
            return False
        last[key] = value
    return True


@pytest.mark.night
def test_views_and_topics_follow_a_changelog_over_kills(
    server: LiveServer,
    kafka_broker: KafkaBroker,
    kafka_topic: Callable[..., str],
    seed: int,
) -> None:
    topic, sink, copy = kafka_topic(3), f"regions-{uuid.uuid4().hex[:8]}", f"adults-{uuid.uuid4().hex[:8]}"
    users = Users(seed, kafka_broker.bootstrap, topic)
    users.change(200)
    server.start()
    server.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
        USERS.format(topic),
        "CREATE MATERIALIZED VIEW by_region AS "
        "SELECT region, count(*) AS n, sum(age) AS total FROM users GROUP BY region",
        f"CREATE CHANGELOG regions WITH ('topic' = '{sink}', 'topic.partitions' = 2, 'topic.replicas' = 1) AS "
        "SELECT region, count(*) AS n, max(age) AS oldest FROM users GROUP BY region",
        f"CREATE CHANGELOG adults WITH ('topic' = '{copy}', 'topic.partitions' = 2, 'topic.replicas' = 1) AS "
        "SELECT age, userid FROM users WHERE age >= 18",
        "CREATE MATERIALIZED VIEW again AS SELECT region, n FROM regions",
    )
    for point in ("before relay", "after relay", "after rows", "after commit"):
        users.change(50)
        server.wait_for(lambda: server.states()["regions"][0] == "RUNNING", 150, "the query does not run")
        server.kill()
        server.start(MVSERVER_FAILPOINTS=f"{point}=kill:2")
        while server.process.poll() is None:
            users.change(10)
            time.sleep(0.1)
        server.start()
    users.change(100)
    server.wait_equal("SELECT region, n FROM by_region", users.regions())
    server.wait_equal("SELECT region, total FROM by_region", users.ages())
    server.wait_equal("SELECT region, n FROM again", users.regions())
    regions, records = latest(
        kafka_broker.bootstrap, sink, lambda found: {(k,): v["n"] for k, v in found.items()} == users.regions()
    )
    oldest = {r: max(u["age"] for u in users.rows.values() if u["region"] == r) for (r,) in users.regions()}
    assert regions == {
        region: {"region": region, "n": n, "oldest": oldest[region]} for (region,), n in users.regions().items()
    }
    assert no_repetition(records)
    adults = {user: {"age": row["age"], "userid": user} for user, row in users.rows.items() if row["age"] >= 18}
    found, records = latest(kafka_broker.bootstrap, copy, lambda found: found == adults)
    assert found == adults
    assert no_repetition(records)
