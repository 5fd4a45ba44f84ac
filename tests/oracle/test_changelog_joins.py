"""Joins of changelogs over random updates and deletions, cut into random batches, with a kill between: each view, and
each topic that a query writes, is in the end what PostgreSQL computes from the rows that are left."""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server
from tests.services.kafka import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.postgres, pytest.mark.night]

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))
ROUNDS = 3  # of changes, with a kill after the first
SETTLE_S = 90.0

_TABLES = {
    "people": ("id INTEGER", "city VARCHAR", "boss INTEGER", "age INTEGER"),
    "cities": ("name VARCHAR", "land VARCHAR", "size BIGINT"),
    "lands": ("land VARCHAR", "code INTEGER"),
}

VIEWS = {
    "inner_": "SELECT p.id, p.age, c.land FROM people p JOIN cities c ON p.city = c.name",
    "left_": "SELECT p.id, c.name, c.size + p.age AS total FROM people p LEFT JOIN cities c ON p.city = c.name",
    "full_": "SELECT p.id, c.name, c.land FROM people p FULL JOIN cities c ON p.city = c.name",
    "no_key": "SELECT p.age, c.land FROM people p JOIN cities c ON p.age = c.size",
    "residual": "SELECT p.id, c.name FROM people p LEFT JOIN cities c ON p.city = c.name AND p.age < c.size",
    "filtered": "SELECT p.id, c.name FROM (SELECT id, city FROM people WHERE age > 1) p LEFT JOIN "
    "(SELECT name FROM cities WHERE land IS NOT NULL) c ON p.city = c.name WHERE p.id % 2 = 0",
    "bosses": "SELECT p.id, b.id AS boss, b.age FROM people p LEFT JOIN people b ON p.boss = b.id",
    "mates": "SELECT a.id, b.id AS other FROM people a JOIN people b ON a.city = b.city AND a.id < b.id",
    "three": "SELECT p.id, c.name, l.code FROM people p LEFT JOIN cities c ON p.city = c.name "
    "LEFT JOIN lands l ON c.land = l.land",
    "three_full": "SELECT p.id, c.name, l.land, l.code FROM people p FULL JOIN cities c ON p.city = c.name "
    "LEFT JOIN lands l ON c.land = l.land",
    "grouped": "SELECT c.land, count(*) AS n, sum(p.age) AS ages, max(c.size) AS largest FROM people p "
    "LEFT JOIN cities c ON p.city = c.name GROUP BY c.land",
    "sized": "SELECT c.name, t.n FROM cities c LEFT JOIN (SELECT city, count(*) AS n FROM people GROUP BY city) t "
    "ON c.name = t.city",
    "oldest": "SELECT p.id, p.age, t.city FROM people p "
    "JOIN (SELECT city, max(age) AS age FROM people GROUP BY city) t ON p.city = t.city AND p.age = t.age",
    "of_all": "SELECT p.id, t.n FROM people p "
    "JOIN (SELECT max(age) AS age, count(*) AS n FROM people) t ON p.age = t.age",
    "counted": "SELECT count(*) AS n, count(DISTINCT l.code) AS codes FROM cities c JOIN lands l ON c.land = l.land",
}
WRITTEN = {
    "w_people": "SELECT p.id, p.age, c.land FROM people p LEFT JOIN cities c ON p.city = c.name",
    "w_mates": "SELECT a.id, b.id AS other, b.age FROM people a JOIN people b ON a.city = b.city",
    "w_lands": "SELECT c.land, count(*) AS n FROM people p JOIN cities c ON p.city = c.name GROUP BY c.land",
}
_EACH_CHANGE = ("left_", "full_", "mates", "three_full", "sized", "of_all", "w_people")


@pytest.fixture
def live_server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live.start()


@pytest.mark.parametrize(
    "names",
    [_EACH_CHANGE, pytest.param((*VIEWS, *WRITTEN), marks=pytest.mark.night)],
    ids=["some", "all"],
)
def test_joined_rows_are_what_postgresql_computes(
    live_server: LiveServer, kafka_broker: KafkaBroker, postgres_server: Any, names: Sequence[str]
) -> None:
    print("seed", SEED, "(MVSERVER_TEST_SEED)")
    chance = random.Random(SEED)
    run = uuid.uuid4().hex[:8]
    topics = {name: f"{name}-{run}" for name in _TABLES}
    views = {name: select for name, select in VIEWS.items() if name in names}
    written = {name: select for name, select in WRITTEN.items() if name in names}
    sinks = {name: f"{name}-{run}" for name in written}
    for topic in topics.values():
        create_topic(kafka_broker, topic, 3)
    _create_changelogs(live_server, kafka_broker.bootstrap, topics)
    _create_queries(live_server, views, written, sinks)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    rows: dict[str, dict[Any, tuple[Any, ...]]] = {name: {} for name in _TABLES}
    for number in range(ROUNDS):
        for _ in range(150):
            _change(chance, producer, topics, rows)
            if chance.random() < 0.05:
                producer.flush(30)
                time.sleep(chance.uniform(0, 0.2))  # so that batches end at random places
        assert producer.flush(30) == 0
        if number == 0:
            live_server.kill()
            live_server.start()
    expected = _expected(postgres_server.dsn, rows)
    for name in views:
        _wait_for_rows(live_server, name, expected[name])
    for name in written:
        _wait_for_topic(live_server, kafka_broker.bootstrap, sinks[name], expected[name])


