"""The write-ahead log is folded into the file by its length, and not at each commit that touches many rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from mvserver.serving.engine.database import Database
from spark_sinks.duckdb.ledger.write_ahead_log import WriteAheadLog


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "views.duckdb") as opened:
        yield opened


def _log_bytes(folder: Path) -> int:
    log = folder / "views.duckdb.wal"
    return log.stat().st_size if log.exists() else 0


def _scattered(cursor: duckdb.DuckDBPyConnection) -> None:
    """One row changes in each 2,048 of a table: what DuckDB takes for as many whole columns of 2,048."""
    cursor.execute("CREATE TABLE t AS SELECT i AS k, 0 AS a, 0 AS b FROM range(4_000_000) AS r(i)")
    cursor.execute("CHECKPOINT")
    cursor.execute("UPDATE t SET a = 1, b = 1 WHERE k % 2048 = 0")


def test_a_commit_of_few_rows_in_many_places_leaves_the_file_alone(database: Database, tmp_path: Path) -> None:
    with database.cursor() as cursor:
        _scattered(cursor)
        WriteAheadLog(cursor).bound()
        assert _log_bytes(tmp_path) > 0
        assert cursor.execute("SELECT sum(a) FROM t").fetchall() == [(1954,)]


def test_a_long_log_is_folded_in(database: Database, tmp_path: Path) -> None:
    with database.cursor() as cursor:
        _scattered(cursor)
        length = _log_bytes(tmp_path)
        WriteAheadLog(cursor, bytes_max=length + 1).bound()
        assert _log_bytes(tmp_path) == length
        WriteAheadLog(cursor, bytes_max=length).bound()
        assert _log_bytes(tmp_path) < length
        assert cursor.execute("SELECT sum(a) FROM t").fetchall() == [(1954,)]


def test_another_transaction_that_writes_puts_it_off(database: Database, tmp_path: Path) -> None:
    with database.cursor() as cursor, database.cursor() as other:
        _scattered(cursor)
        length = _log_bytes(tmp_path)
        other.execute("BEGIN")
        other.execute("CREATE TABLE _state.u (i INTEGER)")
        WriteAheadLog(cursor, bytes_max=length).bound()
        assert _log_bytes(tmp_path) == length
        other.execute("ROLLBACK")
        WriteAheadLog(cursor, bytes_max=length).bound()
        assert _log_bytes(tmp_path) < length


def test_a_reader_with_an_old_snapshot_does_not_fail_the_writer(database: Database, tmp_path: Path) -> None:
    with database.cursor() as cursor, database.cursor() as reader:
        _scattered(cursor)
        length = _log_bytes(tmp_path)
        reader.execute("BEGIN")
        assert reader.execute("SELECT sum(a) FROM t").fetchall() == [(1954,)]
        cursor.execute("UPDATE t SET a = 2 WHERE k = 0")
        WriteAheadLog(cursor, bytes_max=1).bound()
        assert _log_bytes(tmp_path) > length
        assert reader.execute("SELECT sum(a) FROM t").fetchall() == [(1954,)]
        reader.execute("COMMIT")
        assert reader.execute("SELECT sum(a) FROM t").fetchall() == [(1955,)]
        WriteAheadLog(cursor, bytes_max=1).bound()
        assert _log_bytes(tmp_path) == 0


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Of which so many bytes are ``free``."""
    found = SimpleNamespace(free=0)
    monkeypatch.setattr("shutil.disk_usage", lambda path: found)
    return found


def test_a_log_that_finds_no_room_on_the_disk_stays(database: Database, tmp_path: Path, disk: SimpleNamespace) -> None:
    with database.cursor() as cursor:
        cursor.execute("CREATE TABLE t AS SELECT range AS i FROM range(100_000)")
        length = _log_bytes(tmp_path)
        log = WriteAheadLog(cursor, bytes_max=length)
        log.bound()
        assert _log_bytes(tmp_path) == length
        disk.free = 2 * length
        log.bound()
        assert _log_bytes(tmp_path) < length


def test_a_log_that_is_long_needs_room_for_itself_alone(
    database: Database, tmp_path: Path, disk: SimpleNamespace
) -> None:
    """Else it would grow until the disk is full, although there was room all the time."""
    with database.cursor() as cursor:
        cursor.execute("CREATE TABLE t AS SELECT range AS i FROM range(3_000_000)")
        cursor.execute("CHECKPOINT")
        cursor.execute("UPDATE t SET i = i + 1 WHERE i < 100_000")
        length = disk.free = _log_bytes(tmp_path)
        log = WriteAheadLog(cursor, bytes_max=length // 2)
        log.bound()
        assert _log_bytes(tmp_path) == length
        WriteAheadLog(cursor, bytes_max=length // 5).bound()
        assert _log_bytes(tmp_path) < length


def test_in_memory_there_is_no_log() -> None:
    with duckdb.connect() as connection:
        WriteAheadLog(connection, bytes_max=0).bound()
        assert connection.execute("SELECT path FROM duckdb_databases() LIMIT 1").fetchall()
