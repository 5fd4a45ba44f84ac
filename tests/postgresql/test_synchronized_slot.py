"""A slot that PostgreSQL 17 and later keeps on a standby, too: who reads by it goes on behind the fail-over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgresql.running import wait_until
from tests.postgresql.test_fail_over import folder, primary  # noqa: F401 - fixtures
from tests.postgresql.test_slot_names import NamedRun
from tests.services.postgres import LogicalPostgres, free_port

pytestmark = pytest.mark.postgres
SYNCED = "SELECT 1 FROM pg_replication_slots WHERE slot_name = 'kept' AND synced AND NOT temporary"
FLUSHED = "SELECT pg_current_wal_flush_lsn()::text"


def test_a_reading_goes_on_by_a_slot_that_the_standby_keeps(
    primary: LogicalPostgres,  # noqa: F811
    folder: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    with primary.connect() as source:
        if source.info.server_version < 170_000:
            pytest.skip("slots are synchronized from PostgreSQL 17 on")
    primary.stop()
    standby = following(primary, folder / "standby")
    primary.start()
    with primary.connect() as source:
        source.execute("SELECT pg_create_physical_replication_slot('standby', true)")
        source.execute("SELECT pg_create_logical_replication_slot('kept', 'pgoutput', false, false, true)")
        standby.start()
        run = NamedRun(primary, "t", tmp_path / "work", "kept")
        run.settle()
        with standby.connect() as follower:
            numbers = iter(range(1000, 100_000))
            wait_until(lambda: is_synchronized(run, source, follower, next(numbers)))
            source.execute("UPDATE t SET n = 7 WHERE id = 1; DELETE FROM t WHERE id = 2")
            (end,) = source.execute(FLUSHED).fetchone() or ("",)
            replayed = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            wait_until(lambda: follower.execute(replayed, (end,)).fetchone() == (True,))
    primary.stop("immediate")
    standby.stop()
    standby.port = primary.port
    standby.start()
    try:
        standby.promote()
        with standby.connect() as source:
            source.execute("INSERT INTO t VALUES (5000, 'behind', 1)")
            wait_until(lambda: run.reader.health.look(run.position).state == "ok")
            run.catch_up()
            run.same(source)
            run.reader.forget()
            assert source.execute("SELECT slot_name FROM pg_replication_slots").fetchall() == [("kept",)]
            assert source.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)
    finally:
        standby.stop("immediate")
        primary.start()  # which its fixture stops


def following(primary: LogicalPostgres, data: Path) -> LogicalPostgres:  # noqa: F811
    """At an address of its own, and with all that the synchronization of slots asks for."""
    standby = primary.standby(data)
    standby.port = free_port()
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write(
            f"primary_conninfo = '{primary.dsn}'\nprimary_slot_name = 'standby'\nhot_standby_feedback = on\n"
        )
    return standby


def is_synchronized(
    run: NamedRun, source: psycopg.Connection[Any], follower: psycopg.Connection[Any], number: int
) -> bool:
    """The slot has to move on for it, and the log must say which transactions run."""
    source.execute("INSERT INTO t VALUES (%s, 'v', 0)", (number,))
    run.catch_up()
    run.release()
    source.execute("SELECT pg_log_standby_snapshot()")
    try:
        follower.execute("SELECT pg_sync_replication_slots()")
    except psycopg.errors.ObjectNotInPrerequisiteState:  # it has not received all that the slot is behind
        return False
    return follower.execute(SYNCED).fetchone() is not None
