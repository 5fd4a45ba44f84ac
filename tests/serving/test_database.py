"""The owner of the DuckDB file: opens, refuses the outside world, sets damaged files aside."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

from mvserver.errors import SqlError
from mvserver.serving.engine.database import Database


def test_opens_quickly_with_its_schemas_and_keeps_rows(tmp_path: Path) -> None:
    started = time.perf_counter()
    with Database.open(tmp_path / "data" / "views.duckdb") as database:
        assert time.perf_counter() - started < 1.0
        assert database.set_aside is None
        assert database.name == "views"
        database.cursor().execute("CREATE TABLE _state.t AS SELECT 42 AS x")
    with Database.open(tmp_path / "data" / "views.duckdb") as again:
        cursor = again.cursor()
        assert cursor.execute("SELECT x FROM _state.t").fetchall() == [(42,)]
        found = cursor.execute("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'views'").fetchall()
        assert {("_views",), ("_state",), ("_ledger",)} <= set(found)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/never.csv'",
        "ATTACH '/tmp/never.duckdb' AS never",
        "INSTALL httpfs",
        "SET enable_external_access = true",
    ],
)
def test_external_access_is_off_for_good(tmp_path: Path, statement: str) -> None:
    with Database.open(tmp_path / "views.duckdb") as database, pytest.raises(duckdb.Error):
        database.cursor().execute(statement)


@pytest.mark.parametrize("damage", ["garbage", "wal"])
def test_a_damaged_file_is_set_aside_with_its_log(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "views.duckdb"
    with Database.open(path) as database:
        database.cursor().execute("CREATE TABLE _state.t AS SELECT 1 AS x")
    log = path.with_name("views.duckdb.wal")
    content = path.read_bytes()
    path.write_bytes(b"\x5a" * len(content) if damage == "garbage" else content[: len(content) // 2])
    log.write_bytes(b"not a log")
    with Database.open(path) as fresh:
        assert fresh.set_aside is not None
        assert fresh.set_aside.name.startswith("views.duckdb.damaged-")
        assert fresh.set_aside.exists()
        assert fresh.set_aside.with_name(fresh.set_aside.name + ".wal").read_bytes() == b"not a log"
        tables = fresh.cursor().execute("SELECT count(*) FROM duckdb_tables() WHERE schema_name = '_state'").fetchone()
        assert tables == (0,)


def test_a_damaged_log_is_set_aside_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "views.duckdb"
    code = (
        "import os\nfrom pathlib import Path\nfrom mvserver.serving.engine.database import Database\n"
        f"cursor = Database.open(Path({str(path)!r})).cursor()\n"
        "cursor.execute('CREATE TABLE _state.t AS SELECT * FROM range(1000)')\n"
        "cursor.execute('INSERT INTO _state.t SELECT * FROM range(1000)')\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    log = path.with_name("views.duckdb.wal")
    content = bytearray(log.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 40] = bytes(255 - byte for byte in content[middle : middle + 40])
    log.write_bytes(content)
    with Database.open(path) as fresh:
        assert fresh.set_aside is not None
        assert fresh.set_aside.with_name(fresh.set_aside.name + ".wal").read_bytes() == content


def test_a_file_held_by_another_process_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "views.duckdb"
    Database.open(path).close()
    code = (
        f"import duckdb, sys\nconnection = duckdb.connect({str(path)!r})\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SqlError, match=r"58030: .*Could not set lock"):
            Database.open(path)
        assert path.exists()
        assert not list(tmp_path.glob("*.damaged-*"))
    finally:
        holder.communicate(b"")


def test_close_twice_and_no_cursor_after(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "views.duckdb")
    database.close()
    database.close()
    with pytest.raises(duckdb.ConnectionException):
        database.cursor()


def test_closing_interrupts_what_is_at_work(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "views.duckdb")
    cursor = database.cursor()
    begun = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        begun.set()
        try:
            cursor.execute("SELECT count(*) FROM range(100_000_000_000) t(i) WHERE i % 7 = 1").fetchall()
        except duckdb.Error as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(10)
    database.close()
    thread.join(10)
    assert len(errors) == 1
    with pytest.raises(duckdb.ConnectionException):
        database.cursor()
