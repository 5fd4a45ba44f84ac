"""No statement keeps the others waiting: bindings beside each other, left behind, and texts that are too long."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from mvserver import limits
from mvserver.dialect import binding
from mvserver.errors import SqlError
from mvserver.serving.api import NOBODY, PlanRequest
from mvserver.serving.plan.binder import DuckBinder
from mvserver.sql.dialect import parse_pull
from tests.serving.server import PullServer
from tests.serving.world import SCOPE, World

ANSWERED_WITHIN_S = 1.0
HELD_S_MAX = 0.5
STOPPED_WITHIN_S = 2.0

_numbers = itertools.count()


def slow() -> str:
    """Stands for a text that DuckDB binds for long; another one each time, since plans are kept."""
    return f"SELECT 4711 AS slow_{next(_numbers)}"


class Gate:
    """Bindings of the slow text wait here, as DuckDB's own would: without an ear for anything."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()
        self.bound: list[str] = []
        bind = binding.bind

        def held(cursor: duckdb.DuckDBPyConnection, sql: str) -> binding.Bound:
            if "4711" in sql:
                self.entered.release()
                assert self.opened.wait(30)
            self.bound.append(sql)
            return bind(cursor, sql)

        monkeypatch.setattr(binding, "bind", held)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate(monkeypatch)
    yield made
    made.opened.set()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PullServer]:
    with PullServer(tmp_path_factory.mktemp("freezing")) as made:
        yield made


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    ended: list[Any] = []

    def run() -> None:
        try:
            ended.append(work())
        except (psycopg.Error, SqlError) as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, ended


def test_others_are_answered_while_one_is_bound(server: PullServer, gate: Gate) -> None:
    with server.connect() as one, server.connect() as other:
        assert other.execute("SELECT 1").fetchone() == (1,)
        thread, ended = in_thread(lambda: one.execute(slow()).fetchone())
        assert gate.entered.acquire(timeout=10)
        began = time.monotonic()
        assert other.execute("SELECT 1").fetchone() == (1,)  # its plan is kept
        assert other.execute("SELECT 1 + 41").fetchone() == (42,)  # bound while the other one is
        assert time.monotonic() - began < ANSWERED_WITHIN_S
        assert thread.is_alive()
        gate.opened.set()
        thread.join(10)
        assert ended == [(4711,)]


@pytest.mark.parametrize("prepared", [False, True])
def test_a_time_out_ends_a_binding(server: PullServer, gate: Gate, prepared: bool) -> None:
    with server.connect() as one:
        one.execute("SET statement_timeout = '100ms'")
        began = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            one.execute(slow(), prepare=prepared)
        assert time.monotonic() - began < STOPPED_WITHIN_S
        assert one.execute("SELECT 2").fetchone() == (2,)


def test_a_cancel_request_ends_a_binding(server: PullServer, gate: Gate) -> None:
    with server.connect() as one:
        thread, ended = in_thread(lambda: one.execute(slow()))
        assert gate.entered.acquire(timeout=10)
        began = time.monotonic()
        one.cancel_safe()
        thread.join(10)
        assert time.monotonic() - began < STOPPED_WITHIN_S
        assert [error.sqlstate for error in ended] == ["57014"]
        assert one.execute("SELECT 3").fetchone() == (3,)


def test_what_is_left_behind_ends_at_its_next_step_and_its_cursor_is_used_again(tmp_path: Path, gate: Gate) -> None:
    world = World(tmp_path)
    try:
        text = "SELECT 4711 AS slow, sum(visits) / 2.5 FROM visits"
        with pytest.raises(SqlError) as raised:
            world.service.plan(
                PlanRequest(parse_pull(text), SCOPE, stopped=lambda: gate.entered.acquire(blocking=False))
            )
        assert raised.value.sqlstate == "57014"
        gate.opened.set()
        binders = world.service._binders
        deadline = time.monotonic() + 10
        while not binders._free:
            assert time.monotonic() < deadline, "the binder did not come back"
            time.sleep(0.005)
        assert [sql for sql in gate.bound if "4711" in sql] == gate.bound[:1]  # the first step and no other
        (binder,) = binders._free
        assert isinstance(binder, DuckBinder)
        assert world.value("SELECT sum(visits) FROM visits") == 6
        assert binders._free == [binder]
    finally:
        world.close()


def test_a_service_that_is_closed_says_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.close()
    with pytest.raises(SqlError) as raised:
        world.service._binders.run(lambda binder: None, NOBODY, lambda: False)
    assert raised.value.sqlstate == "57P01"


# --- texts that are short to write and long to make -----------------------------------------------------------------

