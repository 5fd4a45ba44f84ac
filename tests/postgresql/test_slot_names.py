"""Slots that a statement names: made or taken up, whose they are, and what cannot be read by them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql.client import PostgresClient
from spark_sinks.postgresql.slot_names import check_name
from spark_sinks.postgresql.source import PostgresReader
from tests.postgresql.running import wait_until
from tests.postgresql.test_client import options_of
from tests.postgresql.test_source import Run
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres
Source = psycopg.Connection[Any]


class NamedRun(Run):
    """By a slot of its own name."""

    def __init__(self, server: LogicalPostgres, table: str, work: Path, slot: str, *, keyed: bool = True) -> None:
        self.slot = slot
        super().__init__(server, table, work, keyed=keyed)

    def opened(self) -> PostgresReader:
        return PostgresReader(
            "pg", options_of(self.server), self.table, self.work, keyed=self.keyed, timeout_s=5.0,
            record_bytes_max=1_000_000, slot=self.slot,
        )  # fmt: skip


@pytest.fixture
def source(logical_postgres: LogicalPostgres) -> Iterator[Source]:
    with logical_postgres.connect() as made:
        made.execute("DROP TABLE IF EXISTS named")
        made.execute("CREATE TABLE named (id int PRIMARY KEY, words text)")
        made.execute("INSERT INTO named SELECT i, 'before' FROM generate_series(1, 20) i")
        yield made
        wait_until(lambda: made.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone() is None)
        made.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        assert publications(made) == []
        made.execute("DROP TABLE named")


@pytest.fixture
def slot() -> str:
    return f"theirs_{uuid4().hex[:8]}"


def client_of(server: LogicalPostgres) -> PostgresClient:
    return PostgresClient("pg", options_of(server), timeout_s=5.0)


def publications(source: Source) -> list[Any]:
    return source.execute("SELECT pubname FROM pg_publication").fetchall()


def slots(source: Source) -> list[str]:
    return [name for (name,) in source.execute("SELECT slot_name FROM pg_replication_slots ORDER BY 1")]


def make(source: Source, slot: str, plugin: str = "pgoutput") -> None:
    source.execute("SELECT pg_create_logical_replication_slot(%s, %s)", (slot, plugin))


def folder(tmp_path: Path) -> Path:
    return tmp_path / f"w{uuid4().hex}"


@pytest.mark.parametrize(
    ("name", "words"),
    [("Mine", "invalid character"), ("a-b", "invalid character"), ("", "invalid character"), ("é", "invalid character"),
     ("x" * 64, "too long"), ("mvserver_1", "reserved")],
)  # fmt: skip
def test_names(name: str, words: str) -> None:
    with pytest.raises(SqlError, match=words) as error:
        check_name(name)
    assert error.value.sqlstate == sqlstates.INVALID_NAME


def test_a_slot_that_is_not_there_is_made_and_goes_with_its_reader(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, slot: str
) -> None:
    run = NamedRun(logical_postgres, "named", folder(tmp_path), slot)
    run.settle()
    run.catch_up()
    assert slots(source) == [slot]
    source.execute("UPDATE named SET words = 'changed' WHERE id < 5; DELETE FROM named WHERE id = 20")
    run.restart()
    run.catch_up()
    run.same(source)
    assert dict(client_of(logical_postgres).describe_entity("named").details)[f"slot {slot}"].startswith("read,")
    run.reader.forget()
    assert slots(source) == []


def test_a_slot_that_was_there_is_taken_up_and_stays(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, slot: str
) -> None:
    """Its changes from before the publication are none of the reader's."""
    make(source, slot)
    source.execute("UPDATE named SET words = 'old' WHERE id < 10")
    run = NamedRun(logical_postgres, "named", folder(tmp_path), slot)
    run.settle()
    source.execute("UPDATE named SET words = 'new' WHERE id < 5; INSERT INTO named VALUES (100, 'new')")
    run.restart()  # before anything was confirmed: the slot still stands where it stood
    run.catch_up()
    run.same(source)
    run.release()
    source.execute("DELETE FROM named WHERE id = 1")
    run.restart()
    run.catch_up()
    run.same(source)
    run.reader.forget()
    assert slots(source) == [slot]
    again = NamedRun(logical_postgres, "named", folder(tmp_path), slot, keyed=False)
    again.settle()
    again.catch_up()
    source.execute("INSERT INTO named VALUES (101, 'again')")
    again.catch_up()
    assert [record["op"] for record in again.records] == ["r"] * 20 + ["c"]
    again.reader.forget()
    assert slots(source) == [slot]