def _create_changelogs(server: LiveServer, bootstrap: str, topics: dict[str, str]) -> None:
    server.run(f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{bootstrap}')", "USE STORE s")
    for name, columns in _TABLES.items():
        server.run(
            f"CREATE CHANGELOG {name} ({', '.join(columns)}, PRIMARY KEY ({columns[0].split()[0]})) "
            f"WITH ('store' = 's', 'topic' = '{topics[name]}', 'value.format' = 'json', 'key.format' = 'json')"
        )


def _create_queries(server: LiveServer, views: dict[str, str], written: dict[str, str], sinks: dict[str, str]) -> None:
    for name, select in views.items():
        server.run(f"CREATE MATERIALIZED VIEW {name} AS {select}")
    for name, select in written.items():
        server.run(
            f"CREATE CHANGELOG {name} WITH ('store' = 's', 'topic' = '{sinks[name]}', 'topic.partitions' = 2, "
            f"'topic.replicas' = 1, 'key.format' = 'json') AS {select}"
        )


def _change(
    chance: random.Random, producer: Producer, topics: dict[str, str], rows: dict[str, dict[Any, tuple[Any, ...]]]
) -> None:
    name = chance.choice(("people", "people", "people", "cities", "cities", "lands"))
    city, land = (chance.choice(each) for each in (("a", "b", "c", "d", "é", None), ("x", "y", "z", None)))
    if name == "people":
        key: Any = chance.randint(1, 15)
        row: tuple[Any, ...] = (key, city, chance.choice((None, *range(1, 16))), chance.choice((None, 0, 1, 2, 3)))
    elif name == "cities":
        key = city or "f"
        row = (key, land, chance.choice((None, 0, 1, 2, 3)))
    else:
        key = land or "w"
        row = (key, chance.choice((None, 1, 2)))
    names = [column.split()[0] for column in _TABLES[name]]
    deleted = chance.random() < 0.25
    rows[name].pop(key, None)
    if not deleted:
        rows[name][key] = row
    value = None if deleted else json.dumps(dict(zip(names, row, strict=True))).encode()
    producer.produce(topics[name], key=json.dumps({names[0]: key}).encode(), value=value)


def _expected(dsn: str, rows: dict[str, dict[Any, tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(dsn) as postgres:
        for name, columns in _TABLES.items():
            postgres.execute(f"CREATE TEMP TABLE {name} ({', '.join(columns)})".encode())
            places = ", ".join(["%s"] * len(columns))
            postgres.cursor().executemany(f"INSERT INTO {name} VALUES ({places})".encode(), list(rows[name].values()))
        found = {name: postgres.execute(select.encode()).fetchall() for name, select in {**VIEWS, **WRITTEN}.items()}
        postgres.rollback()
    # What has no key cannot be a record of a topic.
    found["w_lands"] = [row for row in found["w_lands"] if row[0] is not None]
    assert all(found.values()), "each has something to say"
    return found


def _sorted(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row])


def _wait_for_rows(server: LiveServer, name: str, expected: Sequence[tuple[Any, ...]]) -> None:
    deadline = time.monotonic() + SETTLE_S
    while (found := _sorted(server.query(f"SELECT * FROM {name}"))) != _sorted(expected):
        if time.monotonic() > deadline:
            states = server.states().get(name)
            raise AssertionError(f"{name}: {found} is not {_sorted(expected)}; {states}; {server.log_tail()}")
        time.sleep(0.2)


def _wait_for_topic(server: LiveServer, bootstrap: str, topic: str, expected: Sequence[tuple[Any, ...]]) -> None:
    """The last value of each key."""
    deadline = time.monotonic() + SETTLE_S
    while (found := _sorted(_table(bootstrap, topic))) != _sorted(expected):
        if time.monotonic() > deadline:
            raise AssertionError(f"{topic}: {found} is not {_sorted(expected)}; {server.states()}; {server.log_tail()}")
        time.sleep(0.5)


def _table(bootstrap: str, topic: str) -> list[tuple[Any, ...]]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "isolation.level": "read_committed",
         "enable.partition.eof": True}
    )  # fmt: skip
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    table: dict[bytes, tuple[Any, ...]] = {}
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(10)
        assert message is not None
        if message.error() is not None:
            ended += 1
            continue
        key, value = message.key(), message.value()
        assert key is not None
        if value is None:
            assert key in table, "only what is there goes"
            del table[key]
        else:
            table[key] = tuple(json.loads(value).values())
    consumer.close()
    return list(table.values())
