"""A real emulator of Snowflake (fakesnow, over DuckDB) for the whole test run, and databases of their own for tests.

It is installed once, beside the user's other caches, with a Python environment of its own: it needs another sqlglot
than the server. Tables are in its memory. It takes every login.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.live import free_port
from tests.services.installed import installed
from tests.services.registries import UNREACHABLE

VERSION = "0.12.1"
_PACKAGES = (f"fakesnow[server]=={VERSION}", "snowflake-connector-python==4.8.1")
_PROGRAM = Path(__file__).with_name("snowflake_program.py")
_INSTALL_TIMEOUT_S, _START_TIMEOUT_S = 600.0, 120.0


def _install(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_INSTALL_TIMEOUT_S)
    done = subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_PACKAGES],
        check=False, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S,
    )  # fmt: skip
    if done.returncode != 0 and UNREACHABLE.search(done.stderr):
        pytest.skip(f"the registry of pip cannot be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr


class SnowflakeEmulator:
    """``connect`` is another program's way in."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.NamedTemporaryFile(prefix="mvserver-snowflake-")  # noqa: SIM115 - closed with the emulator

    def start(self) -> SnowflakeEmulator:
        python = installed(f"fakesnow-{VERSION}-python{sys.version_info[0]}.{sys.version_info[1]}", _install)
        self._process = subprocess.Popen(
            [python / "bin" / "python", "-P", str(_PROGRAM), str(self.port)], stdout=self._log, stderr=self._log
        )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            assert self._process.poll() is None, self.log_tail()
            assert time.monotonic() < deadline, self.log_tail()
            time.sleep(0.1)
        return self

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except OSError:
            return False
        return True

    def log_tail(self) -> str:
        return Path(self._log.name).read_text(errors="replace")[-3000:]

    def properties(self, port: int | None = None) -> dict[str, str]:
        """Of a store; ``port`` is that of something between."""
        return {
            "uris": f"http://127.0.0.1:{port or self.port}", "snowflake.account_id": "org-account",
            "snowflake.username": "STREAMING_USER", "snowflake.password": "secret",
        }  # fmt: skip

    def connect(self) -> Any:
        import snowflake.connector

        return snowflake.connector.connect(
            user="test", password="test", account="test", host="127.0.0.1", port=self.port, protocol="http",
            network_timeout=30, platform_detection_timeout_seconds=0.0,
            session_parameters={"CLIENT_TELEMETRY_ENABLED": False},
        )  # fmt: skip

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        connection = self.connect()
        try:
            found: list[tuple[Any, ...]] = connection.cursor().execute(sql).fetchall()
            return found
        finally:
            connection.close()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._log.close()


@pytest.fixture(scope="session")
def snowflake() -> Iterator[SnowflakeEmulator]:
    """Shared by all tests: leave it running."""
    emulator = SnowflakeEmulator()
    try:
        yield emulator.start()
    finally:
        emulator.stop()


@pytest.fixture
def snowflake_database(snowflake: SnowflakeEmulator) -> Callable[[], str]:
    """Makes a database on the shared emulator, with a schema PUBLIC, under a name that no other test uses."""

    def make() -> str:
        return made_database(snowflake)

    return make


def made_database(emulator: SnowflakeEmulator) -> str:
    name = f"DB_{uuid.uuid4().hex[:12].upper()}"
    emulator.query(f"CREATE DATABASE {name}")
    emulator.query(f"CREATE SCHEMA IF NOT EXISTS {name}.PUBLIC")
    return name
