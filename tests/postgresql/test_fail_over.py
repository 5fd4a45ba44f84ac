"""A server that is followed by its standby: what is stalled meanwhile, what goes on, and what is not trusted."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.postgresql.positions import Origin, PostgresPositions
from spark_sinks.postgresql.timelines import parsed
from tests.postgresql.test_source import WITHIN_S, Run
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="mvserver-fail-over-"))
    made.chmod(0o755)  # the servers run as another user when the tests run as root
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def primary(folder: Path) -> Iterator[LogicalPostgres]:
    server = LogicalPostgres(folder)
    with server.connect() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(9, 2))")
        connection.execute("INSERT INTO t SELECT i, 'v', 0 FROM generate_series(1, 10) i")
    yield server
    server.stop("immediate")  # whoever runs at its address is stopped by the test


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def stop_while_it_is_looked_at(server: LogicalPostgres, run: Run) -> None:
    """It waits for those who have not confirmed all that they were sent, and they have to notice."""
    thread = threading.Thread(target=server.stop)
    thread.start()
    deadline = time.monotonic() + WITHIN_S
    while thread.is_alive():
        assert time.monotonic() < deadline
        run.reader.health.look(run.position)
        thread.join(0.1)


def fill_log_behind(connection: psycopg.Connection[Any], lsn: int) -> None:
    """So that a place of the former log is a place of this one, too."""
    flushed = "SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn"
    deadline = time.monotonic() + WITHIN_S
    while (connection.execute(flushed).fetchone() or (0,))[0] <= lsn:
        assert time.monotonic() < deadline
        connection.execute("CREATE TABLE IF NOT EXISTS other (filler text)")
        connection.execute("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 100)")


@contextlib.contextmanager
def running(standby: LogicalPostgres, primary: LogicalPostgres, run: Run) -> Iterator[None]:
    """The standby at the address of the stopped primary, which comes back behind it."""
    standby.start()
    try:
        yield
        run.reader.forget()
    finally:
        run.reader.close()
        standby.stop("immediate")
        primary.start()


def test_a_standby_stalls_queries_and_its_promotion_lets_them_go_on(
    primary: LogicalPostgres, folder: Path, tmp_path: Path
) -> None:
    run = Run(primary, "t", tmp_path / "w", keyed=True)
    run.settle()
    run.catch_up()
    run.release()
    before = run.position
    stop_while_it_is_looked_at(primary, run)
    standby = primary.standby(folder / "standby")
    with running(standby, primary, run):
        states: list[tuple[str, str]] = []

        def is_standby() -> bool:
            health = run.reader.health.look(run.position)
            states.append((health.state, (health.cause or "").partition(":")[0]))
            return states[-1][1] == 'the server of store "pg" is a standby'

        until(is_standby)
        assert {state for state, _ in states} == {"stalled"}
        stopped = run.stops()
        assert stopped.sqlstate == "08006"
        with pytest.raises(SqlError, match="is a standby") as caught:  # also one that is begun now
            Run(primary, "t", tmp_path / "x", keyed=True).settle()
        assert caught.value.sqlstate == "08006"
        standby.promote()
        until(lambda: run.reader.health.look(run.position).state == "ok")
        with standby.connect() as connection:
            connection.execute("DELETE FROM t WHERE id = 3; INSERT INTO t VALUES (11)")
            run.catch_up()
            run.same(connection)
            assert (Origin.of(before).timeline, Origin.of(run.position).timeline) == (1, 2)
            run.restart()
            connection.execute("INSERT INTO t VALUES (12)")
            run.catch_up()
            run.same(connection)
            run.position = before  # of the former timeline, before it was left
            assert run.reader.health.look(before).state == "ok"
            run.catch_up()
            run.same(connection)


def test_a_server_that_is_shut_down_does_not_wait_for_its_readers(primary: LogicalPostgres, tmp_path: Path) -> None:
    """It would wait for changes to be confirmed, which they are not before they are durable here."""
    run = Run(primary, "t", tmp_path / "w", keyed=True)
    run.settle()
    with primary.connect() as connection:
        connection.execute("INSERT INTO t SELECT i FROM generate_series(20, 50) i")
    run.catch_up()  # and nothing is released
    stop_while_it_is_looked_at(primary, run)
    assert run.reader.health.look(run.position).state == "stalled"
    primary.start()
    with primary.connect() as connection:
        connection.execute("DELETE FROM t WHERE id < 30")
        until(lambda: run.reader.health.look(run.position).state == "ok")
        run.catch_up()
        run.same(connection)
    run.reader.forget()


@pytest.mark.parametrize("restarted", [False, True])
def test_what_the_new_primary_lacks_is_not_trusted(
    primary: LogicalPostgres, folder: Path, tmp_path: Path, restarted: bool
) -> None:
    """The standby was behind: some of what was read is in no log any more, and its places are those of other rows."""
    run = Run(primary, "t", tmp_path / "w", keyed=True)
    run.settle()
    run.catch_up()
    run.release()
    shared: Position = run.position
    stop_while_it_is_looked_at(primary, run)
    standby = primary.standby(folder / "standby")
    primary.start()
    with primary.connect() as connection:
        connection.execute("INSERT INTO t SELECT i, 'lost', 0 FROM generate_series(100, 150) i")
        until(lambda: run.reader.health.look(run.position).state == "ok")
        run.catch_up()
    ahead: Position = run.position
    if restarted:
        run.reader.close()
    stop_while_it_is_looked_at(primary, run)
    with running(standby, primary, run):
        standby.promote()
        with standby.connect() as connection:
            fill_log_behind(connection, ahead["lsn"])
            connection.execute("INSERT INTO t VALUES (11)")
            if restarted:
                run.reader = run.opened()
            until(lambda: run.reader.health.look(ahead).state != "stalled")
            health = run.reader.health.look(ahead)
            assert health.state == "failed"
            assert 'the log of store "pg" does not have what was read of it' in (health.cause or "")
            errors: list[SqlError] = []

            def is_refused() -> bool:
                try:
                    run.reader.next_batch(ahead, 10)
                except SqlError as error:
                    errors.append(error)
                return bool(errors) and errors[-1].sqlstate == "55000"

            until(is_refused)
            assert "standby that lacked the rest took over" in (errors[-1].detail or "")
            # Whoever stands before the place where the ways part goes on, and one begins anew.
            other = Run.__new__(Run)
            other.__dict__.update(run.__dict__)
            other.position, other.rows = shared, {f'{{"id":{n}}}': {"id": n, "v": "v", "n": 0.0} for n in range(1, 11)}
            other.catch_up()
            other.same(connection)
            run.position, run.rows = {"start": "earliest"}, {}
            run.settle()
            run.catch_up()
            run.same(connection)


def test_positions_of_two_timelines_are_of_one_log() -> None:
    """Whether they are is told by the server's history alone."""
    positions, former, now = PostgresPositions(), Origin("1", 2, 0, 1), Origin("1", 2, 0, 2)
    assert former == now
    assert positions.reached(now.at(20), former.at(20))
    assert positions.advance(former.at(10), now.at(20)) == now.at(20)
    assert positions.initial([former.at(30), now.at(20)]) == now.at(20)
    assert Origin.of({"system": "1", "table": 2, "lsn": 5}).timeline == 1
    with pytest.raises(SqlError, match="different tables"):
        positions.reached(now.at(20), Origin("9", 2, 0, 2).at(20))


def test_a_history_has_where_each_timeline_was_left() -> None:
    text = b"1\t0/3000060\tno recovery target specified\n\n# by hand\n2\t1/A0\tbefore 2024-05-17 12:00:00+00\n"
    assert parsed(text) == {1: 0x3000060, 2: 0x1_0000_00A0}
