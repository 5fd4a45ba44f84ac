"""The memory of the server's process: bounded while statements take it, and given back when they have ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.serving.api import NOBODY, Owner
from mvserver.serving.engine.memory_watch import MemoryWatch, Process
from tests.serving.measured_server import MIB, MeasuredServer
from tests.serving.server import wait_until

LIMIT = 700 * MIB
QUERY_LIMIT = 300 * MIB
MOST = LIMIT * (1 + limits.PROCESS_MEMORY_SLACK) + 300 * MIB  # what comes between two looks on a busy machine
ROWS = "generate_series(1, 100000) AS t(g)"
# each would take gigabytes in one step of DuckDB's
GREEDY = {
    "lists": "SELECT sum(cardinality(s)) FROM "
    f"(SELECT ARRAY(SELECT generate_series(1, 90000 + g % 2)) AS s FROM {ROWS}) x",
    "texts": "SELECT max(length(d||d||d||d||d||d)) FROM (SELECT a||a||a||a||a||a AS d "
    f"FROM (SELECT repeat(g::text, 12000) AS a FROM {ROWS}) x) y",
    "pieces": f"SELECT max(cardinality(string_to_array(repeat(g::text || ',', 9000), ','))) FROM {ROWS}",
    "gathered": f"SELECT length(string_agg(repeat(md5(g::text), 2000), ',')) FROM {ROWS}",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredServer]:
    folder = tmp_path_factory.mktemp("measured")
    with MeasuredServer(folder, query_memory_limit=QUERY_LIMIT, process_memory_limit=LIMIT) as made:
        threads = [threading.Thread(target=warm_up, args=(made,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        made.ask("churn 10")
        yield made


def warm_up(server: MeasuredServer) -> None:
    """What is loaded and made at the first use of each, and the threads of as many sessions."""
    with server.connect() as one:
        for text in GREEDY.values():
            one.execute(text.replace("100000", "3"))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def base(server: MeasuredServer) -> int:
    """MiB that it takes at rest."""
    return server.settled()


def out_of(server: MeasuredServer, text: str, role: str, outcomes: list[str | None]) -> None:
    """Asks, and goes: what is left at work is the server's."""
    with server.connect(role) as one:
        one.execute("SET statement_timeout = '1s'")
        try:
            one.execute(text)  # type: ignore[arg-type]
            outcomes.append(None)
        except psycopg.Error as error:
            outcomes.append(error.sqlstate)


@pytest.mark.parametrize(
    "kind", ["texts", *(pytest.param(kind, marks=pytest.mark.night) for kind in GREEDY if kind != "texts")]
)
def test_what_is_left_behind_stays_within_the_budget_and_is_given_back(
    server: MeasuredServer, base: int, kind: str
) -> None:
    server.peak = 0
    outcomes: list[str | None] = []
    threads = [threading.Thread(target=out_of, args=(server, GREEDY[kind], "anna", outcomes)) for _ in range(4)]
    for thread in threads:
        thread.start()
    with server.connect() as other:
        while any(thread.is_alive() for thread in threads):
            assert other.execute("SELECT sum(visits) FROM visits").fetchone() == (6,)
    for thread in threads:
        thread.join()
    assert set(outcomes) <= {"57014", "53200"}
    server.comes_back_to(base)
    assert server.peak * MIB <= MOST


def test_a_query_that_takes_too_much_in_one_step_is_told(server: MeasuredServer, base: int) -> None:
    """And its session goes on."""
    server.peak = 0
    with server.connect() as one:
        with pytest.raises(psycopg.errors.OutOfMemory) as raised:
            one.execute(GREEDY["texts"])  # type: ignore[arg-type]
        assert raised.value.diag.message_detail
        assert raised.value.diag.message_hint
        server.comes_back_to(base)
        assert one.execute("SELECT sum(visits) FROM visits").fetchone() == (6,)
    assert server.peak * MIB <= MOST


@pytest.mark.parametrize("views", [40, pytest.param(100, marks=pytest.mark.night)])
def test_views_that_are_made_read_and_dropped_leave_nothing(server: MeasuredServer, base: int, views: int) -> None:
    server.ask(f"churn {views}")
    server.comes_back_to(base)


# --- prepared statements ----------------------------------------------------------------------------------------------


def large(number: int) -> str:
    columns = ", ".join(f"visits + {number} AS c{at}" for at in range(300))  # a tree of a megabyte
    return f"PREPARE large_{number} AS SELECT {columns}, '{'x' * 100_000}' AS text FROM visits"


@pytest.mark.parametrize("statements", [5, pytest.param(100, marks=pytest.mark.night)])
def test_large_prepared_statements_are_given_back(server: MeasuredServer, base: int, statements: int) -> None:
    """What is kept of them are plans, for whoever sends the same text again, within their own bound."""
    for end in ("DEALLOCATE ALL", "DISCARD ALL", None):
        with server.connect() as one:
            for number in range(statements):
                one.execute(large(number))  # type: ignore[arg-type]
            if end is not None:
                one.execute(end)
                server.comes_back_to(base, limits.PLAN_CACHE_BYTES)
        server.comes_back_to(base, limits.PLAN_CACHE_BYTES)


