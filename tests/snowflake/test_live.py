"""CREATE TABLE AS into Snowflake's emulator by a real server: what is in the tables after kills is the batch answer."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.faults.live import LiveServer, temporary_server
from tests.services.snowflake import SnowflakeEmulator, made_database
from tests.snowflake.gate import Gate
from tests.table_sinks import FollowedClicks

pytestmark = [pytest.mark.spark, pytest.mark.snowflake]

QUICK = "'store' = snow, 'snowflake.buffer.millis' = 200"
SECRET = "pa55-of-the-account"
SHORT = {"MVSERVER_SNOWFLAKE_REQUEST_TIMEOUT": "3s"}


class World(FollowedClicks):
    """``gate`` is the server's way to the emulator."""

    def __init__(self, server: LiveServer, emulator: SnowflakeEmulator, gate: Gate, database: str) -> None:
        super().__init__(server)
        self.emulator, self.gate, self.database = emulator, gate, database

    def found(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        homes = self.emulator.query(f"SELECT count(*), count(DISTINCT N), sum(TWICE) FROM {self.database}.WEB.HOMES")
        counts = self.emulator.query(f"SELECT URL, C FROM {self.database}.PUBLIC.COUNTS")
        return homes, sorted(counts)

    def killed(self, kills: int, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(kills):
            self.feed(50)
            feeding = threading.Thread(target=lambda: [self.feed(20) for _ in range(20)])
            feeding.start()
            time.sleep(chance.uniform(0.0, 3.0))  # any moment is one at which a server may end
            self.server.kill()
            feeding.join()
            self.server.start(**SHORT)
            self.check()  # something is written in each life

    def close(self) -> None:
        self.gate.close()


def declared(server: LiveServer, emulator: SnowflakeEmulator) -> World:
    """As statements of the dialect have it, but for the address."""
    world = World(server, emulator, Gate(emulator.port), made_database(emulator))
    emulator.query(f"CREATE SCHEMA {world.database}.WEB")
    server.start(**SHORT)
    (server.data / "files" / "clicks").mkdir(parents=True)
    world.feed(100)
    server.run(
        "CREATE STORE s WITH ('type' = FILE, 'uris' = '.')",
        "CREATE STREAM clicks (n BIGINT, url VARCHAR) WITH ('store' = s, 'value.format' = 'json')",
        f"CREATE STORE snow WITH ('type' = SNOWFLAKE, 'uris' = 'http://127.0.0.1:{world.gate.port}', "
        "'access_region' = \"AWS us-east-1\", 'snowflake.account_id' = 'my-account', "
        "'snowflake.cloud.region' = 'AWS us-west-2', 'snowflake.warehouse_name' = 'COMPUTE_WH', "
        "'snowflake.role_name' = 'ACCOUNTADMIN', 'snowflake.username' = 'STREAMING_USER', "
        f"'snowflake.password' = '{SECRET}', 'snowflake.db.name' = '{world.database.lower()}')",
        f"CREATE TABLE homes WITH ({QUICK}, 'snowflake.schema.name' = 'web') AS SELECT n, n * 2 AS twice "
        "FROM clicks WITH ('starting.position' = 'earliest') WHERE url = './0'",
        f"CREATE TABLE counts WITH ({QUICK}) AS SELECT url, count(*) AS c FROM clicks GROUP BY url",
    )
    return world


@pytest.fixture(scope="module")
def seed() -> int:
    return int(os.environ.get("MVSERVER_TEST_SEED", "20261123"))


@pytest.fixture(scope="module")
def world(snowflake: SnowflakeEmulator) -> Iterator[World]:
    with temporary_server() as server:
        found = declared(server, snowflake)
        yield found
        found.close()


def test_tables_are_made_written_and_described(world: World) -> None:
    world.check()
    server, database = world.server, world.database
    assert {state for state, _ in server.states().values()} == {"RUNNING"}
    names = [name for name, _ in server.query("LIST ENTITIES IN STORE snow")]
    assert names == [f"{database}.PUBLIC.COUNTS", f"{database}.WEB.HOMES"]
    ((_, _, details, relations),) = server.query(f'DESCRIBE ENTITY "{database}.PUBLIC.COUNTS" IN STORE snow')
    assert (details["rows"], details["column C"]) == ("7", "NUMBER(19,0)")
    assert relations == ["postgres.public.counts"]
    assert len(server.query(f'PRINT ENTITY "{database}.WEB.HOMES" IN STORE snow LIMIT 3')) == 3
    ((_, _, _, properties, *_),) = server.query("DESCRIBE STORE snow")
    assert properties["snowflake.username"] == "STREAMING_USER"
    assert SECRET not in str(properties)
    assert SECRET not in (server.data.parent / f"{server.data.name}.log").read_text(errors="replace")


def test_each_row_is_written_once_over_a_kill(world: World, seed: int) -> None:
    world.killed(1, seed)


def test_a_service_that_is_away_stalls_its_queries_and_no_other(world: World) -> None:
    world.server.run("CREATE MATERIALIZED VIEW seen AS SELECT count(*) AS c FROM clicks")
    world.gate.close()
    world.feed(100)
    states = world.server.states
    world.server.wait_for(
        lambda: {states()[name][0] for name in ("homes", "counts")} == {"STALLED"}, 120, "they are not stalled"
    )
    assert 'could not connect to store "snow"' in (states()["counts"][1] or "")
    world.server.wait_for(
        lambda: world.server.query("SELECT c FROM seen") == [(world.fed,)], 60, "the view stands still"
    )
    world.gate.open()
    world.check()
    world.server.wait_for(
        lambda: {states()[name][0] for name in ("homes", "counts")} == {"RUNNING"}, 60, "they do not go on"
    )


@pytest.mark.night  # by day tests/snowflake/test_sink does it
def test_a_line_that_breaks_amid_commits_doubles_nothing(world: World, seed: int) -> None:
    """Whether a reply was lost or the commit, the query asks the table."""
    chance, ended = random.Random(seed), threading.Event()

    def break_it() -> None:
        while not ended.wait(chance.uniform(0.1, 1.0)):
            world.gate.cut()

    breaking = threading.Thread(target=break_it)
    breaking.start()
    for _ in range(10):
        world.feed(30)
        time.sleep(0.3)  # so that there are several commits
    ended.set()
    breaking.join()
    world.check()


def test_an_updated_store_is_written_to_with_its_new_properties(world: World) -> None:
    world.server.run("UPDATE STORE snow WITH ('snowflake.password' = 'another', 'snowflake.role_name' = 'SYSADMIN')")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        world.server.run("UPDATE STORE snow WITH ('snowflake.client.key' = 'a key beside a password')")
    world.feed(20)
    world.check()


def test_another_query_writes_to_the_same_table(world: World) -> None:
    ids = "SELECT id FROM mv_catalog.queries"
    before = set(world.server.query(ids))
    world.server.run(
        "INSERT INTO homes SELECT -n - 1 AS n, 0::bigint AS twice FROM clicks WITH ('starting.position' = 'latest')"
    )
    world.feed(10)
    sql = f"SELECT count(*), count(DISTINCT N) FROM {world.database}.WEB.HOMES WHERE N < 0"
    world.server.wait_for(lambda: world.emulator.query(sql) == [(10, 10)], 120, "the rows do not come")
    ((query,),) = set(world.server.query(ids)) - before
    world.server.run(f"TERMINATE QUERY '{query}'")
    world.emulator.query(f"DELETE FROM {world.database}.WEB.HOMES WHERE N < 0")
    world.check()


def test_a_table_is_dropped_and_its_entity_apart(world: World) -> None:
    world.server.run("DROP TABLE homes CASCADE", f'DROP ENTITY "{world.database}.WEB.HOMES" IN STORE snow')
    names = [name for name, _ in world.server.query("LIST ENTITIES IN STORE snow")]
    assert names == [f"{world.database}.PUBLIC.COUNTS"]


@pytest.mark.night
def test_each_row_is_written_once_over_many_kills(snowflake: SnowflakeEmulator, seed: int) -> None:
    with temporary_server() as server:
        world = declared(server, snowflake)
        world.killed(20, seed)
        world.close()