HUGE = (
    "SELECT length(repeat('x', 400000000) || repeat('y', 400000000))",
    "SELECT length(repeat(repeat(repeat('x', 1000), 1000), 1000))",
    "SELECT length(repeat('x', 20000 * 20000))",
    "SELECT length(pg_catalog.repeat('x', 400000000))",
    "SELECT length(lpad('x', 400000000, 'y'))",
    "SELECT length(rpad('x', 400000000))",
    "SELECT length(replace(repeat('x', 100000), 'x', repeat('y', 100000)))",
    "SELECT length(regexp_replace(repeat('x', 100000), 'x', repeat('y', 100000), 'g'))",
    "SELECT " + " || ".join(["repeat('x', 100000)"] * 20),
    "SELECT length(repeat('x', 400000000 + length('a')))",
    "SELECT length(repeat(url, 400000000)) FROM visits",
    "SELECT length(lpad(url, 400000000)) FROM visits",
    "SELECT length(lpad('x', 400000000 + length(url)::int)) FROM visits",
    "SELECT length(repeat('x', 9223372036854775807 - length(url))) FROM visits",
    "SELECT length(replace(repeat(url, 10000), '.', repeat(url, 10000))) FROM visits",
    "SELECT length(regexp_replace(repeat(url, 10000), '.', repeat(url, 10000), 'g')) FROM visits",
    "SELECT length(replace(repeat(url, 10000), '.', url || repeat('x', 1000))) FROM visits",
    "SELECT length(replace(replace(repeat(url, 10000), '.', 'xxxxxxxxxx'), 'x', 'yyyyyyyyyy')) FROM visits",
    "SELECT generate_series(1, 100000000)",
    "SELECT generate_series(100000000, 1, -2)",
    "SELECT generate_series(1, 100000000 + visits) FROM visits",
    "SELECT generate_series('2000-01-01'::timestamp, '2030-01-01'::timestamp, '1 second'::interval)",
    "SELECT count(*) FROM visits AS v, LATERAL generate_series(1, 100000000 + v.visits) AS s(n)",
    "SELECT count(*) FROM (SELECT generate_series(visits, 100000000) FROM visits) AS s",
)


@pytest.mark.parametrize("text", HUGE)
def test_too_long_a_text_is_refused_at_once(server: PullServer, text: str) -> None:
    with server.connect() as one:
        began = time.monotonic()
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="requested length too large") as raised:
            one.execute(text)
        assert time.monotonic() - began < STOPPED_WITHIN_S
        assert raised.value.diag.message_hint is not None
        assert "bytes" in raised.value.diag.message_hint


def test_a_parameter_may_not_ask_for_more_either(server: PullServer) -> None:
    with server.connect() as one:
        found = one.execute("SELECT repeat(%s, %s), lpad(%s, %s, '-')", ("ab", 3, "x", 4)).fetchone()
        assert found == ("ababab", "---x")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            one.execute("SELECT length(repeat(%s, %s))", ("ab", 400_000_000))


SMALL = {
    "repeat('ab', 3)": "ababab",
    "repeat('ab', -1)": "",
    "repeat('ab', 1 + 1)": "abab",
    "repeat(url, 2)": "./a./a",
    "repeat('-', visits::int + 1)": "--",
    "repeat(NULL, 3)": None,
    "repeat('x', NULL)": None,
    "lpad(url, visits::int + 4, '*')": "**./a",
    "rpad(url, visits::int + 4) || '|'": "./a  |",
    "repeat(repeat(url, 2), 2)": "./a./a./a./a",
    "replace(url, 'a', repeat('b', 3))": "./bbb",
    "replace(url, '.', url)": "./a/a",
    "replace(url, url, 'b' || url)": "b./a",
    "replace(replace(url, 'a', 'xxxxxxxxxxxxx'), 'x', 'yyyyyyyyyyyyy')": "./" + "y" * 169,
    "replace(url, '', url)": "./a",
    "replace(NULL, 'a', url)": None,
    "regexp_replace(url, '[./]', url)": "./a/a",
    "regexp_replace(url, '[./]', url, 'g')": "./a./aa",
    "regexp_replace(url, '(a)', repeat('<\\1>', 2))": "./<a><a>",
}


@pytest.mark.parametrize("expression", SMALL)
def test_what_is_short_is_made(server: PullServer, expression: str) -> None:
    with server.connect() as one:
        found = one.execute(f"SELECT {expression} FROM visits WHERE url = './a'").fetchone()
        assert found == (SMALL[expression],)


def test_the_bounds_themselves_are_reached(server: PullServer) -> None:
    with server.connect() as one:
        constant, made = limits.CONSTANT_TEXT_BYTES_MAX, limits.REPEATED_TEXT_BYTES_MAX
        assert one.execute(f"SELECT length(repeat('x', {constant}))").fetchone() == (constant,)
        assert one.execute(
            f"SELECT max(length(repeat('x', n + {made - 1}))) FROM generate_series(1, 1) g(n)"
        ).fetchone() == (made,)


# --- long texts -----------------------------------------------------------------------------------------------------

