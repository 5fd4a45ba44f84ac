"""SQL's cursors by the protocol's messages, and the protocol's portals by SQL: one thing, as in a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.clients.live_server import LiveServer
from tests.wire.client import SYNC, RawClient, bind, close, describe, execute, parse, query
from tests.wire.test_postgres import SocketClient
from tests.wire.test_transcripts import answer

pytestmark = pytest.mark.postgres

SERIES = "SELECT g::int4 AS g, g || 'x' AS t FROM generate_series(1, 10) AS g"
LISTED = (
    "SELECT name || '' AS n, statement || '' AS s, is_holdable AND true AS h, is_binary AND true AS b, "
    "is_scrollable AND true AS r FROM pg_cursors WHERE name <> '' ORDER BY name"
)

OPENED = [query("BEGIN"), parse(SERIES), bind(portal="p")]

TRANSCRIPTS: dict[str, list[bytes]] = {
    "execute on a cursor": [
        query(f"BEGIN; DECLARE c CURSOR FOR {SERIES}"), describe("P", "c"), execute(3, "c"), SYNC,
        query("FETCH 2 FROM c"), execute(4, "c"), execute(1, "c"), SYNC, execute(1, "c"), execute(0, "c"), SYNC,
        query("ROLLBACK"),
    ],
    "execute on a scrolling cursor": [
        query(f"BEGIN; DECLARE c SCROLL CURSOR FOR {SERIES}"), execute(0, "c"), SYNC, query("FETCH BACKWARD 2 FROM c"),
        execute(0, "c"), SYNC, query("MOVE ABSOLUTE 3 IN c"), execute(2, "c"), SYNC, query("COMMIT"),
    ],
    "execute on a held cursor": [
        query("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 7 AS n; COMMIT"), execute(1, "c"), execute(1, "c"), SYNC,
        query("CLOSE c"), execute(1, "c"), SYNC,
    ],
    "execute on a binary cursor": [
        query("BEGIN; DECLARE c BINARY CURSOR FOR SELECT 7 AS n"), describe("P", "c"), execute(1, "c"), SYNC,
        query("ROLLBACK"),
    ],
    "close of a cursor": [
        query(f"BEGIN; DECLARE c CURSOR FOR {SERIES}"), close("P", "c"), SYNC, query("FETCH c"), query("ROLLBACK"),
    ],
    "fetch from a portal": [
        *OPENED, execute(3, "p"), SYNC, query("FETCH 2 FROM p"), execute(1, "p"),
        SYNC, query("MOVE 1 IN p"), execute(0, "p"), SYNC, query("FETCH p"), execute(1, "p"), SYNC, query("COMMIT"),
    ],
    "fetch from a portal that has not run": [
        *OPENED, SYNC, query("FETCH 2 FROM p; MOVE 2 IN p"), execute(0, "p"), SYNC,
        query("COMMIT"),
    ],
    "fetch from a portal that was read whole": [
        *OPENED, execute(0, "p"), SYNC, query("FETCH 2 FROM p"), query("COMMIT"),
    ],
    "a portal does not scroll": [
        *OPENED, execute(3, "p"), SYNC, query("FETCH BACKWARD 1 FROM p"),
        query("ROLLBACK"),
    ],
    "close of a portal": [
        query("BEGIN"), parse(SERIES, "s"), bind(portal="p", statement="s"), execute(3, "p"), SYNC, query("CLOSE p"),
        bind(portal="p", statement="s"), execute(1, "p"), SYNC, query("CLOSE ALL"), execute(1, "p"), SYNC,
        query("ROLLBACK"),
    ],
    "one name space": [
        query("BEGIN; SAVEPOINT s"), parse(SERIES), bind(portal="p"), SYNC, query("DECLARE p CURSOR FOR SELECT 1"),
        query("ROLLBACK"), query("BEGIN; DECLARE c CURSOR FOR SELECT 1"), parse(SERIES), bind(portal="c"), SYNC,
        query("ROLLBACK"),
    ],
    "binary rows in parts": [
        query("BEGIN"), parse(SERIES), bind(portal="p", results=[1, 0]), execute(3, "p"), SYNC, query("FETCH 1 FROM p"),
        execute(2, "p"), SYNC, query("COMMIT"),
    ],
    "pg_cursors": [
        query("BEGIN"), query(f"DECLARE c SCROLL CURSOR WITH HOLD FOR {SERIES}"), parse("SELECT 1", "s"),
        bind(portal="p", statement="s"), SYNC, query(LISTED), query("COMMIT"), query(LISTED), query("CLOSE ALL"),
        query(LISTED),
    ],
    "described by FETCH": [
        *OPENED, SYNC, parse("FETCH 2 FROM p", "f"), describe("S", "f"),
        bind(statement="f"), execute(), SYNC, query("COMMIT"),
    ],
    "parts of what is no query": [
        query("BEGIN"), parse("SHOW server_encoding"), bind(portal="p"), execute(1, "p"), execute(1, "p"), SYNC,
        query("ROLLBACK"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    made = LiveServer(tmp_path_factory.mktemp("portals"))
    made.start()
    yield made
    made.stop()


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_portals_are_cursors(server: LiveServer, postgres_server: Any, name: str) -> None:
    login = {"user": "postgres", "database": "postgres"}
    found = answer(RawClient(server.port), TRANSCRIPTS[name], **login)
    assert found == answer(SocketClient(postgres_server.dsn), TRANSCRIPTS[name], **login)


def test_prepared_statements_are_listed(server: LiveServer, postgres_server: Any) -> None:
    sql = (
        "SELECT name, statement, parameter_types::text[], from_sql, prepare_time <= now() FROM pg_prepared_statements "
        "ORDER BY name"
    )
    found = []
    for to in (f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", postgres_server.dsn):
        with psycopg.connect(to, autocommit=True) as connection:
            connection.execute("PREPARE a (int, numeric, timestamptz, text) AS SELECT $1, $2, $3, $4")
            connection.execute("PREPARE b AS SELECT 1")
            connection.execute("SELECT %s::bigint", [3], prepare=True)
            rows = connection.execute(sql).fetchall()
            connection.execute("DEALLOCATE a")
            found.append([rows, connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()])
    assert found[0] == found[1]
