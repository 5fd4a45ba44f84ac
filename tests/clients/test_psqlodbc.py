"""psqlODBC's catalog calls, and its statements with parameters, beside a real PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.clients.client_world import POSTGRES_ROWS
from tests.clients.live_server import LiveServer
from tests.services.installed import installed
from tests.services.packages import library_path, unpacked
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres

_PACKAGES = ("odbc-postgresql", "libodbc2", "libodbcinst2", "libltdl7")
_PYODBC = "pyodbc==5.3.0"
_INSTALL_S, _RUN_S = 600, 120
_CALLS = Path(__file__).parent / "odbc" / "catalog_calls.py"


@pytest.fixture(scope="module")
def driver() -> tuple[str, dict[str, str]]:
    """The driver's library, and the environment in which it and pyodbc are found."""
    folder = unpacked("psqlodbc", _PACKAGES)
    (library,) = (folder / "usr" / "lib").rglob("psqlodbcw.so")
    module = installed(_PYODBC.replace("==", "-"), _install)
    return str(library), {"LD_LIBRARY_PATH": library_path(folder), "PYTHONPATH": str(module)}


def _install(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", folder, _PYODBC],
        capture_output=True, text=True, timeout=_INSTALL_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _answers(driver: tuple[str, dict[str, str]], port: int, database: str) -> dict[str, Any]:
    library, environment = driver
    done = subprocess.run(
        [sys.executable, _CALLS, library, "127.0.0.1", str(port), database],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=_RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def theirs(logical_postgres: LogicalPostgres) -> str:
    """A database with views like ours, and their indexes."""
    with psycopg.connect(logical_postgres.dsn, autocommit=True) as connection:
        connection.execute("CREATE DATABASE odbc")
        connection.execute("ALTER DATABASE odbc SET TimeZone = 'UTC'")
    with psycopg.connect(logical_postgres.dsn.replace("dbname=postgres", "dbname=odbc"), autocommit=True) as rows:
        rows.execute("CREATE SCHEMA sources; SET search_path = sources")
        rows.execute(POSTGRES_ROWS)
        for view, key in (("visits", "url"), ("typed", "id"), ("numbers", "n")):
            rows.execute(f"CREATE MATERIALIZED VIEW public.{view} AS SELECT * FROM sources.{view}")
            rows.execute(f"CREATE UNIQUE INDEX {view}_key ON public.{view} ({key}) NULLS NOT DISTINCT")
    return "odbc"


def test_the_answers_are_postgresqls(
    driver: tuple[str, dict[str, str]], server: LiveServer, logical_postgres: LogicalPostgres, theirs: str
) -> None:
    found = _answers(driver, server.port, "postgres")
    expected = _answers(driver, logical_postgres.port, theirs)
    assert [row[:4] for row in found["tables"]] == [["postgres", *row[1:4]] for row in expected["tables"]]
    for call in ("statistics", "columns"):
        found[call], expected[call] = ([_comparable(row) for row in rows[call]] for rows in (found, expected))
    del found["tables"], expected["tables"]
    assert found == expected
    assert [row[4] for row in found["statistics"]] == ["visits_key"]


def _comparable(row: list[str]) -> list[str]:
    """Without the database, whether a NULL may be there (our views know it) and oids."""
    return [value for place, value in enumerate(row) if place not in (0, 10, 22)]
