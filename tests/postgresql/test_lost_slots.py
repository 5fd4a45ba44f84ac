"""Slots that a server gives up by itself: who read them is told why, once, and begins anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgresql.running import Source, running, wait_until
from tests.postgresql.test_heartbeats import work
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres


@pytest.fixture
def source(own_postgres: LogicalPostgres) -> Iterator[Source]:
    with own_postgres.connect() as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, v text, n int); INSERT INTO t VALUES (1, 'here', 1)")
        made.execute("CREATE TABLE busy (id int, v text)")
        yield made
        made.execute("ALTER SYSTEM RESET ALL")
        made.execute("SELECT pg_reload_conf()")
        made.execute("DROP TABLE t, busy")


REMOVED = "The server has removed log that was not read yet, as its max_slot_wal_keep_size says."
UNREAD = "Nobody has read it for longer than the server's idle_replication_slot_timeout."


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        pytest.param("max_slot_wal_keep_size = '16MB'", REMOVED, id="removed"),
        pytest.param("idle_replication_slot_timeout = '1s'", UNREAD, id="unread"),
    ],
)
def test_a_slot_that_the_server_gives_up_is_said_with_the_reason(
    own_postgres: LogicalPostgres, source: Source, tmp_path: Path, setting: str, why: str
) -> None:
    with running(own_postgres, tmp_path, "t") as run:
        run.catch_up()
        run.release()
        run.reader.close()
        source.execute("INSERT INTO t VALUES (2, 'unread', 2)")
        source.execute(f"ALTER SYSTEM SET {setting}")
        source.execute("SELECT pg_reload_conf()")
        lost = "SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = %s"

        def is_lost() -> bool:
            work(source)
            source.execute("SELECT pg_switch_wal()")
            source.execute("CHECKPOINT")
            return source.execute(lost, (run.reader.slot,)).fetchone() == (True,)

        wait_until(is_lost)
        run.reader = run.opened()
        health = run.reader.health.look(run.position)
        message = f'replication slot "{run.reader.slot}" of store "pg" is lost'
        assert (health.state, health.cause) == ("failed", f"{message}: {why}")
        for _ in range(2):
            error = run.stops()
            assert (error.sqlstate, error.message, error.detail) == ("55000", message, why)
        run.position, run.rows = {"start": "earliest"}, {}
        run.settle()
        source.execute("INSERT INTO t VALUES (3, 'read', 3)")
        run.catch_up()
        run.same(source)
