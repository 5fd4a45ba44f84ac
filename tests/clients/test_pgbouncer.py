"""PgBouncer in transaction mode, with DISCARD ALL after each transaction, beside one before a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from mvserver.session.session import Session
from tests.clients.live_server import LiveServer
from tests.services.pgbouncer import PgBouncer, pgbouncer
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres

_CLIENTS, _TRANSACTIONS = 8, 25


@pytest.fixture(scope="module")
def our_pooler(server: LiveServer) -> Iterator[PgBouncer]:
    with pgbouncer("127.0.0.1", server.port, "postgres", connections=2) as made:
        yield made


@pytest.fixture(scope="module")
def their_pooler(logical_postgres: LogicalPostgres) -> Iterator[PgBouncer]:
    with pgbouncer("127.0.0.1", logical_postgres.port, "postgres", connections=2) as made:
        yield made


def _connect(pooler: PgBouncer, **options: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(pooler.conninfo, autocommit=True, prepare_threshold=None, **options)


def test_transactions_leave_nothing_to_the_next_client(our_pooler: PgBouncer, their_pooler: PgBouncer) -> None:
    assert _left_over(our_pooler) == _left_over(their_pooler)


def _left_over(pooler: PgBouncer) -> list[Any]:
    found: list[Any] = []
    with _connect(pooler) as one, _connect(pooler) as other:
        for leave in (
            "SET statement_timeout = '7s'",
            "PREPARE left_over AS SELECT 1",
            "SET search_path = elsewhere",
            "SET TimeZone = 'Asia/Tokyo'",
            "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1; COMMIT",
        ):
            one.execute(leave)
            for connection in (one, other):
                found.append(connection.execute("SHOW statement_timeout").fetchone())
                found.append(connection.execute("SHOW search_path").fetchone())
                found.append(connection.execute("SELECT current_setting('TimeZone') = 'Asia/Tokyo'").fetchone())
                found.append(connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone())
                found.append(connection.execute("SELECT count(*) FROM pg_cursors").fetchone())
        one.execute("BEGIN")
        one.execute("SET statement_timeout = '9s'")
        with pytest.raises(psycopg.errors.DivisionByZero):
            one.execute("SELECT 1 / 0")
        one.execute("ROLLBACK")
        found.append(other.execute("SHOW statement_timeout").fetchone())
    return found


def test_many_clients_share_few_sessions(our_pooler: PgBouncer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reset is answered in one go, and each transaction is its client's alone."""
    reset: list[str | None] = []
    sessions: set[int] = set()
    ordinary = Session.reset

    def counted(session: Session, text: str) -> str | None:
        answer = ordinary(session, text)
        if text == "DISCARD ALL":
            reset.append(answer)
            sessions.add(session.id)
        return answer

    monkeypatch.setattr(Session, "reset", counted)

    def client(number: int) -> list[tuple[Any, ...]]:
        seen = []
        with _connect(our_pooler) as connection:
            for _ in range(_TRANSACTIONS):
                with connection.transaction():
                    connection.execute(f"SET application_name = 'client {number}'")
                    row = connection.execute(
                        "SELECT current_setting('application_name'), visits FROM visits WHERE url = %s", ["./home"]
                    ).fetchone()
                    assert row is not None
                    seen.append(row)
        return seen

    with ThreadPoolExecutor(_CLIENTS) as pool:
        for number, seen in enumerate(pool.map(client, range(_CLIENTS))):
            assert seen == [(f"client {number}", 30)] * _TRANSACTIONS
    assert reset.count("DISCARD ALL") >= _CLIENTS * _TRANSACTIONS - len(sessions)
    assert set(reset) == {"DISCARD ALL"}
    assert len(sessions) <= 2
