"""Three kinds of sources joined in one view, and the view written to four kinds of sinks at once, through kills.

Each sink has what PostgreSQL's rules make of all records: the joined groups, each once.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from mvserver.demo.kafka_broker import KafkaBroker
from tests.databricks.unity_server import TOKEN, UnityServer, serving
from tests.faults.live import CATCH_UP_TIMEOUT_S, LiveServer, temporary_server
from tests.services.kafka import create_topic
from tests.services.kinesis import KinesisEmulator, Stream
from tests.services.postgres import LogicalPostgres
from tests.services.snowflake import SnowflakeEmulator, made_database

pytestmark = [
    pytest.mark.spark, pytest.mark.kafka, pytest.mark.kinesis, pytest.mark.postgres, pytest.mark.snowflake,
    pytest.mark.night,
]  # fmt: skip

KILLS = int(os.environ.get("MVSERVER_TEST_KILLS", "10"))
SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20261123"))
USERS = 40
QUICK = "'commit.interval.millis' = 200"
JOINED = (
    "SELECT u.id, u.city, c.clicks, t.taps FROM users u "
    "JOIN (SELECT user_id, count(*) AS clicks FROM clicks GROUP BY user_id) c ON c.user_id = u.id "
    "JOIN (SELECT user_id, count(*) AS taps FROM taps GROUP BY user_id) t ON t.user_id = u.id"
)
Rows = list[tuple[Any, ...]]


@dataclass
class Sources:
    """Seeded records; what was acknowledged is counted."""

    producer: Producer
    topic: str
    stream: Stream
    postgres: LogicalPostgres
    table: str
    chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    users: dict[int, str] = field(default_factory=dict)
    clicks: Counter[int] = field(default_factory=Counter)
    taps: Counter[int] = field(default_factory=Counter)

    def feed(self) -> None:
        clicked = [self.chance.randrange(USERS) for _ in range(30)]
        for user in clicked:
            self.producer.produce(self.topic, json.dumps({"user_id": user}))
        assert self.producer.flush(60) == 0
        self.clicks.update(clicked)
        tapped = [self.chance.randrange(USERS) for _ in range(30)]
        self.stream.put([(str(user), json.dumps({"user_id": user}).encode()) for user in tapped])
        self.taps.update(tapped)
        with self.postgres.connect() as connection:
            for user in {self.chance.randrange(USERS) for _ in range(5)}:
                if user in self.users and self.chance.random() < 0.4:
                    connection.execute(f"DELETE FROM {self.table} WHERE id = {user}")
                    del self.users[user]
                else:
                    city = self.chance.choice(["Bonn", "Graz", "Bern"])
                    connection.execute(
                        f"INSERT INTO {self.table} VALUES ({user}, '{city}') "
                        "ON CONFLICT (id) DO UPDATE SET city = excluded.city"
                    )
                    self.users[user] = city

    def joined(self) -> Rows:
        """The batch answer."""
        return sorted(
            (user, city, self.clicks[user], self.taps[user])
            for user, city in self.users.items()
            if self.clicks[user] and self.taps[user]
        )


def of_topic(bootstrap: str, topic: str) -> Rows:
    """Of each key the last record."""
    found: dict[bytes, tuple[Any, ...] | None] = {}
    for key, value in _records(bootstrap, topic):
        found[key] = None if value is None else (value["id"], value["city"], value["clicks"], value["taps"])
    return sorted(row for row in found.values() if row is not None)


def _records(bootstrap: str, topic: str) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Keys and values of what is committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        left = len(partitions)
        while left:
            message = consumer.poll(60)
            assert message is not None, "the broker does not answer"
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left -= 1
                continue
            value = message.value()
            yield message.key(), None if value is None else json.loads(value)
    finally:
        consumer.close()


def of_files(paths: list[str]) -> Rows:
    if not paths:
        return []
    return duckdb.sql(f"SELECT id, city, clicks, taps FROM read_parquet({paths}) ORDER BY ALL").fetchall()


def of_iceberg(server: LiveServer) -> Rows:
    catalog = SqlCatalog("default", uri=f"sqlite:///{server.data}/files/catalog.db?timeout=60")
    try:
        return of_files([task.file.file_path for task in catalog.load_table("default.berg").scan().plan_files()])
    finally:
        catalog.close()


def of_delta(unity: UnityServer) -> Rows:
    return of_files(DeltaTable(unity.tables["main.default.brick"]["storage_location"]).file_uris())


def of_snowflake(emulator: SnowflakeEmulator, database: str) -> Rows:
    return sorted(emulator.query(f"SELECT ID, CITY, CLICKS, TAPS FROM {database}.PUBLIC.FLAKE"))


def check(server: LiveServer, sinks: dict[str, Callable[[], Rows]], wanted: Rows) -> None:
    deadline, found = time.monotonic() + CATCH_UP_TIMEOUT_S, {}
    while time.monotonic() < deadline:
        found = {name: read() for name, read in sinks.items()}
        if all(rows == wanted for rows in found.values()):
            return
        time.sleep(0.5)
    wrong = {name: (len(set(rows) - set(wanted)), len(rows)) for name, rows in found.items() if rows != wanted}
    raise AssertionError(f"{wrong} of {len(wanted)} differ; {server.states()}; {server.log_tail()}")


def test_three_sources_are_joined_into_four_sinks(
    kafka_broker: KafkaBroker,
    kinesis: KinesisEmulator,
    kinesis_stream: Callable[..., Stream],
    logical_postgres: LogicalPostgres,
    snowflake: SnowflakeEmulator,
) -> None:
    name = f"f{uuid.uuid4().hex[:8]}"
    topic, out = create_topic(kafka_broker, name, 2), create_topic(kafka_broker, f"{name}-out", 2)
    stream, database = kinesis_stream(2), made_database(snowflake)
    with logical_postgres.connect() as connection:
        connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, city TEXT)")
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "enable.idempotence": True})
    sources = Sources(producer, topic, stream, logical_postgres, name)
    with serving() as unity, temporary_server() as server:
        server.start()
        snow = ", ".join(f"'{key}' = '{value}'" for key, value in snowflake.properties().items())
        server.run(
            f"CREATE STORE broker WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
            f"CREATE STORE shards WITH ({kinesis.properties})",
            f"CREATE STORE tables WITH ('type' = POSTGRESQL, 'uris' = '{logical_postgres.uris}', "
            "'postgres.username' = 'postgres', 'tls.disabled' = TRUE)",
            "CREATE STORE lake WITH ('type' = ICEBERG, 'uris' = 'sqlite:///catalog.db', 'iceberg.warehouse' = 'lake')",
            f"CREATE STORE bricks WITH ('type' = DATABRICKS, 'uris' = '{unity.address}', "
            f"'databricks.app_token' = '{TOKEN}', 'databricks.location' = 'bricks')",
            f"CREATE STORE snow WITH ('type' = SNOWFLAKE, {snow}, 'snowflake.db.name' = '{database}')",
            f"CREATE STREAM clicks (user_id INTEGER) WITH ('store' = broker, 'topic' = '{topic}', "
            "'value.format' = 'json')",
            f"CREATE STREAM taps (user_id INTEGER) WITH ('store' = shards, 'topic' = '{stream.name}', "
            "'value.format' = 'json')",
            f"CREATE CHANGELOG users (id INTEGER, city VARCHAR, PRIMARY KEY (id)) "
            f"WITH ('store' = tables, 'topic' = 'public.{name}')",
            f"CREATE MATERIALIZED VIEW joined AS {JOINED}",
            f"CREATE TABLE berg WITH ('store' = lake, {QUICK}) AS SELECT id, city, clicks, taps FROM joined",
            f"CREATE TABLE brick WITH ('store' = bricks, {QUICK}) AS SELECT id, city, clicks, taps FROM joined",
            f"CREATE TABLE flake WITH ('store' = snow, {QUICK}) AS SELECT id, city, clicks, taps FROM joined",
            f"CREATE CHANGELOG topics WITH ('store' = broker, 'topic' = '{out}', 'value.format' = 'json') AS "
            "SELECT id, city, clicks, taps FROM joined",
        )
        sinks = {
            "iceberg": lambda: of_iceberg(server),
            "databricks": lambda: of_delta(unity),
            "snowflake": lambda: of_snowflake(snowflake, database),
            "kafka": lambda: of_topic(kafka_broker.bootstrap, out),
        }
        for _ in range(5):
            sources.feed()
        assert sources.joined()
        check(server, sinks, sources.joined())
        chance = random.Random(SEED)
        for _ in range(KILLS):
            feeding = threading.Thread(target=lambda: [sources.feed() for _ in range(10)])
            feeding.start()
            time.sleep(chance.uniform(0.0, 3.0))  # any moment is one at which a server may end
            server.kill()
            feeding.join()
            server.start()
            sources.feed()
            check(server, sinks, sources.joined())
