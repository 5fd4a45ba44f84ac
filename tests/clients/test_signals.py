"""pg_cancel_backend and pg_terminate_backend, here and in a real PostgreSQL: who may end what of whom, and how."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.clients.live_server import LiveServer

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[tuple[Any, ...]]
Connect = Callable[..., Connection]
WITHIN_S = 20.0
_PIDS = "SELECT pid FROM pg_stat_activity WHERE application_name = %s ORDER BY pid"


@pytest.fixture(params=["ours", "theirs"])
def connect(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    opened: list[Connection] = []
    server: LiveServer | None = None
    if request.param == "ours":
        server = LiveServer(tmp_path_factory.mktemp("signals"))
        server.start()
        info = f"host=127.0.0.1 port={server.port} dbname=postgres"
    else:
        info = request.getfixturevalue("postgres_server").dsn

    def made(role: str = "postgres", name: str = "") -> Connection:
        # the real one lets in postgres alone: others are who SET ROLE says
        connection = psycopg.connect(info, user="postgres", application_name=name, autocommit=True)
        opened.append(connection)
        if role != "postgres":
            connection.execute(f"SET SESSION AUTHORIZATION {role}" if server is None else f"SET ROLE {role}")
        return connection

    yield made
    for connection in opened:
        connection.close()
    if server is not None:
        server.stop()
        return
    with psycopg.connect(info, autocommit=True) as root:
        for role in ("sally", "sam", "signallers"):
            root.execute(f"DROP ROLE IF EXISTS {role}")


def until(holds: Callable[[], Any]) -> None:
    ends = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < ends, "it did not come to that"
        time.sleep(0.01)


def value(connection: Connection, text: str, *parameters: Any, binary: bool = False) -> Any:
    row = connection.execute(text, parameters or None, binary=binary).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return row[0]


class Sleeper:
    """A session whose statement takes a minute."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.pid = connection.info.backend_pid
        self.ended: list[str | None] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.connection.execute("SELECT pg_sleep(60)")
        except psycopg.Error as error:
            self.ended.append(error.sqlstate)

    def how_it_ended(self) -> list[str | None]:
        self._thread.join(WITHIN_S)
        assert not self._thread.is_alive()
        return self.ended


def is_active(root: Connection, pid: int) -> bool:
    text = "SELECT state FROM pg_stat_activity WHERE pid = %s"
    return root.execute(text, (pid,)).fetchone() == ("active",)


def test_a_statement_is_cancelled_and_its_session_goes_on(connect: Connect) -> None:
    root, sleeper = connect(), Sleeper(connect())
    until(lambda: is_active(root, sleeper.pid))
    assert value(root, "SELECT pg_cancel_backend(%s)", sleeper.pid) is True
    assert sleeper.how_it_ended() == ["57014"]
    assert value(sleeper.connection, "SELECT 1") == 1


def test_a_session_is_ended_amid_its_statement(connect: Connect) -> None:
    root, sleeper = connect(), Sleeper(connect())
    until(lambda: is_active(root, sleeper.pid))
    assert value(root, "SELECT pg_terminate_backend(%s)", sleeper.pid, binary=True) is True
    (ended,) = sleeper.how_it_ended()
    assert ended == "57P01"
    assert sleeper.connection.closed
    until(lambda: root.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (sleeper.pid,)).fetchone() is None)


def test_a_session_is_ended_amid_the_rows_of_its_result(connect: Connect) -> None:
    root, reader = connect(), connect()
    rows = reader.cursor().stream("SELECT n, repeat('x', 1000) FROM generate_series(1, 1000000) AS t(n)")
    assert next(rows)[0] == 1
    assert value(root, "SELECT pg_terminate_backend(%s)", reader.info.backend_pid) is True
    with pytest.raises(psycopg.OperationalError) as caught:
        for _ in rows:
            pass
    assert caught.value.sqlstate in ("57P01", None)  # None: the real one may close before its word has gone out
    assert reader.closed


def test_all_idle_sessions_of_a_name(connect: Connect) -> None:
    root = connect()
    victims = [connect(name="victim") for _ in range(3)]
    pids = [pid for (pid,) in root.execute(_PIDS, ("victim",))]
    assert pids == sorted(victim.info.backend_pid for victim in victims)
    text = "SELECT pid, pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE application_name = %s ORDER BY 1"
    cursor = root.execute(text, ("victim",))
    assert cursor.description is not None
    assert [(column.name, column.type_code) for column in cursor.description] == [("pid", 23), ("ended", 16)]
    assert cursor.fetchall() == [(pid, True) for pid in pids]
    until(lambda: root.execute(_PIDS, ("victim",)).fetchall() == [])
    for victim in victims:
        with pytest.raises(psycopg.OperationalError):
            victim.execute("SELECT 1")
        assert victim.closed


def test_ones_own_statement_and_session(connect: Connect) -> None:
    connection = connect()
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("SELECT pg_cancel_backend(pg_backend_pid())")
    assert value(connection, "SELECT 2") == 2
    with pytest.raises(psycopg.errors.AdminShutdown):
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert connection.closed


def test_no_such_process(connect: Connect) -> None:
    root = connect()
    told: list[tuple[str | None, str | None]] = []
    root.add_notice_handler(lambda diag: told.append((diag.severity, diag.message_primary)))
    assert value(root, "SELECT pg_cancel_backend(4000001)") is False
    assert value(root, "SELECT pg_catalog.pg_terminate_backend(4000002)") is False
    assert told == [("WARNING", f"PID {pid} is not a PostgreSQL backend process") for pid in (4000001, 4000002)]
    assert value(root, "SELECT pg_cancel_backend(NULL)") is None
    for wrong in ("SELECT pg_cancel_backend('x')", "SELECT pg_cancel_backend()", "SELECT pg_cancel_backend(1, 2)"):
        with pytest.raises((psycopg.errors.InvalidTextRepresentation, psycopg.errors.UndefinedFunction)):
            root.execute(wrong)  # type: ignore[arg-type]


def test_who_may(connect: Connect) -> None:
    root = connect()
    for statement in ("CREATE ROLE signallers", "CREATE ROLE sally LOGIN", "CREATE ROLE sam LOGIN IN ROLE signallers"):
        root.execute(statement)  # type: ignore[arg-type]
    sally, sam = connect("sally"), connect("sam")
    for function in ("pg_cancel_backend", "pg_terminate_backend"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            value(sally, f"SELECT {function}(%s)", root.info.backend_pid)
    assert value(sally, "SELECT pg_cancel_backend(%s)", 4000003) is False
    assert value(root, "SELECT 1") == 1
    assert value(root, "SELECT pg_terminate_backend(%s)", sam.info.backend_pid) is True
    until(
        lambda: (
            root.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (sam.info.backend_pid,)).fetchone() is None
        )
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 WHERE pg_cancel_backend(1)",
        "SELECT DISTINCT pg_cancel_backend(1)",
        "SELECT count(*) FROM (SELECT pg_terminate_backend(1)) AS t",
        "SELECT pg_cancel_backend(1) UNION ALL SELECT true",
        "SELECT *, pg_cancel_backend(1) FROM visits",
    ],
)
def test_elsewhere_it_is_refused(server: LiveServer, text: str) -> None:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
            connection.execute(text)  # type: ignore[arg-type]
        assert "pg_stat_activity" in str(caught.value.diag.message_hint)
