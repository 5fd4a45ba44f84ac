"""The real program as a child process, and what it says; in this process where it only refuses."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.services import class_archives

READY = re.compile(rb"mvserver ready on 127\.0\.0\.1:(\d+)\n")
START_TIMEOUT_S = 30.0


def refusal(patch: pytest.MonkeyPatch, folder: Path, *arguments: str, **variables: str) -> str:
    """What ``mvserver serve`` prints when it ends with 2 before it serves. In this process: a start of its own is a
    second of imports."""
    from mvserver import cli, start

    told = io.StringIO()
    with patch.context() as patched, contextlib.redirect_stderr(told):
        patched.setattr(os, "_exit", sys.exit)
        patched.setattr(logging, "shutdown", lambda: None)
        patched.setattr(start, "set_up_logging", lambda level: None)
        patched.setattr(sys, "setswitchinterval", lambda seconds: None)
        for name in [name for name in os.environ if name.startswith("MVSERVER_")]:
            patched.delenv(name)
        for name, value in variables.items():
            patched.setenv(name, value)
        try:
            code: Any = cli.main(["serve", "--data-dir", str(folder / "data"), "--port", "0", *arguments])
        except SystemExit as ended:
            code = ended.code
    assert code == 2, told.getvalue()
    return told.getvalue()


def without_java() -> dict[str, str]:
    """An environment in which no Java is found, so that no Spark is started."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MVSERVER_", "JAVA_", "SPARK_"))}
    return {**kept, "PATH": ""}


def with_spark() -> dict[str, str]:
    """The environment of a server that starts Spark as others do: its settings are the default ones, but for where the
    archive of Spark's classes is. Else the first server of a machine would make one, beside what is tested."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MVSERVER_")}
    return {**kept, class_archives.VARIABLE: class_archives.prepared()}


class Program:
    """``mvserver serve``; ``stdout`` has what was read of it up to the ready line."""

    def __init__(self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "stderr.log"
        self.began = time.monotonic()
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "mvserver",
                    "serve",
                    "--data-dir",
                    str(folder / "data"),
                    "--port",
                    "0",
                    *arguments,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(without_java() if environment is None else environment),
            )
        self.stdout = b""
        self.port = 0

    def ready(self, timeout_s: float = START_TIMEOUT_S) -> Program:
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout_s
        while (found := READY.search(self.stdout)) is None:
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"not ready: {self.stderr}"
            if select.select([self.process.stdout], [], [], left_s)[0]:
                piece = os.read(self.process.stdout.fileno(), 4096)
                assert piece, f"ended with {self.process.wait()}: {self.stderr}"
                self.stdout += piece
        self.port = int(found[1])
        return self

    def connect(self, **parameters: Any) -> psycopg.Connection[tuple[Any, ...]]:
        given = {"user": "postgres", "dbname": "postgres", "autocommit": True, "connect_timeout": 10, **parameters}
        return psycopg.connect(host="127.0.0.1", port=self.port, **given)

    def took_s(self) -> float:
        """Since its start, but no more than it used the processor: where others had that, the time is not its own."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return min(time.monotonic() - self.began, used)

    @property
    def stderr(self) -> str:
        return self._log.read_text(errors="replace")

    def ended(self, timeout_s: float = START_TIMEOUT_S) -> int:
        return self.process.wait(timeout_s)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
