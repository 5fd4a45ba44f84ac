"""COMMENT ON, as psql and the functions of PostgreSQL show it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.clients.live_server import LiveServer


@pytest.fixture
def connection(own_server: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(own_server.conninfo, autocommit=True, connect_timeout=10) as made:
        yield made


def value(connection: psycopg.Connection[Any], sql: str) -> Any:
    row = connection.execute(sql.encode()).fetchone()
    assert row is not None
    return row[0]


def test_comments_are_shown_and_go_with_their_objects(
    own_server: LiveServer, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("COMMENT ON MATERIALIZED VIEW visits IS 'how often a page was seen'")
    connection.execute("COMMENT ON COLUMN visits.url IS 'the page''s address'")
    connection.execute("COMMENT ON SCHEMA public IS 'for all'")
    connection.execute("COMMENT ON DATABASE postgres IS 'the first one'")
    assert value(connection, "SELECT obj_description('visits'::regclass, 'pg_class')") == "how often a page was seen"
    assert value(connection, "SELECT col_description('visits'::regclass, 1)") == "the page's address"
    assert (
        value(connection, "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'postgres'")
        == "the first one"
    )
    shown = subprocess.run(
        ["psql", "-X", "-A", "-t", own_server.conninfo, "-c", r"\d+ visits", "-c", r"\dm+", "-c", r"\dn+ public"],
        capture_output=True, text=True, check=True, timeout=30,
    ).stdout  # fmt: skip
    assert "the page's address" in shown
    assert "how often a page was seen" in shown
    assert "for all" in shown
    connection.execute("COMMENT ON COLUMN visits.url IS NULL")
    assert value(connection, "SELECT col_description('visits'::regclass, 1)") is None
    connection.execute("DROP MATERIALIZED VIEW visits CASCADE")
    assert value(connection, "SELECT count(*) FROM pg_description WHERE description LIKE 'how often%'") == 0


def test_a_comment_in_a_transaction_is_taken_back_with_it(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("COMMENT ON MATERIALIZED VIEW visits IS 'x'")
    assert value(connection, "SELECT obj_description('visits'::regclass)") is None


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("COMMENT ON MATERIALIZED VIEW nosuch IS 'x'", errors.UndefinedTable),
        ("COMMENT ON STREAM visits IS 'x'", errors.WrongObjectType),
        ("COMMENT ON COLUMN visits.nosuch IS 'x'", errors.UndefinedColumn),
        ("COMMENT ON COLUMN visits IS 'x'", errors.SyntaxError),
        ("COMMENT ON STORE nosuch IS 'x'", errors.UndefinedObject),
        ("COMMENT ON INDEX visits_key IS 'x'", errors.FeatureNotSupported),
        ("COMMENT ON MATERIALIZED VIEW visits IS 7", errors.SyntaxError),
    ],
)
def test_wrong_comments(connection: psycopg.Connection[Any], statement: str, error: type[psycopg.Error]) -> None:
    with pytest.raises(error):
        connection.execute(statement.encode())