NUMBERS = ", ".join(str(number) for number in range(10_000))
LONG = {
    "list": (f"SELECT count(*) FROM visits WHERE visits IN ({NUMBERS})", (3,)),
    "texts": (
        "SELECT count(*) FROM visits WHERE url IN (" + ", ".join(f"'it''s {n}'" for n in range(12_000)) + ", './a')",
        (1,),
    ),
    "rows": (
        "SELECT count(*), sum(a), max(b) FROM (VALUES "
        + ", ".join(f"({n}, 'it''s {n:05}')" for n in range(3_000))
        + ") AS t(a, b)",
        (3_000, 3_000 * 2_999 // 2, "it's 02999"),
    ),
    "conditions": ("SELECT count(*) FROM visits WHERE " + " OR ".join(f"visits = {n}" for n in range(1_200)), (3,)),
}


@pytest.fixture
def _own_objects() -> Iterator[None]:
    """A full collection of Python's cycles looks at the server's objects, not at those of all tests."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_own_objects")
@pytest.mark.parametrize("name", LONG)
def test_others_are_answered_while_a_long_text_is_read(server: PullServer, name: str) -> None:
    text, expected = LONG[name]
    with server.connect() as one, server.connect() as other:
        other.execute("SELECT 1")
        thread, ended = in_thread(lambda: one.execute(text).fetchone())  # type: ignore[arg-type]
        waits = []
        while thread.is_alive():
            began = time.monotonic(), time.process_time()
            other.execute("SELECT 1")
            # whoever holds up the others uses the processor; where other processes had it, the time is none of ours
            waits.append(min(time.monotonic() - began[0], time.process_time() - began[1]))
        assert ended == [expected]
        assert max(waits) < HELD_S_MAX


@pytest.mark.parametrize("count", [limits.LITERALS_APART_MAX, limits.LITERALS_APART_MAX + 1])
def test_a_long_list_means_what_a_short_one_does(server: PullServer, count: int) -> None:
    filler = ", ".join(str(100 + n) for n in range(count - 1))
    with server.connect() as one:
        query = "SELECT url FROM visits WHERE visits {} (" + filler + ", 1) ORDER BY url"
        assert one.execute(query.format("IN")).fetchall() == [("./a",)]  # type: ignore[arg-type]
        assert one.execute(query.format("NOT IN")).fetchall() == [("./home",), (None,)]  # type: ignore[arg-type]
        rows = ", ".join(f"({n}, 'x')" for n in range(count + 5))
        found = one.execute(f"SELECT count(*), max(a), min(b) FROM (VALUES {rows}) AS t(a, b)")  # type: ignore[arg-type]
        assert found.fetchone() == (count + 5, count + 4, "x")
        mixed = f"SELECT count(a), max(a) FROM (VALUES {rows}, (-1, NULL), (1 + 1000000, 'y'), (7, 'z')) AS t(a, b)"
        assert one.execute(mixed).fetchone() == (count + 8, 1_000_001)  # type: ignore[arg-type]


def test_a_long_text_with_parameters(server: PullServer) -> None:
    with server.connect() as one:
        found = one.execute(
            f"SELECT url FROM visits WHERE visits IN ({NUMBERS[:40_000].rpartition(',')[0]}) AND url = %s", ("./a",)
        )  # type: ignore[arg-type]
        assert found.fetchall() == [("./a",)]


def test_rows_of_another_length_behind_many(server: PullServer) -> None:
    rows = ", ".join(f"({n}, 'x')" for n in range(limits.LITERALS_APART_MAX + 5))
    with server.connect() as one, pytest.raises(psycopg.errors.SyntaxError):
        one.execute(f"SELECT * FROM (VALUES {rows}, (1)) AS t")  # type: ignore[arg-type]


# --- series ---------------------------------------------------------------------------------------------------------

SERIES = {
    "SELECT generate_series(1, 3)": [1, 2, 3],
    "SELECT generate_series(3, 1, -2)": [3, 1],
    "SELECT generate_series(1, visits + 1) FROM visits WHERE url = './a'": [1, 2],
    "SELECT generate_series(visits, 3, visits) FROM visits WHERE url = './a'": [1, 2, 3],
    "SELECT n FROM visits, LATERAL generate_series(1, visits) AS s(n) WHERE url = './home' ORDER BY 1": [1, 2, 3],
    "SELECT n FROM generate_series(1, 2000000) AS s(n) WHERE n > 1999999": [2_000_000],
    "SELECT generate_series('2020-01-30'::date, '2020-02-01'::date, '1 day'::interval)::date::text":
        ["2020-01-30", "2020-01-31", "2020-02-01"],
    "SELECT max(n) FROM (SELECT generate_series(1, 1000000) AS n) AS s": [1_000_000],
}  # fmt: skip


@pytest.mark.parametrize("text", SERIES)
def test_a_series_of_bounded_length(server: PullServer, text: str) -> None:
    with server.connect() as one:
        assert [value for (value,) in one.execute(text)] == SERIES[text]  # type: ignore[arg-type]
        found = one.execute("SELECT generate_series(1, %s)", (3,)).fetchall()
        assert found == [(1,), (2,), (3,)]
