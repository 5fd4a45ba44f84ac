"""CREATE ENTITY in stores whose entities are tables: columns, a key, what is refused, and a query that writes to it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.databricks.unity_server import TOKEN, UnityServer, serving
from tests.faults.live import LiveServer, temporary_server

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def unity() -> Iterator[UnityServer]:
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def server(unity: UnityServer) -> Iterator[LiveServer]:
    with temporary_server() as live:
        live.start()
        (live.data / "files" / "clicks").mkdir(parents=True)
        live.run(
            "CREATE STORE s WITH ('type' = FILE, 'uris' = '.')",
            "CREATE STORE lake WITH ('type' = ICEBERG, 'uris' = 'sqlite:///catalog.db', 'iceberg.warehouse' = 'lake')",
            f"CREATE STORE bricks WITH ('type' = DATABRICKS, 'uris' = '{unity.address}', "
            f"'databricks.app_token' = '{TOKEN}', 'databricks.location' = 'bricks')",
        )
        yield live


def refused(server: LiveServer, statement: str) -> tuple[str | None, str | None]:
    with pytest.raises(psycopg.Error) as caught:
        server.run(statement)
    return caught.value.sqlstate, caught.value.diag.message_primary


@pytest.mark.parametrize(
    ("store", "name", "key", "text"), [("lake", "web.t", "int", "string"), ("bricks", "main.web.t", "int", "string")]
)
def test_a_table_is_made_described_and_dropped(server: LiveServer, store: str, name: str, key: str, text: str) -> None:
    made = f'CREATE ENTITY "{name}" (k INTEGER, v VARCHAR, PRIMARY KEY (k)) IN STORE {store}'
    with server.connect() as connection:
        for statement in ("BEGIN", made, "ROLLBACK"):
            connection.execute(statement.encode())
    assert server.query(f"LIST ENTITIES IN STORE {store}") == []
    server.run(made)
    assert [row[0] for row in server.query(f"LIST ENTITIES IN STORE {store}")] == [name]
    ((_, _, details, _),) = server.query(f'DESCRIBE ENTITY "{name}" IN STORE {store}')
    assert (details["column k"].split()[0], details["column v"]) == (key, text)
    server.run(f"""INSERT INTO ENTITY "{name}" IN STORE {store} VALUE ('{{"k": 1, "v": "a"}}')""")
    assert refused(server, f"""INSERT INTO ENTITY "{name}" IN STORE {store} VALUE ('{{"k": 1.5}}')""")[0] == "22P02"
    assert [row[1] for row in server.query(f'PRINT ENTITY "{name}" IN STORE {store} LIMIT 1')] == ['{"k": 1, "v": "a"}']
    assert refused(server, made) == ("42710", f'entity "{name}" already exists in store "{store}"')
    server.run(f'DROP ENTITY "{name}" IN STORE {store}')
    assert server.query(f"LIST ENTITIES IN STORE {store}") == []


def test_a_query_writes_to_a_table_that_was_made_so(server: LiveServer) -> None:
    server.run(
        'CREATE ENTITY "web.counts" (url VARCHAR, c BIGINT, PRIMARY KEY (url)) IN STORE lake',
        "CREATE STREAM clicks (n BIGINT, url VARCHAR) WITH ('store' = s, 'value.format' = 'json')",
        "CREATE TABLE counts WITH ('store' = lake, 'iceberg.namespace' = 'web', 'commit.interval.millis' = 200) AS "
        "SELECT url, count(*) AS c FROM clicks GROUP BY url",
        "CREATE TABLE seen WITH ('store' = lake, 'iceberg.namespace' = 'web', 'commit.interval.millis' = 200) AS "
        "SELECT url, now() - INTERVAL '1 day' < localtimestamp AT TIME ZONE 'UTC' AS late, random() < 1 AS below "
        "FROM clicks WITH ('starting.position' = 'earliest') WHERE now() > TIMESTAMPTZ '2020-01-01 00:00:00+00'",
        """INSERT INTO ENTITY clicks IN STORE s VALUE ('{"n": 1, "url": "./home"}')""",
    )
    shown = 'PRINT ENTITY "web.counts" IN STORE lake LIMIT 1'
    server.wait_for(lambda: [row[1] for row in server.query(shown)] == ['{"url": "./home", "c": 1}'], 120, "no row")
    shown, row = 'PRINT ENTITY "web.seen" IN STORE lake LIMIT 1', '{"url": "./home", "late": true, "below": true}'
    server.wait_for(lambda: [found[1] for found in server.query(shown)] == [row], 120, "no row of what has no key")
    server.run("DROP TABLE counts CASCADE", "DROP TABLE seen CASCADE", "DROP STREAM clicks")
    server.run('DROP ENTITY "web.counts" IN STORE lake', 'DROP ENTITY "web.seen" IN STORE lake')


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ('CREATE ENTITY "web.t" IN STORE lake', "42P16",
         "an entity of a store of type ICEBERG is a table, and needs columns"),
        ("CREATE ENTITY t (k INTEGER) IN STORE s", "0A000", "an entity of a store of type FILE has no columns"),
        ("CREATE ENTITY t (k INTEGER) IN STORE bricks", "22023", '"t" is not catalog.schema.table'),
        ("CREATE ENTITY t (k INTEGER) IN STORE lake", "22023", '"t" is not namespace.table'),
        ('CREATE ENTITY "web.t" (k INTEGER, PRIMARY KEY (v)) IN STORE lake', "42703",
         'column "v" named in key does not exist'),
        ('CREATE ENTITY "web.t" (k DOUBLE, PRIMARY KEY (k)) IN STORE lake', "0A000",
         'column "k" of type DOUBLE cannot be part of a primary key'),
        ('CREATE ENTITY "main.web.t" (k TIME) IN STORE bricks', "0A000", None),
        ("CREATE ENTITY \"web.t\" (k INTEGER) IN STORE lake WITH ('topic.partitions' = 1)", "22023", None),
    ],
)  # fmt: skip
def test_what_is_refused(server: LiveServer, statement: str, sqlstate: str, message: str | None) -> None:
    found = refused(server, statement)
    assert found[0] == sqlstate, found
    assert message in (None, found[1])
    assert server.query("LIST ENTITIES IN STORE lake") == server.query("LIST ENTITIES IN STORE bricks") == []
