"""psql itself: its backslash commands, its errors, and Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time

import pytest

from tests.clients.live_server import LiveServer

pytestmark = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")


def command(server: LiveServer, *arguments: str) -> list[str]:
    address = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-d", "postgres"]
    return ["psql", "-X", *address, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PGCONNECT_TIMEOUT": "10", "PGCLIENTENCODING": "UTF8", "LC_ALL": "C.UTF-8"}


def psql(server: LiveServer, *commands: str, tuples: bool = True) -> list[str]:
    """What psql prints for the commands, line by line; unaligned, with | between columns."""
    arguments = ["-A", *(["-t"] if tuples else []), *(part for text in commands for part in ("-c", text))]
    done = subprocess.run(
        command(server, *arguments), capture_output=True, text=True, timeout=60, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def script(server: LiveServer, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(server, "-A", "-t", "-f", "-"),
        input=text, capture_output=True, text=True, timeout=60, env=environment(), check=False,
    )  # fmt: skip


def test_a_query(server: LiveServer) -> None:
    assert psql(server, "SELECT url, visits FROM visits ORDER BY visits DESC", tuples=False) == [
        "url|visits", "./home|30", "./shop|20", "./cart|10", "(3 rows)",
    ]  # fmt: skip


def test_several_statements(server: LiveServer) -> None:
    done = script(server, "SELECT 1 AS a\\; SELECT 2 AS b;\nSHOW server_encoding;\n")
    assert (done.stdout.split(), done.stderr) == (["1", "2", "UTF8"], "")


def test_list_of_relations(server: LiveServer) -> None:
    assert psql(server, "\\d") == [
        "public|numbers|materialized view|postgres",
        "public|typed|materialized view|postgres",
        "public|visits|materialized view|postgres",
    ]
    assert psql(server, "\\dm") == psql(server, "\\d")
    assert psql(server, "\\dm v*") == ["public|visits|materialized view|postgres"]


def test_no_tables(server: LiveServer) -> None:
    done = script(server, "\\dt\n")
    assert done.returncode == 0
    assert "Did not find any" in done.stdout + done.stderr


def test_one_view(server: LiveServer) -> None:
    lines = psql(server, "\\d visits", tuples=False)
    assert lines[0] == 'Materialized view "public.visits"'
    assert lines[1] == "Column|Type|Collation|Nullable|Default"
    assert [line.split("|")[:2] for line in lines[2:4]] == [["url", "text"], ["visits", "bigint"]]
    assert any("UNIQUE" in line and "(url)" in line for line in lines[4:]), lines


def test_types_of_columns(server: LiveServer) -> None:
    columns = [line.split("|") for line in psql(server, "\\d typed", tuples=False)[2:15]]
    assert [column[1] for column in columns] == [
        "integer", "boolean", "smallint", "bigint", "real", "double precision", "numeric(12,2)", "text",
        "bytea", "date", "time without time zone", "timestamp without time zone", "timestamp with time zone",
    ]  # fmt: skip
    assert columns[0][3] == "not null"


def test_databases_schemas_roles(server: LiveServer) -> None:
    databases = psql(server, "\\l")
    assert any(line.startswith("postgres|postgres|UTF8|") for line in databases), databases
    assert "public|postgres" in psql(server, "\\dn")
    assert any(line.startswith("postgres|Superuser") for line in psql(server, "\\du"))


def test_conninfo(server: LiveServer) -> None:
    (line,) = psql(server, "\\conninfo")
    assert line == (
        f'You are connected to database "postgres" as user "postgres" on host "127.0.0.1" at port "{server.port}".'
    )


def test_error_with_sqlstate_and_position(server: LiveServer) -> None:
    done = script(server, "\\set VERBOSITY verbose\nSELECT url\n FROM nothing;\n")
    lines = done.stderr.splitlines()
    assert lines[0].endswith('ERROR:  42P01: relation "nothing" does not exist')
    assert lines[1] == "LINE 2:  FROM nothing;"
    assert lines[2].index("^") == lines[1].index("nothing")


def test_position_in_the_second_statement_of_a_text(server: LiveServer) -> None:
    done = script(server, "SELECT 1\\; SELECT missing FROM visits;\n")
    lines = done.stderr.splitlines()
    assert lines[0].endswith('ERROR:  column "missing" does not exist')
    assert lines[2].index("^") == lines[1].index("missing")


def test_sqlstate_of_the_last_error(server: LiveServer) -> None:
    done = script(server, "SELEC;\n\\echo :LAST_ERROR_SQLSTATE\nSELECT 1;\n\\echo :SQLSTATE :ROW_COUNT\n")
    assert done.stdout.split() == ["42601", "1", "00000", "1"]


def test_transactions_show_in_the_prompt(server: LiveServer) -> None:
    done = script(server, "BEGIN;\nSELECT * FROM nothing;\nSELECT 1;\nROLLBACK;\nSELECT 5;\n")
    assert done.stdout.split() == ["BEGIN", "ROLLBACK", "5"]
    assert "current transaction is aborted" in done.stderr


def test_gdesc_describes_without_running(server: LiveServer) -> None:
    done = script(server, "SELECT url, count(*) FROM visits GROUP BY url \\gdesc\n")
    assert done.stdout.split("\n")[:2] == ["url|text", "count|bigint"]


def test_ctrl_c_cancels_and_the_session_goes_on(server: LiveServer) -> None:
    process = subprocess.Popen(
        command(server, "-A", "-t", "-f", "-"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("SELECT 'ready';\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n % 7 = 3;\nSELECT 'after';\n")
    process.stdin.flush()
    assert wait_until_active(server), "the query did not begin"
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert time.monotonic() - started < 3
    assert "canceling statement due to user request" in errors
    del output  # psql reading a script ends after Ctrl-C


def wait_until_active(server: LiveServer) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if any(row.state == "active" and "a.n * b.n" in row.query for row in server.backend.registry.activity()):
            return True
        time.sleep(0.02)
    return False
