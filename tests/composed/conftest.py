"""A server of ours and a real PostgreSQL with the rows that composed queries are asked over."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from tests.clients.live_server import LiveServer
from tests.composed import world
from tests.composed.servers import Pair, prepare
from tests.services.postgres import PostgresServer


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer) -> Iterator[Pair]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        name = f"composed_{uuid.uuid4().hex}"
        admin.execute(f"CREATE DATABASE {name}".encode())
    theirs = postgres_server.database_dsn(name)
    with psycopg.connect(theirs, autocommit=True) as connection:
        world.add_to_theirs(connection)
    server = LiveServer(tmp_path_factory.mktemp("composed"))
    world.add_to_ours(server)
    server.start()
    prepare(server.conninfo, theirs)
    both = Pair(server.conninfo, theirs)
    yield both
    both.close()
    server.stop()
