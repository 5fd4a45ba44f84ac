"""The server as a child process: started on a free port, waited for, stopped as an operator would stop it."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import psycopg

HOST = "127.0.0.1"
PORT_DEFAULT = 5432
READY_TIMEOUT_S = 600.0  # on a busy machine; one that ends is noticed at once
STOP_TIMEOUT_S = 30.0  # the server promises 20
_READY = re.compile(r"mvserver ready on (\S+):(\d+)")
_LOG_TAIL_BYTES = 4_000


class ServerError(Exception):
    """The server did not start, or ended; the message has the end of its log."""


class Server:
    """``mvserver serve`` over a data directory. Its output goes to ``log``."""

    def __init__(
        self,
        data_directory: Path,
        log: Path,
        *,
        port: int,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
    ) -> None:
        """``command`` runs in the place of ``mvserver``."""
        self.data_directory = data_directory
        self.log = log
        self.port = port
        self._arguments = tuple(arguments)
        self._environment = environment
        self._command = tuple(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        self._reader: threading.Thread | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerError("the server has not been started")
        return self._process.pid

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Returns when the server accepts connections; Spark may still be starting then."""
        command = [
            *(self._command or program()),
            "serve",
            "--data-dir",
            str(self.data_directory),
            "--host",
            HOST,
            "--port",
            str(self.port),
            *self._arguments,
        ]
        self._ready.clear()
        log = self.log.open("ab")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=None if self._environment is None else dict(self._environment),
                start_new_session=True,  # Ctrl-C in the terminal is ours; the server is told by SIGTERM
            )
        except BaseException:
            log.close()
            raise
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout, log), daemon=True)
        self._reader.start()
        deadline = time.monotonic() + timeout_s
        while not self._ready.wait(0.05):
            if self._process.poll() is not None:
                raise ServerError(f"the server ended with code {self._process.returncode}\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.stop()
                raise ServerError(f"the server was not ready within {timeout_s:g} s\n{self.log_tail()}")

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> int:
        """SIGTERM, and a second one when the server takes longer than it promises. Returns its exit code."""
        process = self._process
        if process is None:
            return 0
        for stop in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                process.send_signal(stop)
            try:
                process.wait(STOP_TIMEOUT_S)
                break
            except subprocess.TimeoutExpired:
                continue
        if self._reader is not None:
            self._reader.join(STOP_TIMEOUT_S)
        return process.returncode if process.returncode is not None else -1

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            host=HOST, port=self.port, user="postgres", dbname=database, autocommit=True, connect_timeout=10
        )

    def log_tail(self) -> str:
        if not self.log.exists():
            return ""
        content = self.log.read_bytes()[-_LOG_TAIL_BYTES:]
        return f"{content.decode(errors='replace').strip()}\n(the whole log: {self.log})"

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _read(self, output: IO[bytes] | None, log: IO[bytes]) -> None:
        if output is None:
            return
        with log, output:
            for line in output:
                log.write(line)
                log.flush()
                if match := _READY.search(line.decode(errors="replace")):
                    self.port = int(match.group(2))
                    self._ready.set()


def program() -> list[str]:
    """The installed program of this environment."""
    beside = Path(sys.executable).with_name("mvserver")
    found = str(beside) if beside.exists() else shutil.which("mvserver")
    if found is not None:
        return [found]
    return [sys.executable, "-c", "import sys; from mvserver.cli import main; sys.exit(main())"]


def free_port(wished: int = PORT_DEFAULT, tries: int = 10) -> int:
    """The wished port, else one of those after it, else any that is free."""
    for port in (*range(wished, wished + tries), 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            chosen: int = probe.getsockname()[1]
            return chosen
    raise ServerError(f"no free port on {HOST}")
