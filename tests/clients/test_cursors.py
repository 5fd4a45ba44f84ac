"""SQL cursors by real clients: psycopg's server-side cursors, psql's FETCH_COUNT, and movement as PostgreSQL moves."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.clients.live_server import LiveServer


@pytest.fixture
def connection(server: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.conninfo, connect_timeout=10) as made:
        yield made


# --- psycopg --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("binary", [False, True])
def test_a_server_side_cursor(connection: psycopg.Connection[Any], binary: bool) -> None:
    with connection.cursor(name="big", binary=binary) as cursor:
        cursor.execute("SELECT n, n::text AS word FROM numbers WHERE n < %s ORDER BY n", [50_000])
        assert cursor.description is not None
        assert [column.name for column in cursor.description] == ["n", "word"]
        assert cursor.fetchone() == (0, "0")
        assert cursor.fetchmany(3) == [(1, "1"), (2, "2"), (3, "3")]
        cursor.itersize = 10_000
        rest = list(cursor)
        assert (len(rest), rest[-1]) == (49_996, (49_999, "49999"))
    assert connection.execute("SELECT count(*) FROM pg_cursors").fetchone() == (0,)


def test_scrolling(connection: psycopg.Connection[Any]) -> None:
    with connection.cursor(name="c", scrollable=True) as cursor:
        cursor.execute("SELECT n FROM numbers ORDER BY n")
        cursor.scroll(99_999)
        assert cursor.fetchall() == [(99_999,)]
        cursor.scroll(20_000, mode="absolute")
        assert cursor.fetchone() == (20_000,)
        cursor.scroll(-2)
        assert cursor.fetchone() == (19_999,)


def test_without_scroll_it_only_goes_forward(connection: psycopg.Connection[Any]) -> None:
    with connection.cursor(name="c") as cursor:
        cursor.execute("SELECT n FROM numbers ORDER BY n")
        cursor.scroll(10)
        with pytest.raises(errors.ObjectNotInPrerequisiteState) as caught:
            cursor.scroll(-5)
    assert caught.value.diag.message_primary == "cursor can only scan forward"
    assert caught.value.diag.message_hint == "Declare it with SCROLL option to enable backward scan."


def test_with_hold(own_server: LiveServer) -> None:
    with psycopg.connect(own_server.conninfo) as connection:
        cursor = connection.cursor(name="held", withhold=True)
        cursor.execute("SELECT visits FROM visits ORDER BY visits")
        assert cursor.fetchone() == (10,)
        connection.commit()
        own_server.change("visits", "UPDATE {} SET visits = 0")
        assert connection.execute("SELECT sum(visits) FROM visits").fetchone() == (0,)
        assert cursor.fetchall() == [(20,), (30,)]
        connection.rollback()
        assert connection.execute("SELECT name FROM pg_cursors").fetchall() == [("held",)]
        cursor.close()
        assert connection.execute("SELECT name FROM pg_cursors").fetchall() == []


def test_repeatable_read_has_one_state_for_cursors_and_queries(own_server: LiveServer) -> None:
    with psycopg.connect(own_server.conninfo) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        cursor = connection.cursor(name="c")
        cursor.execute("SELECT visits FROM visits ORDER BY visits")
        own_server.change("visits", "UPDATE {} SET visits = 0")
        assert connection.execute("SELECT sum(visits) FROM visits").fetchone() == (60,)
        assert cursor.fetchall() == [(10,), (20,), (30,)]


def test_pg_cursors(connection: psycopg.Connection[Any]) -> None:
    declare = "DECLARE a BINARY SCROLL CURSOR WITH HOLD FOR SELECT 1"
    connection.execute(declare)
    connection.execute("DECLARE b CURSOR FOR SELECT 2")
    found = connection.execute(
        "SELECT name, statement, is_holdable, is_binary, is_scrollable, creation_time <= clock_timestamp() "
        "FROM pg_cursors ORDER BY name"
    ).fetchall()
    assert found == [
        ("a", declare, True, True, True, True),
        ("b", "DECLARE b CURSOR FOR SELECT 2", False, False, False, True),
    ]


def test_a_binary_cursor_in_the_simple_protocol(connection: psycopg.Connection[Any]) -> None:
    connection.execute("DECLARE c BINARY CURSOR FOR SELECT 258 AS n")
    result = connection.pgconn.exec_(b"FETCH c")
    assert (result.fformat(0), result.get_value(0, 0)) == (1, b"\0\0\1\2")


def test_cancelling_a_fetch(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET statement_timeout = '200ms'")
    with pytest.raises(errors.QueryCanceled):  # of which of the two is the engine's matter
        connection.execute(
            "DECLARE c CURSOR FOR SELECT a.n FROM numbers a, numbers b WHERE md5((a.n * b.n)::text) = 'x'; FETCH c"
        )
    connection.rollback()
    assert connection.execute("SELECT 1").fetchone() == (1,)


# --- psql -----------------------------------------------------------------------------------------------------------
@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_reads_in_parts(server: LiveServer) -> None:
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-d", "postgres",
         "-v", "FETCH_COUNT=700", "-c", "SELECT n FROM numbers WHERE n < 20000 ORDER BY n"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(number) for number in range(20_000)]


# --- PostgreSQL moves the same way ----------------------------------------------------------------------------------
def answer(connection: psycopg.Connection[Any], statement: str) -> Any:
    """Tag and rows, or SQLSTATE and message; after an error the transaction is taken back to its savepoint."""
    try:
        cursor = connection.execute(statement)
    except psycopg.Error as error:
        connection.execute("ROLLBACK TO SAVEPOINT s")
        return error.diag.sqlstate, error.diag.message_primary
    return cursor.statusmessage, cursor.fetchall() if cursor.description else None


def steps(seed: int, count: int) -> list[str]:
    made = random.Random(seed)
    found = []
    for _ in range(count):
        number = made.randint(-7, 7)
        direction = made.choice(
            ["", "NEXT", "PRIOR", "FIRST", "LAST", "ALL", "FORWARD ALL", "BACKWARD ALL", "FORWARD", "BACKWARD",
             f"{number}", f"FORWARD {number}", f"BACKWARD {number}", f"ABSOLUTE {number}", f"RELATIVE {number}"]
        )  # fmt: skip
        found.append(f"{made.choice(['FETCH', 'FETCH', 'MOVE'])} {direction} FROM c")
    return found


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["SCROLL", "NO SCROLL", "SCROLL, held", "NO SCROLL, held"])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_movement_is_postgresqls(server: LiveServer, postgres_server: Any, kind: str, rows: int) -> None:
    scroll, _, held = kind.partition(", ")
    declare = (
        f"DECLARE c {scroll} CURSOR {'WITH HOLD' if held else ''} FOR "
        f"SELECT g FROM generate_series(1, {rows}) AS t(g) ORDER BY g"
    )
    steps_each = 40 if scroll == "SCROLL" else 4  # a cursor that only goes forward is soon at its end, or in error
    with psycopg.connect(server.conninfo) as ours, psycopg.connect(postgres_server.dsn) as theirs:
        for seed in range(2 if scroll == "SCROLL" else 15):
            for each in (ours, theirs):
                each.rollback()
                each.execute("CLOSE ALL")
                each.execute(declare)
                if held:
                    each.execute("MOVE 2 FROM c")
                    each.commit()
                each.execute("SAVEPOINT s")
            for step in steps(seed, steps_each):
                expected = answer(theirs, step)
                assert answer(ours, step) == expected, (seed, step)
                if expected[0] == "55000":
                    break


@pytest.mark.postgres
def test_errors_are_postgresqls(server: LiveServer, postgres_server: Any) -> None:
    scripts = [
        ["DECLARE c CURSOR FOR SELECT 1"],
        ["FETCH c"],
        ["CLOSE c"],
        ["MOVE 5 IN c"],
        ["BEGIN", "DECLARE c CURSOR FOR SELECT 1", "DECLARE c CURSOR FOR SELECT 2"],
        ["BEGIN", "DECLARE c SCROLL NO SCROLL CURSOR FOR SELECT 1"],
        ["BEGIN", "DECLARE c NO SCROLL CURSOR FOR SELECT 1", "SAVEPOINT s", "FETCH c", "FETCH PRIOR FROM c",
         "ROLLBACK TO SAVEPOINT s", "FETCH c", "ROLLBACK TO SAVEPOINT s", "CLOSE c", "COMMIT"],
        ["BEGIN", "SAVEPOINT s", "DECLARE c CURSOR FOR SELECT 1", "ROLLBACK TO SAVEPOINT s", "FETCH c"],
        ["BEGIN", "SAVEPOINT s", "DECLARE c CURSOR FOR SELECT 1", "RELEASE SAVEPOINT s", "FETCH c", "COMMIT",
         "FETCH c"],
        ["BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "ROLLBACK", "FETCH c"],
        ["BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "COMMIT", "BEGIN", "FETCH c", "ROLLBACK", "FETCH c",
         "CLOSE c", "CLOSE c"],
        ["DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT 1", "FETCH c", "FETCH PRIOR FROM c", "FETCH c", "CLOSE c"],
        ["DECLARE c CURSOR WITH HOLD FOR SELECT 1", "DISCARD ALL", "CLOSE c"],
        ["DECLARE c CURSOR WITH HOLD FOR SELECT 1", "DECLARE d CURSOR WITH HOLD FOR SELECT 2", "CLOSE ALL", "FETCH d"],
        ["DECLARE c CURSOR FOR SELECT 1; FETCH c", "FETCH c"],
        ["DECLARE c CURSOR WITH HOLD FOR SELECT 1; SELECT 1/0", "FETCH c"],
        ["COPY (SELECT 1) TO STDOUT (FORMAT xml)"],
        ["COPY (SELECT 1) TO STDOUT (DELIMITER 'ab')"],
        ["COPY (SELECT 1 AS a) TO STDOUT (FORMAT csv, FORCE_QUOTE (b))"],
        ["COPY nowhere TO STDOUT"],
        ["COPY (SELECT $1) TO STDOUT"],
    ]  # fmt: skip

    def run(dsn: str, script: list[str]) -> list[Any]:
        heard: list[Any] = []
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement in script:
                result = connection.pgconn.exec_(statement.encode())
                status = (result.error_field(ord("C")) or b"").decode() or (result.command_status or b"").decode()
                heard.append((status, result.ntuples))
        return heard

    for script in scripts:
        assert run(server.conninfo, script) == run(postgres_server.dsn, script), script
