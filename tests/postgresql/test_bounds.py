"""A server that takes connections and answers nothing holds up nobody for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.postgresql import slots
from spark_sinks.postgresql.client import PostgresClient
from spark_sinks.postgresql.source import PostgresReader
from tests.postgresql.running import Source, running, wait_until
from tests.postgresql.test_client import options_of
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres
SOON_S = 15.0  # on a machine that many share; what would hang here does so for a minute and more


@pytest.fixture
def source(own_postgres: LogicalPostgres) -> Iterator[Source]:
    with own_postgres.connect() as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(9, 2))")
        yield made
        made.execute("DROP TABLE t")


def patient(server: LogicalPostgres, work: Path) -> PostgresReader:
    """One that would wait for a minute."""
    return PostgresReader("pg", options_of(server), "t", work, keyed=True, timeout_s=60.0, record_bytes_max=1_000_000)


def ended(call: Callable[[], object]) -> tuple[threading.Thread, list[SqlError]]:
    errors: list[SqlError] = []

    def run() -> None:
        try:
            call()
        except SqlError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def test_each_question_has_a_bound(own_postgres: LogicalPostgres, source: Source, tmp_path: Path) -> None:
    client = PostgresClient("pg", options_of(own_postgres), timeout_s=1.0)
    with running(own_postgres, tmp_path, "t") as run:
        run.reader._timeout_s = 1.0
        assert run.reader.health.look(run.position).state == "ok"
        with own_postgres.frozen():
            began = time.monotonic()
            for _ in range(2):  # on the connection that there was, and by a new one
                health = run.reader.health.look(run.position)
                assert health.state == "stalled"
                assert (health.cause or "").startswith('store "pg" does not answer in time: No answer came within ')
            for call in (client.check, run.reader.forget):
                with pytest.raises(SqlError, match='store "pg" does not answer in time') as caught:
                    call()
                assert caught.value.sqlstate == "08006"
            assert time.monotonic() - began < SOON_S
        source.execute("INSERT INTO t VALUES (1, 'x', 1)")
        run.catch_up()
        run.same(source)


@pytest.mark.parametrize("connected", [True, False])
def test_a_question_can_be_given_up(
    own_postgres: LogicalPostgres, source: Source, tmp_path: Path, connected: bool
) -> None:
    reader = patient(own_postgres, tmp_path / "w")
    if connected:
        reader._ask()
    with own_postgres.frozen():
        thread, errors = ended(reader._ask)
        thread.join(0.5)
        assert thread.is_alive()
        began = time.monotonic()
        reader.give_up()
        thread.join(SOON_S)
        reader.close()
        assert time.monotonic() - began < SOON_S
    assert [error.sqlstate for error in errors] == ["57014"]


def test_a_start_can_be_given_up(
    own_postgres: LogicalPostgres, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of its snapshot, of which a part does not come."""
    source.execute("INSERT INTO t SELECT i, 'v', 1 FROM generate_series(1, 10) i")
    with running(own_postgres, tmp_path, "t") as run:
        with own_postgres.connect() as other:
            create = slots.create_slot

            def created(*args: Any, **more: Any) -> Any:
                made = create(*args, **more)
                other.execute("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
                return made

            monkeypatch.setattr(slots, "create_slot", created)
            found: list[object] = []
            thread, errors = ended(lambda: run.reader.settle({"start": "earliest"}, found.append))
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DECLARE%'"
            deadline = time.monotonic() + SOON_S
            while source.execute(waiting).fetchone() == (0,):
                assert time.monotonic() < deadline
            with own_postgres.frozen():
                run.reader.give_up()
                thread.join(SOON_S)
                assert not thread.is_alive()
            other.execute("COMMIT")
            monkeypatch.undo()
        assert ([error.sqlstate for error in errors], found) == (["57014"], [])
        run.restart()
        run.catch_up()
        run.same(source)


def test_what_was_given_up_stays_so_while_a_slot_is_made_anew(
    own_postgres: LogicalPostgres, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(own_postgres, tmp_path, "t") as run:
        reader, capture = run.reader, run.reader._capture
        assert capture is not None
        capture.stop()
        monkeypatch.setattr(capture, "stop", reader.give_up)  # as the reader lets go of the former slot
        busy = "SELECT count(*) FROM pg_replication_slots WHERE active"
        wait_until(lambda: source.execute(busy).fetchone() == (0,))
        source.execute("SELECT pg_drop_replication_slot(%s)", (reader.slot,))
        with pytest.raises(SqlError) as caught:
            reader.settle({"start": "earliest"}, lambda position: None)
        assert caught.value.sqlstate == "57014"
        assert source.execute("SELECT count(*) FROM pg_replication_slots").fetchone() == (0,)
