"""A server in a process of its own that tells how long its event loop was held up (``heartbeats``)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).parents[2]


class Beating:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.serving.heartbeats"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=ROOT, env={},
        )  # fmt: skip
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def longest(self) -> float:
        """Between two heartbeats since the last call."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("?\n")
        stdin.flush()
        return float(stdout.readline())

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres", autocommit=True)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(60) == 0
