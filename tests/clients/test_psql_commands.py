"""psql's commands, cell by cell as over a real PostgreSQL 15 that holds relations of the same shape."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.clients.live_server import LiveServer, with_views
from tests.clients.psql_world import COMMANDS, RUN_ONLY, run

pytestmark = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")

RECORDED: dict[str, list[str]] = json.loads(Path(__file__).with_name("pg15_psql.json").read_text(encoding="utf-8"))

KNOWN: dict[str, str] = {
    r"^public\|(numbers|typed|visits)(_key)?\|.*\|\d+ (bytes|kB)\|$": "sizes of views are an estimate",
    r"^id\|integer\|\|(not null)?\|": "columns of our views may be NOT NULL",
    r"^ SELECT|^    v\.|^   FROM": "the definition of a view is shown as it was written",
    r"^template[01]\||^postgres=CTc": "there are no templates of databases",
    r"^postgres\|postgres\|UTF8\|.*(bytes|kB)\|pg_default\|": "sizes and comments of databases",
    r"^mv_catalog\|": "a schema of ours",
    r"^(public\|(pg_database_owner|postgres)(\||$)|=U/(pg_database_owner|postgres))": "the owner of the schema public",
    r"plpgsql|PL/pgSQL|Did not find any extensions|^Object description$|^List of installed extensions$"
    r"|^Name\|Version\|Schema\|Description$": "there is no procedural language",
    r"^server_version_num\|": "the release",
}
"""Patterns of lines that only one of the two has, with the reason."""

_COUNT = re.compile(r"\(\d+ rows?\)")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    server = with_views(LiveServer(tmp_path_factory.mktemp("psql")))
    server.start()
    (server.files / "shop" / "clicks").mkdir(parents=True)
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE STORE shop WITH ('type' = FILE, 'uris' = 'shop')")
        connection.execute(
            "CREATE STREAM clicks (url VARCHAR, at BIGINT, price DECIMAL(10, 2)) "
            "WITH ('store' = 'shop', 'topic' = 'clicks', 'value.format' = 'json')"
        )
    yield server
    server.stop()


def _compared(lines: list[str]) -> Counter[str]:
    return Counter(
        line for line in lines if not _COUNT.fullmatch(line) and not any(re.search(known, line) for known in KNOWN)
    )


@pytest.fixture(scope="module")
def printed(world: LiveServer) -> dict[str, list[str]]:
    return run(world.conninfo, COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_command(printed: dict[str, list[str]], command: str) -> None:
    ours, theirs = _compared(printed[command]), _compared(RECORDED[command])
    assert (sorted((ours - theirs).elements()), sorted((theirs - ours).elements())) == ([], [])


def test_every_other_command_runs(world: LiveServer) -> None:
    printed = run(world.conninfo, RUN_ONLY)
    assert [line for lines in printed.values() for line in lines if "ERROR" in line] == []
    assert all(printed[command] for command in ("\\dAo", "\\dAp+", "\\dfS+", "\\doS+", "\\dconfig+ *"))


def test_settings_of_the_session_are_those_of_pg_settings(world: LiveServer) -> None:
    asked = "SELECT setting, unit, source, boot_val, reset_val FROM pg_settings WHERE name = %s"
    with psycopg.connect(world.conninfo, autocommit=True, application_name="probe") as connection:
        connection.execute("SET statement_timeout = '2min'")
        connection.execute("SET work_mem = '16MB'")
        seen = {
            name: connection.execute(asked, [name]).fetchone()
            for name in ("statement_timeout", "work_mem", "application_name", "mv.filling_timeout", "search_path")
        }
    assert seen == {
        "statement_timeout": ("120000", "ms", "session", "0", "0"),
        "work_mem": ("16384", "kB", "session", "4096", "4096"),
        "application_name": ("probe", None, "client", "", "probe"),
        "mv.filling_timeout": ("60000", "ms", "default", "60000", "60000"),
        "search_path": ('"$user", public', None, "default", '"$user", public', '"$user", public'),
    }


def test_watch_repeats(world: LiveServer) -> None:
    script = subprocess.Popen(
        ["psql", "-X", "-A", "-t", world.conninfo, "-f", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert script.stdin is not None
    assert script.stdout is not None
    script.stdin.write("SELECT count(*) FROM visits \\watch 0.05\n")
    script.stdin.flush()
    seen = 0
    while seen < 3:
        line = script.stdout.readline()
        assert line, "psql ended"
        seen += line == "3\n"
    script.send_signal(signal.SIGINT)
    script.stdin.close()
    script.wait(timeout=20)


class Terminal:
    """psql at a terminal, for what it does at the Tab key."""

    def __init__(self, conninfo: str) -> None:
        master, slave = pty.openpty()
        self._master = master
        environment = {**os.environ, "TERM": "dumb", "PAGER": "cat", "PSQL_HISTORY": "/dev/null", "LC_ALL": "C.UTF-8"}
        self._process = subprocess.Popen(
            ["psql", "-X", conninfo], stdin=slave, stdout=slave, stderr=slave, env=environment, close_fds=True
        )
        os.close(slave)
        self.until("postgres=# ")

    def until(self, wanted: str) -> str:
        heard = ""
        deadline = time.monotonic() + 20
        while wanted not in heard:
            ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"{wanted!r} did not come: {heard!r}"
            heard += os.read(self._master, 65_536).decode().replace("\a", "")
        return heard

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._master)


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("SELECT * FROM vis", "visits"),
        ("\\d vis", "visits"),
        ("\\c postg", "postgres"),
        ("SET search_path TO pub", "public"),
        ("SHOW standard_conf", "standard_conforming_strings"),
        ("\\des sh", "shop"),
    ],
)
def test_tab_completion(world: LiveServer, typed: str, completed: str) -> None:
    terminal = Terminal(world.conninfo)
    try:
        terminal.type(typed + "\t")
        terminal.until(completed)
    finally:
        terminal.close()
