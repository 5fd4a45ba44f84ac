"""Push queries through real clients: each shows rows while the query goes on, and can end it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from mvserver.errors import SqlError
from tests.clients.live_server import LiveServer
from tests.clients.test_jdbc import CACHE, VERSION
from tests.clients.test_psql import command, environment

WITHIN_S = 20.0
SCHEMA = pa.schema([("n", pa.int64()), ("url", pa.string())])


class Clicks:
    """A stream whose rows the test puts into every push query that is open."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        (server.files / "clicks").mkdir()
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("CREATE STORE s WITH ('type' = FILE, 'uris' = '.')")
            connection.execute(
                "CREATE STREAM clicks (n BIGINT, url VARCHAR) WITH ('store' = 's', 'value.format' = 'json')"
            )

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.server.conninfo, autocommit=True, **options)

    def opened(self) -> None:
        until(lambda: bool(self.server.engine.pushes))

    def put(self, *numbers: int) -> None:
        rows = pa.table([pa.array(numbers, pa.int64()), pa.array([f"./{n}" for n in numbers])], schema=SCHEMA)
        for each in self.server.engine.pushes:
            each.put(rows)

    def ended(self) -> None:
        until(lambda: not self.server.engine.pushes)


@pytest.fixture
def clicks(own_server: LiveServer) -> Iterator[Clicks]:
    made = Clicks(own_server)
    yield made
    made.ended()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Program:
    """A client program whose lines are read as it prints them."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> tuple[str, str]:
        try:
            return self.process.communicate(timeout=WITHIN_S)
        finally:
            self.process.kill()


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_with_fetch_count(clicks: Clicks) -> None:
    psql = Program(*command(clicks.server, "--csv", "-t", "-v", "FETCH_COUNT=1", "-c", "SELECT n, url FROM clicks"))
    clicks.opened()
    for number in (1, 2):
        clicks.put(number)
        assert psql.line() == f"{number},./{number}"
    psql.process.send_signal(signal.SIGINT)
    out, err = psql.end()
    assert out == ""
    assert err.startswith("Cancel request sent\n")


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_is_told_and_ctrl_c_ends_it(clicks: Clicks) -> None:
    psql = Program(*command(clicks.server, "-At", "-c", "SELECT n, url FROM clicks"))
    clicks.opened()
    assert psql.process.stderr is not None
    assert psql.process.stderr.readline().startswith("NOTICE:  rows are sent as they come")
    assert "FETCH_COUNT 1" in psql.process.stderr.readline()
    psql.process.send_signal(signal.SIGINT)
    assert psql.end()[1].endswith("ERROR:  canceling statement due to user request\n")


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_with_limit(clicks: Clicks) -> None:
    psql = Program(*command(clicks.server, "-At", "-c", "SELECT n, url FROM clicks LIMIT 3"))
    clicks.opened()
    clicks.put(1, 2)
    clicks.put(3, 4)
    assert psql.end() == ("1|./1\n2|./2\n3|./3\n", "")


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_stream(clicks: Clicks, binary: bool) -> None:
    with clicks.connect() as connection:
        rows = connection.cursor(binary=binary).stream("SELECT n, url FROM clicks")
        threading.Thread(target=lambda: (clicks.opened(), clicks.put(1, 2))).start()
        assert [next(rows), next(rows)] == [(1, "./1"), (2, "./2")]
        clicks.put(3)
        assert next(rows) == (3, "./3")
        connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            next(rows)


def test_psycopg_copy(clicks: Clicks) -> None:
    with clicks.connect() as connection, connection.cursor() as cursor:
        with cursor.copy("COPY (SELECT n, url FROM clicks LIMIT 3) TO STDOUT") as copy:
            rows = copy.rows()
            clicks.put(1)
            assert next(rows) == ("1", "./1")
            clicks.put(2, 3, 4)
            assert list(rows) == [("2", "./2"), ("3", "./3")]
        assert cursor.rowcount == 3


def test_psycopg_named_cursor(clicks: Clicks) -> None:
    with clicks.connect() as connection, connection.transaction(), connection.cursor("live") as cursor:
        cursor.execute("SELECT n, url FROM clicks")
        clicks.put(1, 2)
        assert cursor.fetchmany(10) == [(1, "./1"), (2, "./2")]
        clicks.put(3)
        assert cursor.fetchone() == (3, "./3")


def test_statement_timeout_and_transaction(clicks: Clicks) -> None:
    with clicks.connect() as connection:
        connection.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            connection.execute("SELECT n FROM clicks")
        clicks.ended()
        connection.execute("RESET statement_timeout")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_hangs_up(clicks: Clicks) -> None:
    connection = clicks.connect()
    connection.pgconn.send_query(b"SELECT n FROM clicks")
    connection.pgconn.flush()
    clicks.opened()
    connection.close()
    clicks.ended()


def test_a_client_that_does_not_read_costs_no_thread_and_is_ended(clicks: Clicks) -> None:
    """What is sent and not taken fills the socket; the query waits without a worker then, and goes with its client."""
    connection = clicks.connect()
    connection.pgconn.send_query(b"SELECT n, url FROM clicks")
    connection.pgconn.flush()
    clicks.opened()
    (rows,) = clicks.server.engine.pushes
    wide = pa.table([pa.array(range(1000), pa.int64()), pa.array(["x" * 1000] * 1000)], schema=SCHEMA)
    while not rows.full:
        rows.put(wide)
    with clicks.connect() as other:
        assert other.execute("SELECT count(*) FROM visits").fetchone() == (3,)
    connection.close()
    clicks.ended()


def test_an_error_behind_rows(clicks: Clicks) -> None:
    with clicks.connect() as connection:
        rows = connection.cursor().stream("SELECT n, url FROM clicks")
        threading.Thread(target=lambda: (clicks.opened(), clicks.put(1))).start()
        assert next(rows) == (1, "./1")
        clicks.server.engine.pushes[0].end(SqlError("42P01", 'stream "clicks" was dropped'))
        with pytest.raises(psycopg.errors.UndefinedTable, match="was dropped"):
            next(rows)


def test_what_a_push_query_cannot_do(clicks: Clicks) -> None:
    hint = "SET mv.stream_reads = 'bounded' reads what is there now, with any SELECT."
    with clicks.connect() as connection:
        for text, sqlstate in (
            ("SELECT n FROM clicks LIMIT 5 OFFSET 1", "0A000"),
            ("SELECT n FROM clicks ORDER BY n", "0A000"),
            ("SELECT nope FROM clicks", "42703"),
        ):
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(text)
            assert caught.value.sqlstate == sqlstate, text
            if sqlstate == "0A000":
                assert str(caught.value.diag.message_hint).endswith(hint), text
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("SELECT n FROM clicks WHERE n = %s", [1])
        assert caught.value.sqlstate in ("0A000", "42P02")


@pytest.mark.skipif(shutil.which("javac") is None, reason="javac (a JDK) is not installed")
def test_jdbc_with_a_fetch_size(clicks: Clicks, tmp_path: Path) -> None:
    jar = CACHE / f"postgresql-{VERSION}.jar"
    if not jar.exists():
        pytest.skip(f"{jar} is not there")
    source = Path(__file__).with_name("Live.java")
    subprocess.run(["javac", "-d", str(tmp_path), str(source)], check=True, timeout=120, capture_output=True)
    java = Program(
        "java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", f"{tmp_path}:{jar}", "Live", clicks.server.jdbc_url
    )
    clicks.opened()
    clicks.put(1, 2)
    assert [java.line(), java.line()] == ["1 ./1", "2 ./2"]
    clicks.put(3)
    assert java.line() == "3 ./3"
    clicks.put(4, 5)
    assert java.line() == "4 ./4"
    assert java.end() == ("done\n", "")
