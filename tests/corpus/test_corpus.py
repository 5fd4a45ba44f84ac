"""Statements over a richer schema answer as a real PostgreSQL does, in three ways, or are listed with their reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.clients.live_server import LiveServer
from tests.corpus import world
from tests.corpus.compare import WAYS, Client
from tests.corpus.statements import BY_HAND, CLASSES, KNOWN, different
from tests.services.postgres import PostgresServer

pytestmark = pytest.mark.postgres

_DOCUMENT = Path(__file__).parents[2] / "docs" / "sql" / "postgresql.md"
_CLASSES_MAX = 40


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
        admin.execute("CREATE DATABASE corpus")
    dsn = postgres_server.database_dsn("corpus")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        world.add_tables(connection)
    client = Client(dsn)
    yield client
    client.close()


@pytest.mark.parametrize("way", WAYS)
def test_statements_written_by_hand_are_answered_as_postgresql_answers_them(
    ours: Client, theirs: Client, way: str
) -> None:
    found = different(BY_HAND, ours, theirs, way)
    assert {text: what for text, what in found.items() if text not in KNOWN} == {}


def test_the_classes_of_differences_are_documented() -> None:
    document = _DOCUMENT.read_text(encoding="utf-8")
    assert [title for title in CLASSES if title not in document] == []
    assert len(CLASSES) <= _CLASSES_MAX
