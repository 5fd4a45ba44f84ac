"""Nexmark's queries as views over a real Kafka, through a kill of the server: each is what PostgreSQL computes."""

from __future__ import annotations

import datetime as dt
import os
import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server
from tests.nexmark.events import COLUMNS, NAMES, Event, Site
from tests.nexmark.queries import Query, declarations, oracle, queries
from tests.services.kafka import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.postgres]

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))
EVENTS = 4_000
BETWEEN = dt.timedelta(milliseconds=20)
PARTITIONS = 3
SETTLE_S = 300.0
_EACH_CHANGE = ("q2", "q3", "q8", "q11", "q12")


@pytest.fixture
def live_server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live.start()


@pytest.mark.parametrize(
    "names", [_EACH_CHANGE, pytest.param(tuple(queries()), marks=pytest.mark.night)], ids=["some", "all"]
)
def test_views_are_what_postgresql_computes(
    live_server: LiveServer, kafka_broker: KafkaBroker, postgres_server: Any, names: Sequence[str]
) -> None:
    print("seed", SEED, "(MVSERVER_TEST_SEED)")
    chosen = [query for query in queries().values() if query.name in names]
    events = list(Site(SEED, BETWEEN).events(EVENTS))
    run = uuid.uuid4().hex[:8]
    topics = {kind: create_topic(kafka_broker, f"{kind}-{run}", PARTITIONS) for kind in COLUMNS}
    live_server.run(f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
    live_server.run(*declarations("s", topics), *(query.create for query in chosen))
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    half = EVENTS // 2
    _send(producer, topics, events[:half])
    time.sleep(random.Random(SEED).uniform(0, 3))  # where in a batch the kill falls is left to chance
    live_server.kill()
    live_server.start()
    _send(producer, topics, events[half:])
    expected = _expected(postgres_server.dsn, events, chosen)
    assert all(expected.values()), "each has something to say"
    _wait_for(live_server, chosen, expected)
    late = live_server.query("SELECT view, late_rows FROM mv_catalog.views WHERE late_rows > 0")
    assert late == [], "the delay is as long as events are out of order"


def _send(producer: Producer, topics: dict[str, str], events: Sequence[Event]) -> None:
    for event in events:
        producer.produce(
            topics[event.kind],
            key=str(event.key).encode(),
            value=event.value(),
            timestamp=_sent_ms(event),
        )
        producer.poll(0)
    assert producer.flush(60) == 0


def _sent_ms(event: Event) -> int:
    return int(event.sent.replace(tzinfo=dt.UTC).timestamp() * 1000)


def _expected(dsn: str, events: Sequence[Event], chosen: Sequence[Query]) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(dsn) as postgres:
        for kind, columns in COLUMNS.items():
            postgres.execute(f"CREATE TEMP TABLE {kind} ({columns}, sent TIMESTAMP)".encode())
            names = ", ".join([*NAMES[kind], "sent"])
            with postgres.cursor().copy(f"COPY {kind} ({names}) FROM STDIN".encode()) as copy:
                for event in events:
                    if event.kind == kind:
                        copy.write_row((*event.row, dt.datetime.fromtimestamp(_sent_ms(event) / 1000, dt.UTC)))
        found = {query.name: postgres.execute(oracle(query.name).encode()).fetchall() for query in chosen}
        postgres.rollback()
    return found


def _wait_for(server: LiveServer, chosen: Sequence[Query], expected: dict[str, list[tuple[Any, ...]]]) -> None:
    deadline = time.monotonic() + SETTLE_S
    waiting = list(chosen)
    while True:
        shown = {query: _difference(server.query(query.select), expected[query.name]) for query in waiting}
        waiting = [query for query, difference in shown.items() if difference is not None]
        if not waiting:
            return
        if time.monotonic() > deadline:
            wrong = {query.name: (shown[query], server.states().get(query.name)) for query in waiting}
            raise AssertionError(f"{wrong}; {server.log_tail()}")
        time.sleep(0.5)


def _difference(found: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]]) -> str | None:
    ours, theirs = Counter(map(_plain, found)), Counter(map(_plain, expected))
    if ours == theirs:
        return None
    missing, extra = (list((one - other).elements())[:3] for one, other in ((theirs, ours), (ours, theirs)))
    return f"{len(found)} rows, not {len(expected)}: missing {missing}, too many {extra}"


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Averages have six digits here, and more there."""
    return tuple(round(value, 4).normalize() if isinstance(value, Decimal) else value for value in row)
