"""A materialized view here and in a real PostgreSQL, and what a statement does there: for views and indexes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.clients.live_server import LiveServer
from tests.services.postgres import PostgresServer

Connection = psycopg.Connection[tuple[Any, ...]]

_VISITS = "SELECT * FROM (VALUES ('./home', 30::bigint), ('./shop', 20), ('./cart', 10)) AS v (url, visits)"


@pytest.fixture
def theirs(postgres_server: PostgresServer) -> Iterator[Connection]:
    name = f"views_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(postgres_server.database_dsn(name), autocommit=True) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"CREATE MATERIALIZED VIEW visits AS {_VISITS}")
            yield connection
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        admin.execute("DROP ROLE IF EXISTS anna")


@pytest.fixture
def ours(own_server: LiveServer) -> Iterator[Connection]:
    with psycopg.connect(own_server.conninfo, autocommit=True) as connection:
        yield connection


def outcome(connection: Connection, text: str) -> Any:
    """Names, types and rows of a result, the command's tag, or SQLSTATE and message."""
    try:
        cursor = connection.execute(text)
    except psycopg.Error as error:
        return error.sqlstate, _same_words(error.diag.message_primary or "")
    if cursor.description is None:
        return cursor.statusmessage
    shown = [(each.name, each._ftype, each._fmod) for each in cursor.description]
    return shown, sorted(map(str, cursor.fetchall()))


def _same_words(message: str) -> str:
    return message.replace("materialized ", "").replace("view s.", "view ")  # a schema outside of the path
