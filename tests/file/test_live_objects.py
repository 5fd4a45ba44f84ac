"""Objects and a whole server: forms of files, folders, what changes and goes, and the output of a query."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.faults.live import LiveServer, temporary_server
from tests.file.services import Bucket, serving
from tests.file.test_live import EARLIEST, WITHIN_S, Place, table_bytes, until

pytestmark = pytest.mark.spark
IN = "lake/in"


class World(Place):
    """A server, and the bucket that its store ``f`` is in."""

    def __init__(self, server: LiveServer, bucket: Bucket) -> None:
        super().__init__(server)
        self.bucket = bucket

    def add(self, name: str, content: bytes) -> None:
        self.bucket.put(f"{IN}/{name}", content)


@pytest.fixture(
    scope="module", params=["s3", *(pytest.param(name, marks=pytest.mark.night) for name in ("azure", "google"))]
)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with temporary_server() as server, serving(request.param) as service:
        server.start(MVSERVER_OBJECT_POLL_INTERVAL="100ms", MVSERVER_SPARK_START_TIMEOUT="10min")
        found = World(server, service.place())
        server.run(f"CREATE STORE f WITH ({found.bucket.statement})")
        yield found


def test_secrets_are_shown_to_nobody(world: World) -> None:
    ((*_, properties, _, _, _),) = world.server.query("DESCRIBE STORE f")
    assert "***" in str(properties)
    secrets = [world.bucket.properties.get(key, '"b"') for key in ("azure.account_key", "gcs.token")]
    assert not [secret for secret in secrets if secret in str(properties)]


def test_lines_and_folders_are_read_and_written_on(world: World) -> None:
    """Rejected records have their line; what is deleted behind the reading is noticed by a rebuild."""
    server = world.server
    server.run("CREATE ENTITY clicks IN STORE f")
    for number in range(1, 21):
        world.add(f"clicks/day=2026-01-{number:02}/{number}.json", b'{"n": %d}\n' % number)
    server.run(
        "CREATE STREAM clicks (n BIGINT, day DATE) "
        "WITH ('store' = 'f', 'value.format' = 'json', 'partition.columns' = 'day')",
        f"CREATE MATERIALIZED VIEW days AS SELECT day, n FROM clicks {EARLIEST}",
        "CREATE STREAM odd WITH ('store' = 'f', 'partition.columns' = 'half') AS "
        f"SELECT n % 2 = 1 AS half, n FROM clicks {EARLIEST}",
    )
    world.shows("SELECT count(*), sum(n), count(DISTINCT day), min(day)::text FROM days", [(20, 210, 20, "2026-01-01")])
    world.add("clicks/day=2026-02-01/x.json", b'{"n": "no"}\n\n{"n": "neither"}\n{"n": 100}\n')
    world.shows("SELECT n, day::text FROM days WHERE n = 100", [(100, "2026-02-01")])
    server.wait_for(lambda: len(world.rejected("clicks")) == 2, WITHIN_S, "too few are rejected")
    assert [position for position, _ in world.rejected("clicks")] == [
        "day=2026-02-01/x.json:1", "day=2026-02-01/x.json:3",
    ]  # fmt: skip
    wanted = {"true": sum(range(1, 21, 2)), "false": sum(range(2, 21, 2)) + 100}

    def written() -> bool:
        found = {"true": 0, "false": 0}
        for key, content in world.bucket.contents(f"{IN}/odd/half=").items():
            folder = key.split("half=")[1].split("/")[0]
            found[folder] += sum(json.loads(line)["n"] for line in content.splitlines())
        return found == wanted

    until(written)
    world.bucket.delete(f"{IN}/clicks/day=2026-01-20/20.json")
    server.run("REFRESH MATERIALIZED VIEW days")
    world.shows("SELECT count(*), sum(n) FROM days", [(20, 290)])
    assert [key for key in world.bucket.contents(f"{IN}/odd/") if ".position" in key] != []
    server.run("DROP STREAM odd CASCADE")
    until(lambda: [key for key in world.bucket.contents(f"{IN}/odd/") if ".position" in key] == [])
    assert written()
    server.run("DROP MATERIALIZED VIEW days", "DROP STREAM clicks")
    until(lambda: not list((server.data / "sources").rglob("*.json")))  # of what was brought here


def test_orc_and_a_changed_object(world: World) -> None:
    server = world.server
    world.add("tables/a.orc", table_bytes(pa.table({"n": [1, 2]}), "orc"))
    server.run(
        "CREATE STREAM tables (n BIGINT) WITH ('store' = 'f', 'value.format' = 'orc')",
        f"CREATE MATERIALIZED VIEW seen AS SELECT n FROM tables {EARLIEST}",
    )
    world.shows("SELECT n FROM seen ORDER BY n", [(1,), (2,)])
    world.add("tables/b.orc", table_bytes(pa.table({"n": [3]}), "orc"))
    world.shows("SELECT n FROM seen ORDER BY n", [(1,), (2,), (3,)])
    world.add("tables/a.orc", table_bytes(pa.table({"n": [7]}), "orc"))
    server.run(f"CREATE MATERIALIZED VIEW other AS SELECT n FROM tables {EARLIEST}")
    server.wait_for(lambda: server.states()["other"][0] == "FAILED", WITHIN_S, "it goes on")
    error = server.states()["other"][1] or ""
    assert f'file "a.orc" of {world.bucket.properties["uris"]}' in error
    assert "changed after it was read" in error
