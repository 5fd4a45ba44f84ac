"""What one client may cost others: statements that are stopped, memory, results that nobody reads."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mvserver.serving.engine.database import Database
from tests.clients.live_server import LiveServer, with_views

STOPPED_WITHIN_S = 2.0  # a second is the promise; the machine that tests share is slower
UNREAD_BYTES_MAX = 16 * 1024 * 1024

ROWS = "(SELECT n * 100000 + m AS k, n, m FROM numbers a, (SELECT n AS m FROM numbers) b)"  # 10,000,000,000
LONG = {
    "sort": f"SELECT * FROM {ROWS} r ORDER BY k % 1000003, k LIMIT 1",
    "aggregate": f"SELECT count(DISTINCT k * 7 % 100000007) FROM {ROWS} r",
    "result": f"SELECT k, n, m FROM {ROWS} r",
    "regular expression": "SELECT count(*) FROM numbers a, numbers b WHERE (a.n::text || b.n::text) ~ '(1+2*)+x'",
    "sleep": "SELECT pg_sleep(60)",
}


def connection_of(server: LiveServer, client: psycopg.Connection[Any]) -> Any:
    """The server's end of a client's connection."""
    assert server._server is not None
    process = client.info.backend_pid
    return next(found for found, number in server._server._connections.items() if number == process)


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.005)


def stopped_after(server: LiveServer, connection: psycopg.Connection[Any], call: Callable[[], object]) -> float:
    """How long the call goes on after a cancel request that comes in the middle of its work."""
    ended: list[tuple[float, str | None]] = []

    def run() -> None:
        try:
            call()
            ended.append((time.monotonic(), None))
        except psycopg.Error as error:
            ended.append((time.monotonic(), error.sqlstate))

    thread = threading.Thread(target=run)
    end = connection_of(server, connection)
    thread.start()
    wait_for(lambda: end._busy or end._parked)
    time.sleep(0.1)
    told = time.monotonic()
    while thread.is_alive() and time.monotonic() - told < 30:
        connection.cancel_safe()  # one that comes between two statements of the call stops none
        thread.join(0.3)
    ((when, sqlstate),) = ended
    assert sqlstate == "57014"
    return when - told


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    made = with_views(LiveServer(tmp_path_factory.mktemp("busy")))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def pair(busy: LiveServer) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    with (
        psycopg.connect(busy.conninfo, autocommit=True) as one,
        psycopg.connect(busy.conninfo, autocommit=True) as other,
    ):
        yield one, other


def copied(connection: psycopg.Connection[Any], query: str) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT") as copy:
        for _ in copy:
            pass


def streamed(connection: psycopg.Connection[Any], query: str) -> None:
    with connection.cursor() as cursor:
        for _ in cursor.stream(query):
            pass


def fetched(connection: psycopg.Connection[Any], query: str) -> None:
    with connection.transaction():
        connection.execute(f"DECLARE c CURSOR FOR {query}")
        while connection.execute("FETCH 10000 FROM c").fetchall():
            pass


Way = Callable[[psycopg.Connection[Any], str], None]
Pair = tuple[psycopg.Connection[Any], psycopg.Connection[Any]]


NIGHT = pytest.mark.night  # heavy for whoever works beside them, and measured on a quiet machine


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "sleep" else NIGHT) for name in LONG])
def test_cancel_and_time_out_end_it_within_a_second(busy: LiveServer, pair: Pair, name: str) -> None:
    one, other = pair
    assert stopped_after(busy, one, lambda: streamed(one, LONG[name])) < STOPPED_WITHIN_S
    one.execute("SET statement_timeout = '200ms'")
    began = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled):
        one.execute(LONG[name])
    assert time.monotonic() - began < 0.2 + STOPPED_WITHIN_S
    assert other.execute("SELECT sum(visits) FROM visits").fetchone() == (60,)
    assert one.execute("SELECT 1").fetchone() == (1,)


@NIGHT
@pytest.mark.parametrize("way", [copied, fetched])
def test_cancel_ends_rows_on_their_way(busy: LiveServer, pair: Pair, way: Way) -> None:
    one, _ = pair
    assert stopped_after(busy, one, lambda: way(one, LONG["result"])) < STOPPED_WITHIN_S
    one.rollback()
    assert one.execute("SELECT 1").fetchone() == (1,)


def test_a_cancel_request_hits_nobody_else(pair: Pair) -> None:
    """One that comes late may meet its own session's next statement, in PostgreSQL too, but never another session."""
    one, other = pair
    for _ in range(20):
        one.execute("SELECT 1")
        one.cancel_safe()
        assert other.execute("SELECT count(*) FROM numbers").fetchone() == (100_000,)


# --- memory ---------------------------------------------------------------------------------------------------------


def resident_bytes() -> int:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@NIGHT
def test_a_result_that_nobody_reads_costs_bounded_memory(busy: LiveServer, pair: Pair) -> None:
    """Several clients that ask for ten billion rows and read nothing, and what one of them costs."""
    _, other = pair
    assert busy._server is not None
    connections = busy._server.connections
    clients = [psycopg.connect(busy.conninfo, autocommit=True) for _ in range(8)]
    costs = []
    for client in clients:
        client.pgconn.send_query(LONG["result"].encode())
        end = connection_of(busy, client)
        wait_for(lambda end=end: end._parked)
        costs.append(resident_bytes())
    settled = costs[3:]  # the first ones also pay for what threads and allocator keep
    assert (settled[-1] - settled[0]) / (len(settled) - 1) < UNREAD_BYTES_MAX
    assert other.execute("SELECT sum(visits) FROM visits").fetchone() == (60,)
    for client in clients:
        client.pgconn.finish()
    wait_for(lambda: busy._server is not None and busy._server.connections == connections, 5)


def test_a_query_that_needs_too_much_memory_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Database.open
    monkeypatch.setattr(Database, "open", lambda path: opened(path, memory_limit="60MB"))
    server = with_views(LiveServer(tmp_path))
    server.start()
    try:
        with (
            psycopg.connect(server.conninfo, autocommit=True) as greedy,
            psycopg.connect(server.conninfo, autocommit=True) as other,
        ):
            for query in (f"SELECT array_agg(k) FROM {ROWS} r", f"SELECT string_agg(k::text, ',') FROM {ROWS} r"):
                with pytest.raises(psycopg.Error) as caught:
                    greedy.execute(query)
                assert caught.value.sqlstate == "53200"
                assert caught.value.diag.message_primary == "out of memory"
                assert caught.value.diag.message_hint
                assert other.execute("SELECT sum(visits) FROM visits").fetchone() == (60,)
            assert greedy.execute("SELECT count(*) FROM numbers").fetchone() == (100_000,)
    finally:
        server.stop()


# --- statements -----------------------------------------------------------------------------------------------------


def test_a_select_list_is_bounded(pair: Pair) -> None:
    one, _ = pair
    with pytest.raises(psycopg.Error) as caught:
        one.execute("SELECT " + ", ".join(map(str, range(1_665))))
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (
        "54011",
        "target lists can have at most 1664 entries",
    )
