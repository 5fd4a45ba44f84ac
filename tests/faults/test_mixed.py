"""Random kills of the server and of its JVM under load, with queries of every kind over the same records: what is in
views and topics in the end is what the records say, computed from all of them at once."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, flowing, topic_values
from tests.faults.test_spark import children
from tests.services.kafka import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.night]

KILLS = int(os.environ.get("MVSERVER_TEST_KILLS", "8"))
WITHIN_S = 300.0  # bounds for a machine that many share
STEP_MS = 250  # between two records, by their own times
WINDOW_MS = 10_000
CELLS = 7
ALL = "WITH ('starting.position' = 'earliest')"
MADE = "'store' = 's', 'value.format' = 'json', 'topic.partitions' = 1, 'topic.replicas' = 1"


def statements(bootstrap: str, clicks: str, cells: str, made: str) -> tuple[str, ...]:
    return (
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{bootstrap}')",
        "CREATE STREAM clicks (n BIGINT, url VARCHAR, pair BIGINT, at BIGINT) "
        f"WITH ('store' = 's', 'topic' = '{clicks}', 'value.format' = 'json', 'timestamp' = 'at')",
        "CREATE CHANGELOG cells (id INTEGER, owner VARCHAR, PRIMARY KEY (id)) "
        f"WITH ('store' = 's', 'topic' = '{cells}', 'value.format' = 'json', 'key.format' = 'json', "
        "'key.type' = 'STRUCT<id INTEGER>')",
        "CREATE MATERIALIZED VIEW by_url AS SELECT url, count(*) AS c, sum(n) AS s FROM clicks GROUP BY url",
        "CREATE MATERIALIZED VIEW seen AS SELECT n, url FROM clicks WHERE n % 3 = 0",
        "CREATE MATERIALIZED VIEW windows AS SELECT window_start, count(*) AS c "
        f"FROM TUMBLE(clicks, SIZE {WINDOW_MS // 1000} SECONDS) GROUP BY window_start, window_end",
        f"CREATE MATERIALIZED VIEW pairs AS SELECT a.pair, b.n FROM clicks {ALL} a JOIN clicks {ALL} b "
        "WITHIN 5 SECONDS ON a.pair = b.pair AND a.n < b.n",
        "CREATE MATERIALIZED VIEW owners AS SELECT owner, count(*) AS c FROM cells GROUP BY owner",
        f"CREATE STREAM even WITH ({MADE}, 'topic' = '{made}-even') AS SELECT n, url FROM clicks {ALL} WHERE n % 2 = 0",
        f"CREATE STREAM fourth WITH ({MADE}, 'topic' = '{made}-fourth') AS SELECT n, url FROM even {ALL} "
        "WHERE n % 4 = 0",
        "CREATE MATERIALIZED VIEW chained AS SELECT url, count(*) AS c, sum(n) AS s FROM fourth GROUP BY url",
        f"CREATE CHANGELOG counts WITH ({MADE}, 'topic' = '{made}-counts') AS "
        f"SELECT url, count(*) AS c FROM clicks {ALL} WHERE url IS NOT NULL GROUP BY url",
        "CREATE MATERIALIZED VIEW levels AS SELECT c, count(*) AS urls "
        f"FROM (SELECT url, count(*) AS c FROM clicks {ALL} GROUP BY url) x GROUP BY c",
    )


class Records:
    """What was acknowledged by the broker; the changelog's rows are replaced and deleted."""

    def __init__(self, chance: random.Random, bootstrap: str, clicks: str, cells: str) -> None:
        self._chance, self._clicks, self._cells = chance, clicks, cells
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2})
        self.clicks: list[dict[str, Any]] = []
        self.cells: dict[int, str] = {}

    def feed(self, count: int) -> None:
        for _ in range(count):
            n = len(self.clicks)
            url = self._chance.choice(["./a", "./b", "./c", None])
            click = {"n": n, "url": url, "pair": n // 2, "at": 1_700_000_000_000 + n * STEP_MS}
            self.clicks.append(click)
            self._producer.produce(self._clicks, value=json.dumps(click))
            cell, owner = self._chance.randrange(CELLS), self._chance.choice(["ann", "ben", "cat", None])
            if owner is None:
                self.cells.pop(cell, None)
            else:
                self.cells[cell] = owner
            value = None if owner is None else json.dumps({"id": cell, "owner": owner})
            self._producer.produce(self._cells, key=json.dumps({"id": cell}), value=value)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def expected(self) -> dict[str, Counter[tuple[Any, ...]]]:
        """The rows of each view."""
        per_url = Counter(click["url"] for click in self.clicks)
        windows = Counter(click["at"] // WINDOW_MS for click in self.clicks)
        fourth = [click for click in self.clicks if click["n"] % 4 == 0]
        return {
            "SELECT url, c, s::BIGINT FROM by_url": _grouped(self.clicks),
            "SELECT n, url FROM seen": Counter((each["n"], each["url"]) for each in self.clicks if each["n"] % 3 == 0),
            "SELECT (extract(epoch FROM window_start) * 1000)::BIGINT, c FROM windows": Counter(
                (window * WINDOW_MS, count) for window, count in windows.items()
            ),
            "SELECT pair, n FROM pairs": Counter((each["pair"], each["n"]) for each in self.clicks if each["n"] % 2),
            "SELECT owner, c FROM owners": Counter(Counter(self.cells.values()).items()),
            "SELECT url, c, s::BIGINT FROM chained": _grouped(fourth),
            "SELECT c, urls FROM levels": Counter(Counter(per_url.values()).items()),
        }


def _grouped(clicks: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    urls = {click["url"] for click in clicks}
    numbers = {url: [click["n"] for click in clicks if click["url"] == url] for url in urls}
    return Counter((url, len(of_url), sum(of_url)) for url, of_url in numbers.items())


def _latest(bootstrap: str, topic: str) -> dict[str, int]:
    """The rows of a changelog, as its topic has them now."""
    return {value["url"]: value["c"] for value in topic_values(bootstrap, topic, 1, timeout_s=30)}


def jvm_of(server: LiveServer) -> int | None:
    return next((pid for pid, state in children(server.process.pid) if state != "Z"), None)


def progress(server: LiveServer) -> tuple[int, ...]:
    """How far each pipeline has come, by what can be seen of it."""
    ((*found,),) = server.query(
        "SELECT (SELECT coalesce(sum(c), 0)::BIGINT FROM by_url), (SELECT count(*) FROM pairs), "
        "(SELECT coalesce(sum(c), 0)::BIGINT FROM chained)"
    )
    return tuple(found)


def wait_for_more(server: LiveServer, what: str) -> None:
    seen = progress(server)

    def more() -> bool:
        return all(now > before for now, before in zip(progress(server), seen, strict=True))

    server.wait_for(more, WITHIN_S, f"{what}: {server.states()}")


def wait_rows(server: LiveServer, text: str, wanted: Counter[tuple[Any, ...]], kills: list[str]) -> None:
    try:
        server.wait_for(lambda: Counter(server.query(text)) == wanted, WITHIN_S, text)
    except AssertionError as error:
        found = Counter(server.query(text))
        missing, more = list((wanted - found).items())[:5], list((found - wanted).items())[:5]
        raise AssertionError(f"{kills}, {text}: {missing=}, {more=}, {server.states()}") from error


@pytest.mark.parametrize("lane", ["auto", "off"])
def test_random_kills_with_queries_of_every_kind(
    server: LiveServer, kafka_broker: KafkaBroker, seed: int, lane: str
) -> None:
    chance = random.Random(f"{seed} {lane}")
    name = f"mixed-{chance.getrandbits(32):x}-{os.getpid()}"
    clicks, cells = (create_topic(kafka_broker, f"{name}-{each}", 1) for each in ("clicks", "cells"))
    records = Records(chance, kafka_broker.bootstrap, clicks, cells)
    environment = {"MVSERVER_LIVE_LANE": lane, "MVSERVER_SOURCE_CHECK_INTERVAL": "500ms"}
    server.start(**environment)
    server.run(*statements(kafka_broker.bootstrap, clicks, cells, name))
    kills: list[str] = []
    with flowing(lambda: records.feed(20), 0.2):
        for _ in range(KILLS):
            # Spark that ends amid the same few records again and again is held against them: each kill is of others.
            wait_for_more(server, f"nothing goes on behind the kills {kills}")
            time.sleep(chance.random() * 2)  # a kill at any moment
            spark = jvm_of(server) if chance.random() < 0.4 else None
            kills.append("server" if spark is None else "Spark")
            if spark is None:
                server.kill()
                server.start(**environment)
            else:
                os.kill(spark, signal.SIGKILL)
        records.feed(1)
    for text, wanted in records.expected().items():
        wait_rows(server, text, wanted, kills)
    even = [click["n"] for click in records.clicks if click["n"] % 2 == 0]
    for topic, numbers in ((f"{name}-even", even), (f"{name}-fourth", [n for n in even if n % 4 == 0])):
        written = [value["n"] for value in topic_values(kafka_broker.bootstrap, topic, len(numbers), timeout_s=180)]
        assert written == numbers, f"{kills}: {topic}"
    per_url = Counter(click["url"] for click in records.clicks if click["url"] is not None)
    server.wait_for(
        lambda: _latest(kafka_broker.bootstrap, f"{name}-counts") == per_url, WITHIN_S, f"{kills}: the changelog"
    )
    assert {state for state, _ in server.states().values()} == {"RUNNING"}, server.states()
