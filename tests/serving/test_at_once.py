"""Short statements are answered on the event loop, with the same answers as on a worker, and never for long."""

from __future__ import annotations

import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from catalog.model import Column, Schema
from mvserver import limits
from mvserver.serving.engine.snapshot import DuckSnapshot
from mvserver.streaming.api import QueryState
from tests.serving.server import Client, PullServer

_LOOK_UP = "SELECT visits, mean FROM visits WHERE url = './home'"
_SLOW = "SELECT count(*) FROM generate_series(1, 20000) AS a, generate_series(1, 4000) AS b WHERE a.a % 7 <> b.b % 5"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PullServer]:
    with PullServer(tmp_path) as made:
        yield made


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads of the answers that were given at once; every plan counts as short from its second run on."""
    seen: list[threading.Thread] = []
    ordinary = DuckSnapshot.run_at_once

    def watched(self: DuckSnapshot, *arguments: Any) -> Any:
        seen.append(threading.current_thread())
        return ordinary(self, *arguments)

    monkeypatch.setattr(DuckSnapshot, "run_at_once", watched)
    monkeypatch.setattr(limits, "AT_ONCE_S_MAX", 100.0)
    monkeypatch.setattr(limits, "EVENT_LOOP_HELD_S_MAX", 20.0)
    return seen


def _simple(client: Client, text: str) -> list[tuple[Any, ...]]:
    return psycopg.ClientCursor(client).execute(text).fetchall()


def _unprepared(client: Client, text: str) -> list[tuple[Any, ...]]:
    return client.execute(text, prepare=False).fetchall()


def _prepared(client: Client, text: str) -> list[tuple[Any, ...]]:
    return client.execute(text, prepare=True).fetchall()


@pytest.mark.parametrize("ask", [_simple, _unprepared, _prepared])
def test_a_look_up_is_answered_on_the_loop(
    server: PullServer, threads: list[threading.Thread], ask: Callable[[Client, str], list[tuple[Any, ...]]]
) -> None:
    with server.connect() as client:
        first = ask(client, _LOOK_UP)
        for _ in range(5):
            assert ask(client, _LOOK_UP) == first
    assert [str(value) for value in first[0]] == ["3", "3.333333"]
    assert len(threads) >= 3
    assert set(threads) == {server.thread}


def test_parameters_and_formats_are_read_there_too(server: PullServer, threads: list[threading.Thread]) -> None:
    with server.connect() as client:
        for binary in (False, True):
            for url, visits in (("./home", 3), ("./a", 1), ("./none", None), ("./home", 3)) * 2:
                found = client.execute("SELECT visits FROM visits WHERE url = %s", (url,), binary=binary).fetchone()
                assert (found[0] if found else None) == visits
    assert threads


def test_what_takes_long_goes_to_a_worker_and_holds_up_nobody(
    server: PullServer, threads: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.connect() as slow, server.connect() as other:
        expected = _simple(slow, _SLOW)
        _simple(slow, _SLOW)
        monkeypatch.setattr(limits, "EVENT_LOOP_HELD_S_MAX", 0.02)
        answers: list[list[tuple[Any, ...]]] = []
        asking = threading.Thread(target=lambda: answers.append(_simple(slow, _SLOW)))
        threads.clear()
        asking.start()
        while not threads:  # it is on the loop
            time.sleep(0.001)
        while asking.is_alive():
            assert _simple(other, "SELECT 1") == [(1,)]
        asking.join()
    assert answers == [expected]


def test_time_out_and_cancel_reach_it(server: PullServer, threads: list[threading.Thread]) -> None:
    with server.connect() as client:
        for _ in range(2):
            _simple(client, _SLOW)
        threads.clear()
        client.execute("SET statement_timeout = '30ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            _simple(client, _SLOW)
        client.execute("SET statement_timeout = 0")
        assert _simple(client, _LOOK_UP)


def test_more_rows_than_a_few_are_streamed(server: PullServer, threads: list[threading.Thread]) -> None:
    text = "SELECT i FROM generate_series(1, {}) AS g(i)"
    with server.connect() as client:
        for rows in (10, 10, 10, 5_000, 5_000, limits.FEW_ROWS_MAX):
            assert _unprepared(client, text.format(rows)) == [(i,) for i in range(1, rows + 1)]


def test_a_pinned_transaction_keeps_its_snapshot(server: PullServer, threads: list[threading.Thread]) -> None:
    with server.connect() as client:
        for _ in range(3):
            _simple(client, _LOOK_UP)
        threads.clear()
        client.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        before = _simple(client, _LOOK_UP)
        server.world.writer.execute("UPDATE _state.visits SET visits = 99 WHERE url = './home'")
        assert _simple(client, _LOOK_UP) == before
        assert not threads
        client.execute("COMMIT")
        assert _simple(client, _LOOK_UP)[0][0] == 99


def test_a_view_that_is_filling_is_waited_for(server: PullServer, threads: list[threading.Thread]) -> None:
    with server.connect() as client:
        for _ in range(3):
            _simple(client, _LOOK_UP)
        server.views.state = QueryState.FILLING
        server.world.catalog.change()
        client.execute("SET mv.filling_timeout = '50ms'")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="still being filled"):
            _simple(client, _LOOK_UP)


def test_errors_look_the_same(server: PullServer, threads: list[threading.Thread]) -> None:
    text = "SELECT 10 / (visits - %s) FROM visits WHERE url = './home'"
    with server.connect() as client:
        for divisor in (1, 2, 1, 2):
            assert client.execute(text, (divisor,)).fetchone() == (10 // (3 - divisor),)
        with pytest.raises(psycopg.errors.DivisionByZero):
            client.execute(text, (3,))
        assert client.execute(text, (1,)).fetchone() == (5,)
        assert client.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    assert threads


# --- plans ------------------------------------------------------------------------------------------------------------
def _recreate(server: PullServer, kind: str, value: str) -> None:
    """The view with another type, as DROP and CREATE leave it: another object of the same name."""
    world = server.world
    current = world.catalog.current
    old = current.relations_by_name["postgres", "public", "visits"]
    made = replace(
        old, id=str(uuid.uuid4()), oid=old.oid + 100, columns=(Column("visits", kind), Column("url", "VARCHAR"))
    )
    world.writer.execute(f"CREATE VIEW _views.\"{made.id}\" AS SELECT {value} AS visits, './home' AS url")
    world.catalog.change(relations=(made, *(each for each in current.relations if each.id != old.id)))
    world.writer.execute(f'DROP VIEW _views."{old.id}"')


def test_ddl_time_zone_and_search_path_change_what_a_known_text_means(
    server: PullServer, threads: list[threading.Thread]
) -> None:
    text = "SELECT visits FROM visits WHERE url = './home'"
    zoned = "SELECT tz::text, tz FROM all_types WHERE t = 'x'"
    with server.connect() as client:

        def known_and_fresh(query: str) -> list[tuple[Any, ...]]:
            for _ in range(3):
                known = _simple(client, query)
            with server.connect() as fresh:
                fresh.execute(f"SET search_path TO {_simple(client, 'SHOW search_path')[0][0]}")
                fresh.execute(f"SET TimeZone = '{_simple(client, 'SHOW TimeZone')[0][0]}'")
                assert _simple(fresh, query + " ") == known
            return known

        assert known_and_fresh(text) == [(3,)]
        _recreate(server, "VARCHAR", "'many'")
        assert known_and_fresh(text) == [("many",)]
        _recreate(server, "DOUBLE", "1.5::DOUBLE")
        assert known_and_fresh(text) == [(1.5,)]
        before = known_and_fresh(zoned)
        client.execute("SET TIME ZONE 'Asia/Kolkata'")
        assert known_and_fresh(zoned)[0][0] == "2020-01-02 08:34:05+05:30"
        client.execute("SET TIME ZONE 'UTC'")
        assert known_and_fresh(zoned) == before

        # another schema before public, with a view of the same name
        current = server.world.catalog.current
        shown = current.relations_by_name["postgres", "public", "visits"]
        other = replace(shown, id=str(uuid.uuid4()), oid=16999, schema_id="s9")
        server.world.writer.execute(
            f"CREATE VIEW _views.\"{other.id}\" AS SELECT 2.5::DOUBLE AS visits, './home' AS url"
        )
        server.world.catalog.change(
            relations=(*current.relations, other),
            schemas=(*current.schemas, Schema("s9", 16998, "d1", "first", "postgres")),
        )
        assert known_and_fresh(text) == [(1.5,)]
        client.execute("SET search_path = first, public")
        assert known_and_fresh(text) == [(2.5,)]
        client.execute("SET search_path = public")
        assert known_and_fresh(text) == [(1.5,)]
    assert threads


def test_a_prepared_statement_does_not_change_its_columns(server: PullServer, threads: list[threading.Thread]) -> None:
    text = "SELECT visits FROM visits WHERE url = './home'"
    with server.connect() as client:
        for _ in range(4):
            assert _prepared(client, text) == [(3,)]
        _recreate(server, "VARCHAR", "'many'")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not change result type"):
            _prepared(client, text)


def test_known_texts_answer_as_fresh_ones_while_views_change(
    server: PullServer, threads: list[threading.Thread]
) -> None:
    """A view's number is shown twice, and its type changes: an answer is one version or that it was dropped."""
    text = "SELECT visits, visits AS again FROM visits WHERE url = './home'"
    versions = (("BIGINT", "7::BIGINT"), ("VARCHAR", "'7'"), ("DOUBLE", "7::DOUBLE"))
    stop = threading.Event()
    answers: list[tuple[Any, ...]] = []
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            with server.connect() as client:
                while not stop.is_set():
                    try:
                        answers.extend(_simple(client, text))
                    except psycopg.errors.UndefinedTable:
                        continue
        except BaseException as error:  # noqa: BLE001 - the test's to report
            failures.append(error)

    _recreate(server, *versions[0])
    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    for round_ in range(6):
        _recreate(server, *versions[round_ % 3])
        count = len(answers)
        deadline = time.monotonic() + 20
        while len(answers) < count + 5 and not failures and time.monotonic() < deadline:
            time.sleep(0.002)
    stop.set()
    for thread in asking:
        thread.join(20)
    assert not failures
    assert {repr(first) for first, _ in answers} <= {"7", "'7'", "7.0"}
    assert all(type(first) is type(second) for first, second in answers)


