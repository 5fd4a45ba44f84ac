from __future__ import annotations

import psycopg
import pytest

from tests.services.postgres import PostgresServer


@pytest.mark.postgres
def test_a_real_server_answers(postgres_server: PostgresServer) -> None:
    assert postgres_server.version == 18
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("CREATE DATABASE other")
    with psycopg.connect(postgres_server.database_dsn("other")) as connection:
        assert connection.execute("SELECT current_database(), 5 / 2").fetchone() == ("other", 2)
