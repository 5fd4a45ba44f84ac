"""The program as an operator sees it: how it starts, what it refuses, how it ends. No Java is found, so no Spark."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import psycopg
import pytest

from tests.server.program import START_TIMEOUT_S, Program, refusal

FIRST_ANSWER_MAX_S = 4.0  # on a slow machine; the promise is 2 s


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    timeouts = (
        "--statement-timeout",
        "7s",
        "--idle-in-transaction-timeout",
        "1500ms",
        "--read-while-filling-wait",
        "0",
    )
    with Program(tmp_path_factory.mktemp("server"), *timeouts, "--pull-threads", "1") as program:
        yield program.ready()


def test_it_says_that_it_is_ready_answers_at_once_and_ends_with_0_and_silence(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        program.ready()
        assert program.stdout == f"mvserver ready on 127.0.0.1:{program.port}\n".encode()
        with program.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            assert program.took_s() < FIRST_ANSWER_MAX_S
            told = time.monotonic()
            program.terminate()
            assert program.ended(20) == 0
            assert time.monotonic() - told < 20
            with pytest.raises(psycopg.OperationalError, match="terminating connection due to administrator command"):
                connection.execute("SELECT 1")
        assert "nanobind" not in program.stderr
        assert "Traceback" not in program.stderr


def test_a_running_statement_is_cancelled_after_the_time_it_is_given(tmp_path: Path) -> None:
    with Program(tmp_path, "--shutdown-timeout", "100ms") as program:
        connection = program.ready().connect()
        failures: list[psycopg.Error] = []

        def sleep() -> None:
            try:
                connection.execute("SELECT pg_sleep(60)")
            except psycopg.Error as error:
                failures.append(error)

        sleeper = threading.Thread(target=sleep)
        sleeper.start()
        with program.connect() as watcher:
            _until_active(watcher, "SELECT pg_sleep(60)")
        program.terminate()
        assert program.ended(20) == 0
        sleeper.join(10)
        assert len(failures) == 1


def test_a_second_sigterm_ends_it_at_once(tmp_path: Path) -> None:
    with Program(tmp_path, "--shutdown-timeout", "60s") as program:
        connection = program.ready().connect()
        sleeper = threading.Thread(target=lambda: _ignoring(connection, "SELECT pg_sleep(60)"))
        sleeper.start()
        with program.connect() as watcher:
            _until_active(watcher, "SELECT pg_sleep(60)")
        program.terminate()
        while _lets_in(program):  # until the first one is taken up
            assert time.monotonic() - program.began < START_TIMEOUT_S
        told = time.monotonic()
        program.terminate()
        assert program.ended(5) == 128 + signal.SIGTERM
        assert time.monotonic() - told < 5
        sleeper.join(10)


def test_a_second_server_on_the_same_data_is_refused(server: Program, tmp_path: Path) -> None:
    data = server.process.args[server.process.args.index("--data-dir") + 1]  # type: ignore[union-attr,index]
    with Program(tmp_path, "--data-dir", str(data)) as second:
        assert second.ended() == 2
        assert second.stderr.startswith(f"mvserver: data directory {data} is in use by another server\nHINT:  Stop the")


def test_a_port_in_use_is_told_as_such(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Program(tmp_path, "--port", str(port)) as program:
            assert program.ended() == 2
            told = program.stderr
    assert f"mvserver: cannot listen on 127.0.0.1:{port}\nDETAIL:  Address already in use.\nHINT:  " in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--host", "0.0.0.0"), 'mvserver: cannot listen on "0.0.0.0": it is not a loopback address\n'),
        (("--prot", "1"), "unrecognized arguments: --prot 1"),
        (("--rewriter", "no_such_module:R"), 'mvserver: "no_such_module:R" of setting "rewriter" cannot be loaded\n'),
        (("--extensions", "json:loads"), "DETAIL:  It has no method type and no method apply.\n"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told in refusal(monkeypatch, tmp_path, *arguments)
    assert not (tmp_path / "data" / "catalog.db").exists()


def test_an_unknown_setting_of_the_environment_is_refused(tmp_path: Path) -> None:
    with Program(tmp_path, environment={"MVSERVER_PROT": "1"}) as program:
        assert program.ended() == 2
        assert program.stderr.startswith('mvserver: unknown setting "MVSERVER_PROT"\n')


def test_without_java_it_serves_and_says_what_is_missing(server: Program, tmp_path: Path) -> None:
    (Path(server.process.args[5]) / "files" / "clicks").mkdir(parents=True)  # type: ignore[index]
    with server.connect() as connection:
        connection.execute("CREATE STORE s WITH ('type' = FILE, 'uris' = '.')")
        connection.execute("CREATE STREAM clicks (url VARCHAR) WITH ('store' = 's', 'value.format' = 'json')")
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("CREATE MATERIALIZED VIEW v AS SELECT url, COUNT(*) AS n FROM clicks GROUP BY url")
        assert refused.value.sqlstate == "58000"
        assert refused.value.diag.message_primary == "Spark cannot start: it needs Java 17 or newer"
        assert "pip install -e '.[java]'" in (refused.value.diag.message_hint or "")
        assert connection.execute("SELECT count(*) FROM mv_catalog.queries").fetchone() == (0,)
    assert "Spark cannot start: it needs Java 17 or newer" in server.stderr


def test_the_servers_settings_are_defaults_of_the_sessions(server: Program) -> None:
    with server.connect() as connection:
        for name, value in (
            ("statement_timeout", "7s"),
            ("idle_in_transaction_session_timeout", "1500ms"),
            ("mv.filling_timeout", "0"),
        ):
            assert connection.execute(f"SHOW {name}").fetchone() == (value,)
            assert connection.execute(f"SELECT current_setting('{name}')").fetchone() == (value,)
        connection.execute("SET statement_timeout = 0")
        connection.execute("RESET statement_timeout")
        assert connection.execute("SHOW statement_timeout").fetchone() == ("7s",)


def test_an_idle_transaction_is_told_at_once_that_it_is_over(server: Program) -> None:
    connection = server.connect()
    with socket.socket(fileno=socket.dup(connection.fileno())) as wire:
        connection.execute("BEGIN")
        wire.settimeout(10)
        heard = b""
        while piece := wire.recv(4096):  # nothing is asked: it comes by itself, and then the connection's end
            heard += piece
    assert b"25P03" in heard
    connection.close()


def test_pg_stat_activity_shows_the_sessions_by_the_number_that_clients_know(server: Program) -> None:
    with server.connect(application_name="one") as one, server.connect(application_name="two") as two:
        one.execute("SELECT 'last of one'")
        assert two.execute("SELECT pg_backend_pid()").fetchone() == (two.info.backend_pid,)
        rows = two.execute(
            "SELECT pid, usename, datname, client_addr, state, query, backend_start <= now(), datid > 0 "
            "FROM pg_stat_activity WHERE application_name = 'one'"
        ).fetchall()
        here = IPv4Address("127.0.0.1")
        assert rows == [
            (one.info.backend_pid, "postgres", "postgres", here, "idle", "SELECT 'last of one'", True, True)
        ]
        own = two.execute("SELECT state FROM pg_catalog.pg_stat_activity WHERE pid = pg_backend_pid()").fetchone()
        assert own == ("active",)
        assert two.execute("SELECT count(*) FROM pg_class WHERE relname = 'pg_stat_activity'").fetchone() == (1,)


def test_statements_that_wait_starve_nobody(server: Program) -> None:
    """More waiting statements than there are turns in DuckDB (one here), and an open cursor besides."""
    sleepers = [server.connect() for _ in range(20)]
    threads = [threading.Thread(target=lambda c=c: _ignoring(c, "SELECT pg_sleep(60)")) for c in sleepers]
    for thread in threads:
        thread.start()
    try:
        with server.connect() as reader, server.connect() as watcher:
            half_read = reader.cursor().stream("SELECT * FROM generate_series(1, 3000000)")
            assert next(half_read) == (1,)
            _until_active(watcher, "SELECT pg_sleep(60)", 20)
            half_read.close()
    finally:
        for sleeper in sleepers:
            sleeper.cancel_safe(timeout=10)
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        for sleeper in sleepers:
            sleeper.close()


def _lets_in(program: Program) -> bool:
    try:
        program.connect().close()
    except psycopg.OperationalError:
        return False
    return True


def _until_active(watcher: psycopg.Connection[tuple[object, ...]], query: str, count: int = 1) -> None:
    deadline = time.monotonic() + 10
    text = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = %s"
    while watcher.execute(text, [query]).fetchone() != (count,):
        assert time.monotonic() < deadline


def _ignoring(connection: psycopg.Connection[tuple[object, ...]], text: str) -> None:
    try:
        connection.execute(text)
    except psycopg.Error:
        return