_ITEMS = ("visits", "mean", "total", "url", "visits + 1 AS more", "upper(url) AS u", "NULL AS nothing", "mean * 2 AS m")
_CONDITIONS = (
    "url = './home'",
    "url = './a'",
    "visits > 1",
    "url IS NULL",
    "total IS NOT NULL",
    "url LIKE './%'",
    "false",
)


def test_random_queries_known_and_fresh(server: PullServer, threads: list[threading.Thread]) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    with server.connect() as client:
        for number in range(12):
            items = ", ".join(chance.sample(_ITEMS, chance.randrange(1, 4)))
            text = f"SELECT {items} FROM visits WHERE {chance.choice(_CONDITIONS)} ORDER BY url"
            ask = chance.choice((_simple, _unprepared))
            known = [ask(client, text) for _ in range(3)]
            fresh = _unprepared(client, f"{text} LIMIT {1_000_000 + number}")  # a text not seen before
            assert known == [fresh] * 3, text
    assert threads


# --- memory -----------------------------------------------------------------------------------------------------------
def test_a_large_result_is_never_held_whole(server: PullServer) -> None:
    text = "COPY (SELECT i, i * 2 AS b, repeat('x', 1000) AS c FROM generate_series(1, 250000) AS g(i)) TO STDOUT"
    size = 0
    with server.connect() as client, client.cursor() as cursor:
        before, peak = _resident(), 0
        with cursor.copy(text) as copy:
            for number, block in enumerate(copy):
                size += len(block)
                if number % 10_000 == 0:
                    peak = max(peak, _resident())
    assert size > 250_000_000
    assert peak - before < 96 * 2**20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
