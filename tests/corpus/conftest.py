"""A server of ours and a real PostgreSQL with the same rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from tests.clients.live_server import LiveServer
from tests.corpus import world
from tests.corpus.compare import Client
from tests.services.postgres import PostgresServer


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = LiveServer(tmp_path_factory.mktemp("corpus"))
    world.add_views(server)
    server.start()
    client = Client(server.conninfo)
    yield client
    client.close()
    server.stop()


@pytest.fixture(scope="module")
def theirs(postgres_server: PostgresServer) -> Iterator[Client]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        name = f"corpus_{uuid.uuid4().hex}"
        admin.execute(f"CREATE DATABASE {name}".encode())
    dsn = postgres_server.database_dsn(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        world.add_tables(connection)
    client = Client(dsn)
    yield client
    client.close()
