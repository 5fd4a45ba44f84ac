"""Statements that DuckDB does not stop are left: their clients are answered, the others go on, and nothing is lost."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.serving.api import NOBODY, Owner
from mvserver.serving.engine.abandonable_work import AbandonableWork, WorkAbandoned
from mvserver.serving.fast import few_rows
from tests.serving.server import STOPPED_WITHIN_S, Client, PullServer, is_cancelled, wait_until

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PullServer]:
    with PullServer(tmp_path_factory.mktemp("leaving")) as made:
        with made.connect() as one:
            one.execute("SELECT sum(visits) FROM visits")  # the first query builds the system catalog
        yield made


class Deaf:
    """Runs of the slow look-up do not end until they are let go, whatever is asked of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered = threading.Semaphore(0)
        self.let_go = threading.Event()
        fetch = few_rows.fetch

        def held(cursor: Any, names: Any, types: Any, plain: Any) -> Any:
            if names and names[0].startswith("slow"):
                self.entered.release()
                assert self.let_go.wait(30)
            return fetch(cursor, names, types, plain)

        monkeypatch.setattr(few_rows, "fetch", held)


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch, server: PullServer) -> Iterator[Deaf]:
    made = Deaf(monkeypatch)
    yield made
    made.let_go.set()
    wait_until(lambda: server.world.service.left == 0)


def slow() -> str:
    return f"SELECT visits AS slow_{next(_numbers)} FROM visits WHERE url = './a'"


def leave_one(client: Client, deaf: Deaf) -> None:
    client.execute("SET statement_timeout = '300ms'")
    began = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        client.execute(slow())
    assert time.monotonic() - began < STOPPED_WITHIN_S + 0.3
    assert deaf.entered.acquire(timeout=5)
    client.execute("RESET statement_timeout")


def test_the_client_is_answered_and_its_session_goes_on(server: PullServer, deaf: Deaf) -> None:
    with server.connect() as one, server.connect() as other:
        leave_one(one, deaf)
        assert server.world.service.left == 1
        assert one.execute("SELECT visits FROM visits WHERE url = './a'").fetchone() == (1,)
        assert other.execute("SELECT sum(visits) FROM visits").fetchone() == (6,)
        deaf.let_go.set()
        wait_until(lambda: server.world.service.left == 0)
        assert one.execute("SELECT 1 + 1").fetchone() == (2,)


def test_a_cancel_request_too(server: PullServer, deaf: Deaf) -> None:
    with server.connect() as one:
        is_cancelled(one, slow(), deaf.entered)


def test_a_session_is_refused_that_has_left_too_much_and_nobody_else_is(server: PullServer, deaf: Deaf) -> None:
    with server.connect() as greedy, server.connect() as other:
        for _ in range(limits.LEFT_WORK_OF_SESSION_MAX):
            leave_one(greedy, deaf)
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="too many canceled statements") as raised:
            greedy.execute("SELECT max(total) FROM visits")
        assert "2 of this session" in (raised.value.diag.message_detail or "")
        assert other.execute("SELECT max(total) FROM visits").fetchone() is not None
        deaf.let_go.set()
        wait_until(lambda: server.world.service.left == 0)
        assert greedy.execute("SELECT max(total) FROM visits").fetchone() is not None


def test_a_transaction_that_has_lost_its_cursor_says_so_and_ends(server: PullServer, deaf: Deaf) -> None:
    with server.connect() as one:
        one.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert one.execute("SELECT sum(visits) FROM visits").fetchone() == (6,)
        leave_one_in_transaction(one)
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            one.execute("SELECT 1")
        one.execute("ROLLBACK")
        assert one.execute("SELECT sum(visits) FROM visits").fetchone() == (6,)


