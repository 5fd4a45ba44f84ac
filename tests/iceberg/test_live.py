"""CREATE TABLE AS into a real catalog by a real server: what is in the tables after kills is the batch answer."""

from __future__ import annotations

import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import CATCH_UP_TIMEOUT_S, STREAM, Clicks, LiveServer, temporary_server
from tests.services.kafka import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

LAKE = "CREATE STORE lake WITH ('type' = ICEBERG, 'uris' = 'sqlite:///catalog.db', 'iceberg.warehouse' = 'lake')"
QUICK = "'store' = lake, 'commit.interval.millis' = 200"


@pytest.fixture(scope="module")
def seed() -> int:
    return int(os.environ.get("MVSERVER_TEST_SEED", "20261123"))


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live


def table(server: LiveServer, entity: str, columns: str) -> list[tuple[Any, ...]]:
    """The rows of the table's present snapshot, read by DuckDB from its files."""
    files = server.data / "files"
    catalog = SqlCatalog("default", uri=f"sqlite:///{files}/catalog.db?timeout=60")
    try:
        paths = [task.file.file_path for task in catalog.load_table(entity).scan().plan_files()]
    finally:
        catalog.close()
    if not paths:
        return []
    return duckdb.sql(f"SELECT {columns} FROM read_parquet({paths}) ORDER BY ALL").fetchall()


def wait_rows(server: LiveServer, entity: str, columns: str, expected: list[tuple[Any, ...]]) -> None:
    deadline, found = time.monotonic() + CATCH_UP_TIMEOUT_S, None
    while time.monotonic() < deadline:
        found = table(server, entity, columns)
        if found == expected:
            return
        time.sleep(0.2)
    raise AssertionError(f"{len(found or [])} of {len(expected)} rows; {server.states()}; {server.log_tail()}")


def declare(server: LiveServer, broker: KafkaBroker, topic: str) -> None:
    server.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{broker.bootstrap}')",
        STREAM.format(topic=topic),
        LAKE,
        f"CREATE TABLE homes WITH ({QUICK}) AS SELECT n, n * 2 AS twice, url, user_id "
        "FROM clicks WITH ('starting.position' = 'earliest') WHERE url = './home'",
        f"CREATE TABLE counts WITH ({QUICK}) AS SELECT url, device, count(*) AS c, sum(n) AS total "
        "FROM clicks WHERE url IS NOT NULL GROUP BY url, device",
    )


def check(server: LiveServer, clicks: Clicks) -> None:
    counts = sorted((url, device, c) for (url, device), c in clicks.truth["by_device"].items() if url is not None)
    homes = clicks.truth["by_url"][("./home",)]
    wait_rows(server, "default.counts", "url, device, c", counts)
    wait_rows(server, "default.homes", "count(*), count(DISTINCT n), bool_and(twice = 2 * n)", [(homes, homes, True)])


@dataclass(frozen=True)
class World:
    """A server whose tables follow a topic."""

    server: LiveServer
    clicks: Clicks


@pytest.fixture(scope="module")
def world(kafka_broker: KafkaBroker) -> Iterator[World]:
    topic = create_topic(kafka_broker, f"clicks-{uuid.uuid4().hex[:8]}", 2)
    with temporary_server() as server:
        server.start()
        declare(server, kafka_broker, topic)
        clicks = Clicks(1, kafka_broker.bootstrap, topic)
        clicks.produce(300)
        yield World(server, clicks)


def test_tables_are_made_written_and_described(world: World) -> None:
    server = world.server
    check(server, world.clicks)
    assert {state for state, _ in server.states().values()} == {"RUNNING"}
    assert [name for name, _ in server.query("LIST ENTITIES IN STORE lake")] == ["default.counts", "default.homes"]
    ((_, _, details, relations),) = server.query('DESCRIBE ENTITY "default.counts" IN STORE lake')
    assert details["rows"] == str(len(table(server, "default.counts", "url")))
    assert (details["key"], details["column url"]) == ("url, device", "string NOT NULL")
    assert relations == ["postgres.public.counts"]
    rows = server.query('PRINT ENTITY "default.homes" IN STORE lake LIMIT 3')
    assert [position for _, _, position, _ in rows] == ["row:0", "row:1", "row:2"]


