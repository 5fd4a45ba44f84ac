"""psql's \\df and \\da of built-in functions: as PostgreSQL 15 prints them, for those that pull queries have."""

from __future__ import annotations

import subprocess

import psycopg
import pytest

from tests.clients.live_server import LiveServer


def printed(server: LiveServer, command: str) -> list[str]:
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", server.conninfo, "-c", command],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        ("\\df initcap", ["pg_catalog|initcap|text|text|func"]),
        ("\\df split_part", ["pg_catalog|split_part|text|text, text, integer|func"]),
        ("\\df row_number", ["pg_catalog|row_number|bigint||window"]),
        ("\\da bool_and", ["pg_catalog|bool_and|boolean|boolean|boolean-and aggregate"]),
        ("\\df date_trunc", [
            "pg_catalog|date_trunc|interval|text, interval|func",
            "pg_catalog|date_trunc|timestamp with time zone|text, timestamp with time zone|func",
            "pg_catalog|date_trunc|timestamp with time zone|text, timestamp with time zone, text|func",
            "pg_catalog|date_trunc|timestamp without time zone|text, timestamp without time zone|func",
        ]),
        ("\\df lo_import", []),
    ],
)  # fmt: skip
def test_functions_are_listed(server: LiveServer, command: str, rows: list[str]) -> None:
    assert printed(server, command) == rows


def test_what_is_listed_is_there(server: LiveServer) -> None:
    """Functions of one float8, called."""
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        names = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronargs = 1 AND proargtypes::text = '701' AND prorettype = 701 "
            "AND prokind = 'f' AND oid NOT IN (SELECT oprcode FROM pg_operator) ORDER BY oid"
        ).fetchall()
        assert {"sqrt", "cbrt", "exp", "ln", "degrees", "radians", "trunc"} <= {name for (name,) in names}
        for (name,) in names:
            assert connection.execute(f"SELECT {name}(NULL::float8) IS NULL".encode()).fetchone() == (True,), name
