from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.clients.client_world import Address, postgres_world
from tests.clients.dialect_rows import add_table, add_view
from tests.clients.live_server import LiveServer, with_views
from tests.services.postgres import PostgresServer


@pytest.fixture(scope="module", autouse=True)
def _prepared(copied_system_catalog: None) -> None:
    """Most tests here open a database of their own."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Shared by all client tests: they leave its views as they found them."""
    made = with_views(LiveServer(tmp_path_factory.mktemp("live")))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[LiveServer]:
    """For tests that change definitions or rows."""
    made = with_views(LiveServer(tmp_path))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def ours(server: LiveServer) -> Address:
    return Address("127.0.0.1", server.port)


@pytest.fixture(scope="session")
def theirs(postgres_server: PostgresServer) -> Address:
    """What is expected of ours: a real PostgreSQL with the same rows."""
    return postgres_world(postgres_server.dsn, "clients")


# --- for comparisons of single SELECTs: the rows of dialect_rows, in a view of ours and a table of PostgreSQL's ---
@pytest.fixture(scope="session")
def our_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[Any]]:
    server = LiveServer(tmp_path_factory.mktemp("shop"))
    add_view(server)
    server.start()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        yield connection
    server.stop()


@pytest.fixture(scope="session")
def their_shop(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE shop")
    with psycopg.connect(postgres_server.database_dsn("shop"), autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        add_table(connection)
        yield connection
