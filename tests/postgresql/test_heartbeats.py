"""Slots of tables that do not change, on servers with much to do: they let go of the log, and nothing is written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgresql.running import Source, running
from tests.postgresql.test_source import WITHIN_S, Run
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres
CONFIRMED = "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
# The files of the log, and those before the oldest place from which a slot would be decoded.
FILES = "SELECT count(*) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'"
HELD = "SELECT pg_current_wal_lsn() - restart_lsn FROM pg_replication_slots WHERE slot_name = %s"
BUSY_ROWS = 20_000  # some 20 MB of the log
FILE_BYTES = 16 * 1024 * 1024


@pytest.fixture
def quiet(own_postgres: LogicalPostgres) -> Iterator[Source]:
    """A table of which nothing comes, beside a busy table and a busy database."""
    with own_postgres.connect() as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, v text, n int); INSERT INTO t VALUES (1, 'here', 1)")
        made.execute("CREATE TABLE busy (id int, v text)")
        made.execute("CREATE DATABASE other")
        yield made
        made.execute("DROP TABLE t; DROP TABLE busy")
        made.execute("DROP DATABASE other")


def number(source: Source, question: str, slot: str = "") -> int:
    row = source.execute(question, (slot,) if slot else None).fetchone()
    assert row is not None
    return int(row[0])


def goes_on(run: Run) -> None:
    """As a pipeline does without records: it looks, takes the end of the log as a batch, and releases it."""
    health = run.reader.health.look(run.position)
    assert health.state == "ok", health.cause
    while run.step():
        pass
    run.release()
    run.reader.wait(0.05)


def let_go(run: Run, source: Source, beyond: int) -> None:
    """The slot is confirmed beyond that place, and decoding would begin behind it."""
    slot = run.reader.slot
    deadline = time.monotonic() + WITHIN_S
    while number(source, CONFIRMED, slot) < beyond or number(source, HELD, slot) > FILE_BYTES:
        assert time.monotonic() < deadline, (number(source, CONFIRMED, slot), beyond, number(source, HELD, slot))
        source.execute("CHECKPOINT")  # it writes which transactions run, without which no server moves that place
        goes_on(run)


def work(connection: Source, name: str = "busy") -> int:
    """Returns where the log ends behind it."""
    connection.execute(f"INSERT INTO {name} SELECT i, repeat('x', 1000) FROM generate_series(1, {BUSY_ROWS}) i")
    connection.execute(f"TRUNCATE {name}")
    return number(connection, "SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")


@pytest.mark.parametrize("place", ["table", "database"])
def test_a_table_at_rest_holds_back_no_log_of_a_busy_server(
    own_postgres: LogicalPostgres, quiet: Source, tmp_path: Path, place: str
) -> None:
    where = own_postgres.dsn if place == "table" else own_postgres.dsn.replace("dbname=postgres", "dbname=other")
    with running(own_postgres, tmp_path, "t") as run, psycopg.connect(where, autocommit=True) as elsewhere:
        if place == "database":
            elsewhere.execute("CREATE TABLE busy (id int, v text)")
        run.catch_up()
        run.release()
        start = number(quiet, CONFIRMED, run.reader.slot)
        for _ in range(3):
            before = work(elsewhere)
            let_go(run, quiet, before)
        assert number(quiet, CONFIRMED, run.reader.slot) > start + 2 * FILE_BYTES
        # Files that are needed no more are removed or are used again; with the slot where it was there were more.
        written = (number(quiet, CONFIRMED, run.reader.slot) - start) // FILE_BYTES
        quiet.execute("SELECT pg_switch_wal(); CHECKPOINT")
        oldest = quiet.execute("SELECT min(name) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'").fetchone()
        assert oldest is not None
        first = quiet.execute("SELECT pg_walfile_name('0/0'::pg_lsn + %s)", (start,)).fetchone()
        assert first is not None
        assert oldest[0] > first[0], (oldest, first, written)
        # Nothing of the table is passed over by that: neither what comes now nor what comes while nobody reads.
        quiet.execute("UPDATE t SET v = 'changed'")
        run.reader.close()
        work(elsewhere)
        quiet.execute("INSERT INTO t VALUES (2, 'while away', 2)")
        work(elsewhere)
        run.restart()
        run.catch_up()
        run.same(quiet)
        let_go(run, quiet, run.position["lsn"])
        quiet.execute("DELETE FROM t WHERE id = 1")
        run.catch_up()
        run.same(quiet)


def test_a_transaction_that_is_under_way_is_not_passed_over(
    own_postgres: LogicalPostgres, quiet: Source, tmp_path: Path
) -> None:
    """It has written before the place that is confirmed, and commits behind it."""
    with running(own_postgres, tmp_path, "t") as run, own_postgres.connect() as writer:
        run.catch_up()
        with writer.transaction():
            writer.execute("INSERT INTO t VALUES (7, 'early', 7)")
            before = work(quiet)
            deadline = time.monotonic() + WITHIN_S
            while number(quiet, CONFIRMED, run.reader.slot) < before:
                assert time.monotonic() < deadline
                goes_on(run)
            run.restart()
            goes_on(run)
        run.catch_up()
        run.same(quiet)