def leave_one_in_transaction(one: Client) -> None:
    one.execute("SET LOCAL statement_timeout = '300ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        one.execute(slow())


def test_planning_of_many_conditions_is_left(server: PullServer) -> None:
    """DuckDB's optimizer itself: its time grows with the square of the ANDs, and it looks for no interrupt."""
    conditions = " AND ".join(f"visits <> {number}" for number in range(10, 2_400))
    with server.connect() as one, server.connect() as other:
        one.execute("SET statement_timeout = '200ms'")
        began = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            one.execute(f"SELECT count(*) FROM visits WHERE {conditions}")  # type: ignore[arg-type]
        assert time.monotonic() - began < STOPPED_WITHIN_S + 0.2
        assert other.execute("SELECT sum(visits) FROM visits").fetchone() == (6,)
        wait_until(lambda: server.world.service.left == 0)


# --- the pool itself --------------------------------------------------------------------------------------------------


def test_what_was_left_is_given_back_when_it_ends() -> None:
    pool, gate, given_back = AbandonableWork(), threading.Event(), threading.Event()
    with pytest.raises(WorkAbandoned):
        pool.run(lambda left: gate.wait(10), NOBODY, lambda: True, given_back.set)
    assert (pool.left, given_back.is_set()) == (1, False)
    gate.set()
    assert given_back.wait(10)
    assert pool.left == 0
    assert pool.run(lambda left: 7, NOBODY, lambda: True) == 7
    pool.close()


def test_work_is_told_that_it_was_left() -> None:
    pool, seen = AbandonableWork(), threading.Event()

    def work(left: Callable[[], bool]) -> None:
        wait_until(left)
        seen.set()

    with pytest.raises(WorkAbandoned):
        pool.run(work, NOBODY, lambda: True)
    assert seen.wait(10)
    pool.close()


def test_a_role_has_its_share_over_all_sessions() -> None:
    pool, gate = AbandonableWork(), threading.Event()
    for session in range(limits.LEFT_WORK_OF_ROLE_MAX):
        with pytest.raises(WorkAbandoned):
            pool.run(lambda left: gate.wait(10), Owner("greedy", session), lambda: True)
    with pytest.raises(SqlError) as raised:
        pool.run(lambda left: 1, Owner("greedy", 99), lambda: False)
    assert raised.value.sqlstate == "53400"
    assert pool.run(lambda left: 2, Owner("modest", 1), lambda: False) == 2
    gate.set()
    wait_until(lambda: pool.left == 0)
    assert pool.run(lambda left: 3, Owner("greedy", 99), lambda: False) == 3
    pool.close()


def test_what_goes_on_is_not_refused_for_what_others_of_its_role_left() -> None:
    def refuse(owner: Owner) -> None:
        raise SqlError("53200", owner.role)

    pool, gate, owner = AbandonableWork(refuse), threading.Event(), Owner("greedy", 1)
    for _ in range(limits.LEFT_WORK_OF_SESSION_MAX):
        with pytest.raises(WorkAbandoned):
            pool.run(lambda left: gate.wait(10), owner, lambda: True, goes_on=True)
    with pytest.raises(SqlError, match="greedy"):
        pool.run(lambda left: 1, owner, lambda: False)
    assert pool.run(lambda left: 2, owner, lambda: False, goes_on=True) == 2
    gate.set()
    pool.close()
    with pytest.raises(SqlError, match="shutting down"):
        pool.run(lambda left: 3, owner, lambda: False, goes_on=True)


def test_an_error_of_the_work_is_the_callers() -> None:
    pool = AbandonableWork()
    with pytest.raises(ZeroDivisionError):
        pool.run(lambda left: 1 / 0, NOBODY, lambda: False)
    pool.close()
    with pytest.raises(SqlError) as raised:
        pool.run(lambda left: 1, NOBODY, lambda: False)
    assert raised.value.sqlstate == "57P01"


# --- cancel requests that are not for the statement -----------------------------------------------------------------


def ask_to_cancel(server: PullServer, process: int, key: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.wire.port), timeout=5) as stranger:
        stranger.sendall(struct.pack("!iii", 12 + len(key), 80877102, process) + key)
        assert stranger.recv(1) == b""


def test_a_wrong_key_stops_nothing(server: PullServer) -> None:
    with server.connect() as one:
        ended: list[object] = []
        with server.connect() as other:
            thread = threading.Thread(target=lambda: ended.append(one.execute("SELECT pg_sleep(0.5)").fetchone()))
            thread.start()
            for number in range(20):
                ask_to_cancel(server, one.info.backend_pid, struct.pack("!i", number))
                ask_to_cancel(server, 1_000_000 + number, b"\0\0\0\1")
            thread.join(20)
            assert other.execute("SELECT 1").fetchone() == (1,)
    assert ended == [("",)]


def test_a_late_request_stops_nothing_that_comes_after(server: PullServer) -> None:
    """Fifty times: the statement is over when its cancel comes, and the next ones are answered."""
    with server.connect() as one:
        for number in range(50):
            assert one.execute("SELECT %s::int", (number,)).fetchone() == (number,)
            one.cancel_safe()
        for number in range(10):
            assert one.execute("SELECT %s::int + 1", (number,)).fetchone() == (number + 1,)


# --- parameters of many megabytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numeric", "timestamptz", "bigint"])
def test_the_reading_of_a_large_array_is_stopped(server: PullServer, kind: str) -> None:
    value = {"numeric": "12.5", "timestamptz": "2024-01-02", "bigint": "+7"}[kind]
    text = "{" + ",".join([value] * (8_000_000 // (len(value) + 1))) + "}"
    query = f"SELECT cardinality(%s::{kind}[])"
    with server.connect() as one, server.connect() as other:
        one.execute("SET statement_timeout = '200ms'")
        began = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            one.execute(query, (text,))  # type: ignore[arg-type]
        assert time.monotonic() - began < STOPPED_WITHIN_S + 0.3
        one.execute("RESET statement_timeout")
        threading.Timer(0.3, one.cancel_safe).start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            one.execute(query, (text,))  # type: ignore[arg-type]
        assert one.execute(query, ("{" + ",".join([value] * 3) + "}",)).fetchone() == (3,)  # type: ignore[arg-type]
        assert other.execute("SELECT sum(visits) FROM visits").fetchone() == (6,)