def test_a_catalog_that_is_away_stalls_its_queries_and_no_other(world: World) -> None:
    server, clicks = world.server, world.clicks
    server.run("CREATE MATERIALIZED VIEW seen AS SELECT count(*) AS c FROM clicks")
    check(server, clicks)
    files = server.data / "files"
    (files / "lake").rename(files / "away")
    (files / "lake").write_text("no folder")
    clicks.produce(100)
    server.wait_for(
        lambda: {server.states()[name][0] for name in ("homes", "counts")} == {"STALLED"}, 120, "they are not stalled"
    )
    assert 'a file of store "lake" could not be read or written' in (server.states()["counts"][1] or "")
    server.wait_for(lambda: server.query("SELECT c FROM seen") == [(clicks.fed,)], 60, "the view stands still")
    (files / "lake").unlink()
    (files / "away").rename(files / "lake")
    check(server, clicks)
    server.wait_for(
        lambda: {server.states()[name][0] for name in ("homes", "counts")} == {"RUNNING"}, 60, "they do not go on"
    )


def snapshots(server: LiveServer) -> dict[str, int]:
    """Of each table, the newest one."""
    catalog = SqlCatalog("default", uri=f"sqlite:///{server.data}/files/catalog.db?timeout=60")
    try:
        tables = {name: catalog.load_table(("default", name)) for name in ("counts", "homes")}
        return {name: table.metadata.current_snapshot_id or 0 for name, table in tables.items()}
    finally:
        catalog.close()


def killed(server: LiveServer, clicks: Clicks, seed: int, kills: int) -> None:
    """Each query has written something in each life of the server: three ends of it at one small batch are held against
    the batch."""
    chance = random.Random(seed)
    for _ in range(kills):
        before = snapshots(server)
        clicks.produce(50)
        server.wait_for(
            lambda before=before: not before.items() & snapshots(server).items(), 180, "a table stands still"
        )
        feeding = threading.Thread(target=lambda: [clicks.produce(50) for _ in range(20)])
        feeding.start()
        time.sleep(chance.uniform(0.0, 4.0))  # any moment is one at which a server may end
        server.kill()
        feeding.join()
        server.start()
    clicks.produce(200)
    check(server, clicks)


def test_each_row_is_written_once_over_kills(world: World, seed: int) -> None:
    killed(world.server, world.clicks, seed, 2)


def test_another_query_writes_to_the_same_table(world: World) -> None:
    server, clicks = world.server, world.clicks
    server.run(
        "INSERT INTO homes SELECT -n AS n, -2 * n AS twice, url, user_id "
        "FROM clicks WITH ('starting.position' = 'earliest') WHERE url = './home'"
    )
    homes = clicks.truth["by_url"][("./home",)]
    wait_rows(
        server,
        "default.homes",
        "count(*), count(DISTINCT n), sum(n), bool_and(twice = 2 * n)",
        [(2 * homes, 2 * homes, 0, True)],
    )


def test_a_table_is_dropped_and_its_entity_apart(world: World) -> None:
    server = world.server
    server.run("DROP TABLE homes CASCADE", 'DROP ENTITY "default.homes" IN STORE lake')
    assert [name for name, _ in server.query("LIST ENTITIES IN STORE lake")] == ["default.counts"]


@pytest.mark.night
def test_each_row_is_written_once_over_many_kills(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int
) -> None:
    topic = kafka_topic(3)
    server.start()
    declare(server, kafka_broker, topic)
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    clicks.produce(500)
    killed(server, clicks, seed, 20)


@pytest.mark.night  # by failpoints, at the moments between a commit and what the server notes of it
@pytest.mark.parametrize("point", ["before sink", "after sink", "before relay", "after relay"])
def test_each_row_is_written_once_over_a_kill_between_two_steps(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int, point: str
) -> None:
    topic = kafka_topic(2)
    server.start()
    declare(server, kafka_broker, topic)
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    clicks.produce(300)
    server.wait_for(lambda: server.states()["homes"][0] == "RUNNING", 60, "the query does not run")
    server.kill()
    server.start(MVSERVER_FAILPOINTS=f"{point}=kill:2")
    while server.process.poll() is None:
        clicks.produce(100)
        time.sleep(0.2)
    server.start()
    check(server, clicks)
