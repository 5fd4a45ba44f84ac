"""Hostile messages by the ten thousand: no crash, no hung connection, nothing leaked, and others are served."""

from __future__ import annotations

import os
import random
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.wire.client import (
    SYNC,
    Driven,
    RawClient,
    bind,
    close,
    describe,
    execute,
    message,
    parse,
    query,
    startup,
    tags,
)
from tests.wire.fuzz import COPY_DONE, TOY, Fuzzer, Language, Siege, count, resident_bytes, seed
from tests.wire.server import Running, wait_for
from tests.wire.toy import ToyBackend

MESSAGES = 50_000  # at night
GROWTH_BYTES_MAX = 50 * 1024 * 1024
WARM_UP = 5_000
NIGHT = pytest.mark.night


@pytest.mark.slow
@pytest.mark.parametrize("messages", [10_000, pytest.param(MESSAGES, marks=NIGHT)])
def test_the_engine_survives(messages: int, caplog: pytest.LogCaptureFixture) -> None:
    chosen = seed()
    backend = ToyBackend()

    def open_engine() -> Driven:
        backend.sessions.clear()
        backend.received.clear()
        return Driven(backend)

    siege = Siege(Fuzzer(random.Random(chosen), TOY), open_engine)
    siege.run(min(WARM_UP, messages // 2))
    threads, before = threading.active_count(), resident_bytes()
    siege.run(count(messages))
    assert backend.open_results == 0
    assert threading.active_count() == threads
    assert resident_bytes() - before < GROWTH_BYTES_MAX
    assert "internal error" not in caplog.text


# --- with sessions, statements, views -------------------------------------------------------------------------------

TYPES = (
    "SELECT c.oid::regclass, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c JOIN pg_attribute a "
    "ON a.attrelid = c.oid WHERE c.relname = 'visits' AND a.attnum > 0 ORDER BY a.attnum"
)
SQL = Language(
    {"user": "postgres", "database": "postgres", "application_name": "fuzz", "options": "-c statement_timeout=2s"},
    [
        [query("SELECT url, visits FROM visits ORDER BY 1"),
         query("BEGIN; SELECT 1; SAVEPOINT s; ROLLBACK TO s; COMMIT")],
        [parse("SELECT n FROM numbers WHERE n = $1", "s", [20]), describe("S", "s"),
         bind([b"\0" * 7 + b"\5"], statement="s", formats=[1], results=[1]), execute(), SYNC],
        [parse("SELECT * FROM typed WHERE id = $1 AND name = $2"), bind([b"1", b"x"]), describe("P"), execute(1), SYNC],
        [parse("BEGIN"), bind(), execute(), parse("DECLARE c SCROLL CURSOR FOR SELECT * FROM numbers"), bind(),
         execute(), parse("FETCH 3 FROM c"), bind(), describe("P"), execute(2), SYNC,
         query("MOVE BACKWARD 2 IN c; CLOSE c; ROLLBACK")],
        [query("PREPARE p (int) AS SELECT $1 + 1"), query("EXECUTE p (41)"), query("DEALLOCATE p"), close("S", "p"),
         SYNC],
        [query("COPY pairs FROM STDIN"), message(b"d", b"1\ta\n2\t\\N\n"), message(b"d", b"3\tb"), COPY_DONE],
        [query("BEGIN; COPY pairs FROM STDIN CSV; ROLLBACK"), message(b"d", b'1,"a\nb"\n'), COPY_DONE,
         query("ROLLBACK")],
        [parse("COPY (SELECT * FROM typed) TO STDOUT (FORMAT binary)"), bind(), execute(), SYNC],
        [query('SET search_path TO a, "B"; SHOW search_path; RESET ALL; DISCARD ALL')],
        [query(TYPES)],
    ],
    ("SELECT 1", "SELECT * FROM visits WHERE url LIKE './%'", "SELECT 1/0", "SELECT nope", "BEGIN", "COMMIT",
     "ROLLBACK", "SELECT * FROM typed", "SHOW ALL", "LIST RELATIONS", "EXPLAIN SELECT * FROM visits", ";;", "SELECT 'a",
     "FETCH c", "DESCRIBE RELATION pairs", "SELECT count(*) FROM numbers", "COPY pairs (id) FROM STDIN", "SELECT $1"),
    "SELECT $1::{}",
    ("int", "text", "numeric(5,2)", "timestamptz", "int[]", "uuid", "jsonb", "interval", "bytea", "float8", "date"),
)  # fmt: skip


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Any]:
    """Everything but sockets and Spark."""
    from tests.clients.live_server import LiveServer, with_views  # all rooms, which the other tests here do not need

    made = with_views(LiveServer(tmp_path))
    owner = Driven(made.backend)
    owner.say(
        startup(user="postgres", database="postgres"),
        query("CREATE STORE files WITH ('type' = FILE, 'uris' = '.')"),
        query("CREATE STREAM pairs (id INTEGER, name VARCHAR) WITH ('store' = 'files', 'value.format' = 'json')"),
    )
    owner.machine.close()
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.parametrize("messages", [600, pytest.param(MESSAGES, marks=NIGHT)])
def test_the_whole_stack_survives(stack: Any, messages: int, caplog: pytest.LogCaptureFixture) -> None:
    chosen = seed()
    siege = Siege(Fuzzer(random.Random(chosen), SQL), lambda: Driven(stack.backend))
    siege.run(min(WARM_UP, messages // 2))
    threads, before = threading.active_count(), resident_bytes()
    siege.run(count(messages))
    assert threading.active_count() <= threads + 2  # DuckDB's may come late
    assert resident_bytes() - before < GROWTH_BYTES_MAX
    assert siege.slowest_s < 5
    assert "internal error" not in caplog.text
    healthy = Driven(stack.backend)
    answer = healthy.say(startup(user="postgres", database="postgres"), query("SELECT * FROM visits"))
    assert tags(answer) == ["SELECT 3"]
    healthy.machine.close()


# --- over sockets ---------------------------------------------------------------------------------------------------


def delay(client: RawClient) -> float:
    began = time.perf_counter()
    client.send(query("insert 1"))
    assert tags(client.until()) == ["INSERT 0 1"]
    return time.perf_counter() - began


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("connections", [120, pytest.param(10_000, marks=NIGHT)])
def test_others_are_served_during_and_after(connections: int) -> None:
    """Clients that send anything and leave at any moment, some by a reset, beside one that behaves."""
    chosen = seed()
    fuzzer = Fuzzer(random.Random(chosen), TOY)
    others = threading.enumerate()  # servers of other tests
    with Running(connections_max=50) as running, RawClient(running.port) as healthy:
        healthy.log_in()
        calm = statistics.median(delay(healthy) for _ in range(100))
        descriptors_before, delays = descriptors(), []
        before = 0
        for number in range(connections):
            with RawClient(running.port) as client:
                told = fuzzer.stranger() if number % 3 == 0 else [startup(), *fuzzer.messages(), fuzzer.broken_frame()]
                try:
                    client.send(*told)
                    if number % 5 == 0:
                        client.socket.settimeout(0.002)
                        client.socket.recv(100)
                except (OSError, TimeoutError):
                    pass
            delays.append(delay(healthy))
            running.backend.sessions[1:] = []
            if number == min(200, connections // 2):
                before = resident_bytes()
        wait_for(lambda: running.server.connections == 1, 30)
        assert statistics.median(delays) < 2 * calm + 0.005  # the machine that tests share has its own moods
        wait_for(lambda: descriptors() <= descriptors_before)
        assert running.backend.open_results == 0
        assert resident_bytes() - before < GROWTH_BYTES_MAX
        assert delay(healthy) < 1
    wait_for(lambda: not [t for t in threading.enumerate() if t.name.startswith("wire") and t not in others])
