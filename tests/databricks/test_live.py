"""CREATE TABLE AS into Delta tables by a real server: what is in them after a kill is the batch answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from tests.databricks.unity_server import TOKEN, UnityServer, serving
from tests.faults.live import LiveServer, temporary_server
from tests.table_sinks import FollowedClicks

pytestmark = pytest.mark.spark

QUICK = "'store' = bricks, 'commit.interval.millis' = 200"


class World(FollowedClicks):
    def __init__(self, server: LiveServer, unity: UnityServer) -> None:
        super().__init__(server)
        self.unity = unity

    def rows(self, entity: str, columns: str) -> list[tuple[Any, ...]]:
        table = DeltaTable(self.unity.tables[entity]["storage_location"])
        files = table.file_uris()
        return duckdb.sql(f"SELECT {columns} FROM read_parquet({files}) ORDER BY ALL").fetchall() if files else []

    def found(self) -> Any:
        return (
            self.rows("main.web.homes", "count(*), count(DISTINCT n), sum(twice)::bigint"),
            self.rows("main.default.counts", "url, c"),
        )


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with serving() as unity, temporary_server() as server:
        server.start()
        (server.data / "files" / "clicks").mkdir(parents=True)
        found = World(server, unity)
        found.feed(100)
        server.run(
            "CREATE STORE s WITH ('type' = FILE, 'uris' = '.')",
            "CREATE STREAM clicks (n BIGINT, url VARCHAR) WITH ('store' = s, 'value.format' = 'json')",
            f"CREATE STORE bricks WITH ('type' = DATABRICKS, 'uris' = '{unity.address}', "
            f"'databricks.app_token' = '{TOKEN}', 'databricks.location' = 'lake')",
            f"CREATE TABLE homes WITH ({QUICK}, 'databricks.schema.name' = 'web') AS SELECT n, n * 2 AS twice "
            "FROM clicks WITH ('starting.position' = 'earliest') WHERE url = './0'",
            f"CREATE TABLE counts WITH ({QUICK}) AS SELECT url, count(*) AS c FROM clicks GROUP BY url",
        )
        yield found


def test_tables_are_made_written_and_described(world: World) -> None:
    world.check()
    server = world.server
    assert {state for state, _ in server.states().values()} == {"RUNNING"}
    names = [name for name, _ in server.query("LIST ENTITIES IN STORE bricks")]
    assert names == ["main.default.counts", "main.web.homes"]
    ((_, _, details, relations),) = server.query('DESCRIBE ENTITY "main.default.counts" IN STORE bricks')
    assert (details["rows"], details["column c"]) == ("7", "bigint")
    assert relations == ["postgres.public.counts"]
    assert len(server.query('PRINT ENTITY "main.web.homes" IN STORE bricks LIMIT 3')) == 3


def test_each_row_is_written_once_over_a_kill(world: World) -> None:
    world.feed(500)
    world.server.kill()
    world.feed(200)
    world.server.start()
    world.feed(100)
    world.check()


def test_a_place_that_is_away_stalls_its_queries(world: World) -> None:
    lake = world.server.data / "files" / "lake"
    lake.rename(lake.with_name("away"))
    lake.write_text("no folder")
    world.feed(100)
    names = ("homes", "counts")
    world.server.wait_for(
        lambda: {world.server.states()[name][0] for name in names} == {"STALLED"}, 120, "they are not stalled"
    )
    lake.unlink()
    lake.with_name("away").rename(lake)
    world.check()


def test_a_table_is_dropped_and_its_entity_apart(world: World) -> None:
    world.server.run("DROP TABLE homes CASCADE", 'DROP ENTITY "main.web.homes" IN STORE bricks')
    assert list(world.unity.tables) == ["main.default.counts"]
