"""A catalog and a views' file that do not belong together are refused before a row is removed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from catalog.store import Catalog
from mvserver.errors import SqlError
from mvserver.serving.engine import data_identity
from mvserver.serving.engine.database import Database
from spark_sinks.duckdb.ledger import identity
from spark_sinks.duckdb.ledger.ledger import create_tables
from tests.catalog.objects import query, relation


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[Catalog, duckdb.DuckDBPyConnection]]:
    """What a start opens, agreed."""
    catalog = Catalog.open(folder / "catalog.db")
    try:
        with Database.open(folder / "views.duckdb") as database, database.cursor() as cursor:
            data_identity.agree(catalog, cursor, folder)
            create_tables(cursor)
            yield catalog, cursor
    finally:
        catalog.close()


def _fill(folder: Path) -> str:
    """A view's query, in both files."""
    with _opened(folder) as (catalog, cursor):
        with catalog.transaction():
            source = catalog.relations.add(relation(catalog, "clicks"))
            made = query(source, catalog.relations.add(relation(catalog, "visits", "materialized view")))
            catalog.queries.add(made)
        cursor.execute(
            "INSERT INTO _ledger.subscribers VALUES ($1, 1, 'p', '{}', 0, true, NULL, NULL, NULL)", [made.id]
        )
        cursor.execute("CREATE TABLE _state.rows AS SELECT 42 AS x")
    return made.id


def _rows(folder: Path) -> list[tuple[int]]:
    with duckdb.connect(folder / "views.duckdb") as connection:
        return connection.execute("SELECT x FROM _state.rows").fetchall()


@pytest.mark.parametrize("how", ["missing", "empty", "another's", "another's, used"])
def test_a_catalog_that_does_not_know_the_rows_is_refused(tmp_path: Path, how: str) -> None:
    folder, other = tmp_path / "data", tmp_path / "other"
    _fill(folder)
    path = folder / "catalog.db"
    path.unlink()
    if how == "empty":
        path.touch()
    elif how.startswith("another's"):
        if how.endswith("used"):
            _fill(other)
        else:
            with _opened(other):
                pass
        shutil.copy(other / "catalog.db", path)
    for _ in range(2):  # and again, when the new catalog is there already
        with pytest.raises(SqlError) as raised, _opened(folder):
            pass
        assert raised.value.sqlstate == "F0000"
        assert "do not belong together" in raised.value.message
        assert "backup" in (raised.value.hint or "")
        assert "move views.duckdb" in (raised.value.hint or "")
    assert _rows(folder) == [(42,)]


def test_the_right_catalog_put_back_is_accepted(tmp_path: Path) -> None:
    _fill(tmp_path)
    content = (tmp_path / "catalog.db").read_bytes()
    (tmp_path / "catalog.db").unlink()
    with pytest.raises(SqlError), _opened(tmp_path):
        pass
    (tmp_path / "catalog.db").write_bytes(content)
    with _opened(tmp_path):
        pass
    assert _rows(tmp_path) == [(42,)]


def test_a_missing_views_file_takes_the_identity_of_the_catalog(tmp_path: Path) -> None:
    _fill(tmp_path)
    (tmp_path / "views.duckdb").unlink()
    for _ in range(2):
        with _opened(tmp_path) as (catalog, cursor):
            assert identity.read(cursor) == catalog.settings.get("data_identity")


@pytest.mark.parametrize("without", ["catalog", "views", "both"])
def test_a_directory_made_before_there_were_identities_is_accepted(tmp_path: Path, without: str) -> None:
    query_id = _fill(tmp_path)
    _forget(tmp_path, without)
    with _opened(tmp_path) as (catalog, cursor):
        assert identity.read(cursor) == catalog.settings.get("data_identity") is not None
        assert identity.kept_queries(cursor) == {query_id}
    assert _rows(tmp_path) == [(42,)]


def test_a_directory_without_identities_and_a_lost_catalog_is_refused(tmp_path: Path) -> None:
    _fill(tmp_path)
    _forget(tmp_path, "views")
    (tmp_path / "catalog.db").unlink()
    with pytest.raises(SqlError, match="do not belong together"), _opened(tmp_path):
        pass
    assert _rows(tmp_path) == [(42,)]


def _forget(folder: Path, what: str) -> None:
    if what in ("catalog", "both"):
        with sqlite3.connect(folder / "catalog.db") as connection:
            connection.execute("DELETE FROM settings")
        connection.close()
    if what in ("views", "both"):
        with duckdb.connect(folder / "views.duckdb") as connection:
            connection.execute("DROP TABLE _ledger.data_identity")