def test_a_transaction_that_was_there_before_counts_once(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, slot: str
) -> None:
    """It has written before the publication was there, and commits behind the slot's beginning."""
    make(source, slot)
    run = NamedRun(logical_postgres, "named", folder(tmp_path), slot)
    with logical_postgres.connect() as other:
        other.execute("BEGIN")
        other.execute("INSERT INTO named VALUES (200, 'long')")
        beginning = threading.Thread(target=run.settle)
        beginning.start()
        wait_until(lambda: publications(source) != [])
        other.execute("INSERT INTO named VALUES (201, 'long')")
        other.execute("COMMIT")
    beginning.join()
    source.execute("INSERT INTO named VALUES (202, 'after')")
    run.catch_up()
    run.same(source)
    run.reader.forget()


def test_two_readers_have_no_slot_in_common(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, slot: str
) -> None:
    run = NamedRun(logical_postgres, "named", folder(tmp_path), slot)
    run.settle()
    other = NamedRun(logical_postgres, "named", folder(tmp_path), slot, keyed=False)
    with pytest.raises(SqlError, match="is used by another query") as error:
        other.settle()
    assert error.value.sqlstate == sqlstates.OBJECT_IN_USE
    other.reader.forget()
    source.execute("INSERT INTO named VALUES (300, 'mine')")
    run.catch_up()
    run.same(source)
    run.reader.forget()
    assert slots(source) == []


@pytest.mark.parametrize("kind", ["plugin", "physical", "database", "temporary", "active"])
def test_slots_that_cannot_be_read(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, slot: str, kind: str
) -> None:
    run = NamedRun(logical_postgres, "named", folder(tmp_path), slot)
    state, words = sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, ""
    reader = NamedRun(logical_postgres, "named", folder(tmp_path / "elsewhere"), slot)
    if kind == "plugin":
        make(source, slot, "test_decoding")
        words = "Its plug-in is test_decoding."
    elif kind == "physical":
        source.execute("SELECT pg_create_physical_replication_slot(%s)", (slot,))
        words = "It is a physical one."
    elif kind == "database":
        source.execute("CREATE DATABASE elsewhere")
        with psycopg.connect(logical_postgres.dsn, dbname="elsewhere", autocommit=True) as other:
            make(other, slot)
        words = "It is one of another database."
    elif kind == "temporary":
        source.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput', true)", (slot,))
        words = "It is a temporary one."
    else:
        make(source, slot)
        reader.settle()  # as if by another server
        reader.catch_up()
        state, words = sqlstates.OBJECT_IN_USE, "Another process reads it."
    for attempt in (run.settle, lambda: client_of(logical_postgres).check_reading(slot, is_read=False)):
        with pytest.raises(SqlError) as error:
            attempt()
        assert (error.value.sqlstate, error.value.detail) == (state, words)
    run.reader.forget()
    reader.reader.forget()
    assert slots(source) == [slot]
    if kind == "temporary":
        source.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
    if kind == "database":
        with psycopg.connect(logical_postgres.dsn, dbname="elsewhere", autocommit=True) as other:
            other.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
        source.execute("DROP DATABASE elsewhere")


def test_a_slot_that_somebody_else_moves_fails_its_reader(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, slot: str
) -> None:
    make(source, slot)
    run = NamedRun(logical_postgres, "named", folder(tmp_path), slot)
    run.settle()
    run.catch_up()
    run.reader.close()
    source.execute("INSERT INTO named VALUES (400, 'missed')")
    wait_until(lambda: source.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone() is None)
    source.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())", (slot,))
    run.reader = run.opened()
    assert "is ahead of the query" in run.stops().message
    run.position = {"start": "earliest"}
    run.rows.clear()
    run.settle()
    run.catch_up()
    run.same(source)
    run.reader.forget()


def test_a_slot_that_was_dropped_is_made_for_a_view_that_begins_anew(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, slot: str
) -> None:
    make(source, slot)
    run = NamedRun(logical_postgres, "named", folder(tmp_path), slot)
    run.settle()
    run.catch_up()
    run.reader.close()
    wait_until(lambda: source.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone() is None)
    source.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
    run.reader = run.opened()
    assert "does not exist any more" in run.stops().message
    run.position = {"start": "earliest"}
    run.settle()
    run.catch_up()
    run.same(source)
    run.reader.forget()
    assert slots(source) == []


def test_what_a_killed_server_has_left_goes_by_its_note(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, slot: str
) -> None:
    """Nobody knows the statement any more, nor is there the reader's folder."""
    run = NamedRun(logical_postgres, "named", folder(tmp_path), slot)
    run.settle()
    run.reader.close()
    left = Run(logical_postgres, "named", run.work, keyed=True).reader
    assert left.slot == slot
    left.forget()
    assert slots(source) == []
    assert list(tmp_path.glob("*.slot")) == []
