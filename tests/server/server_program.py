"""The real program as a child process, and what it says."""

from __future__ import annotations

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

READY = re.compile(rb"mvserver ready on 127\.0\.0\.1:(\d+)\n")
START_TIMEOUT_S = 30.0


def without_java() -> dict[str, str]:
    """An environment in which no Java is found, so that no Spark is started."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MVSERVER_", "JAVA_", "SPARK_"))}
    return {**kept, "PATH": ""}


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