def test_prepared_statements_have_a_bound(server: MeasuredServer) -> None:
    """The next ones are refused by name, and there is room again when others were given up."""
    text = "PREPARE {} AS SELECT '{}'"
    with server.connect() as one:
        outcome, made = None, 0
        while outcome is None:
            try:
                one.execute(text.format(f"p{made}", "x" * 1_000_000))  # type: ignore[arg-type]
                made += 1
            except psycopg.errors.OutOfMemory as error:
                outcome = error
        assert 20 <= made <= 64
        assert outcome.diag.message_primary == "prepared statements take too much memory"
        assert "Those of a session may take 64 MiB together" in (outcome.diag.message_detail or "")
        assert "DEALLOCATE" in (outcome.diag.message_hint or "")
        one.execute("DEALLOCATE p0")
        one.execute(text.format("again", "y" * 1_000_000))  # type: ignore[arg-type]
        assert one.execute("EXECUTE again").fetchone() == ("y" * 1_000_000,)
        with server.connect() as other:
            other.execute("PREPARE small AS SELECT 1")


# --- the watch itself -------------------------------------------------------------------------------------------------


class Machine:
    """A process whose memory is what the test says."""

    def __init__(self, limit: int) -> None:
        self.in_use = 0
        self.resident = 0
        self.given_back = 0
        self.refusing = False
        self.looks = 0
        process = Process(limit, self._resident, lambda: 0, self._give_back, self._refuse)
        self.watch = MemoryWatch(lambda: self.in_use, 10 * limit, process)

    def _resident(self) -> int:
        self.looks += 1
        return self.resident

    def _give_back(self) -> None:
        self.given_back += 1

    def _refuse(self, refused: bool) -> None:
        self.refusing = refused

    def takes(self, size: int) -> None:
        self.in_use = self.resident = size


def test_the_role_that_takes_most_is_ended_first() -> None:
    machine = Machine(1000 * MIB)
    stopped: list[str] = []
    watch = machine.watch
    try:
        modest = watch.begin(lambda: stopped.append("modest"), Owner("modest", 1))
        greedy = [watch.begin(lambda: stopped.append("greedy"), Owner("greedy", at)) for at in range(2)]
        machine.takes(1050 * MIB)
        wait_until(lambda: bool(stopped))
        assert set(stopped) == {"greedy"}
        assert machine.given_back > 0
        assert not machine.refusing
        (over,) = [query for query in greedy if query.over]
        with pytest.raises(SqlError) as raised:
            over.check()
        assert (raised.value.sqlstate, "1000 MiB" in (raised.value.detail or "")) == ("53200", True)
        machine.takes(1400 * MIB)
        wait_until(lambda: machine.refusing)
        wait_until(lambda: all(query.over for query in greedy))
        assert not modest.over
        for query in greedy:
            query.end()
        machine.takes(100 * MIB)
        wait_until(lambda: not machine.refusing)
        modest.check()
    finally:
        watch.close()


def test_a_query_over_its_own_limit_has_large_blocks_refused_only_while_it_goes_on() -> None:
    """The process is far below its limit: others have their blocks again, although one of them stays open."""
    machine = Machine(1000 * MIB)
    watch = machine.watch
    try:
        idle = watch.begin(lambda: None, Owner("modest", 1))
        machine.takes(900 * MIB)
        over = watch.begin(lambda: None, Owner("greedy", 2))
        over.over_since = time.monotonic()
        wait_until(lambda: machine.refusing)
        over.end()
        wait_until(lambda: not machine.refusing)
        assert not idle.over
        machine.takes(1100 * MIB)  # above the limit it goes on until there is room again
        wait_until(lambda: machine.refusing)
        machine.takes(900 * MIB)
        looks = machine.looks
        wait_until(lambda: machine.looks > looks + 3)
        assert machine.refusing
        machine.takes(700 * MIB)
        wait_until(lambda: not machine.refusing)
    finally:
        watch.close()


def test_what_a_role_has_left_counts_until_it_has_ended() -> None:
    in_use = [0]
    watch = MemoryWatch(lambda: in_use[0], 100 * MIB)
    try:
        left, other = Owner("greedy", 1), Owner("modest", 2)
        query = watch.begin(lambda: None, left)
        in_use[0] = 150 * MIB
        wait_until(lambda: query.taken > 100 * MIB)
        watch.admit(left)  # it is at work, and nobody has gone
        query.leave()
        query.end()
        with pytest.raises(SqlError, match="canceled statements") as raised:
            watch.admit(Owner("greedy", 3))
        assert raised.value.sqlstate == "53200"
        watch.admit(other)
        query.ended()
        watch.admit(left)
    finally:
        watch.close()


def test_memory_is_given_back_when_nothing_is_at_work() -> None:
    machine = Machine(1000 * MIB)
    try:
        query = machine.watch.begin(lambda: None, NOBODY)
        machine.takes(500 * MIB)
        wait_until(lambda: query.taken > 0)
        query.end()
        wait_until(lambda: machine.given_back > 0)
    finally:
        machine.watch.close()
