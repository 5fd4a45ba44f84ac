"""A server in a process of its own, and how much memory that takes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

PROGRAM = "tests.serving.memory_program"
ROOT = Path(__file__).parents[2]
MIB = 2**20
COMES_BACK_S = 120.0
ALLOCATORS_KEEP_MIB = 10  # a busy machine spreads work over more threads, each of which keeps some
QUIET_S = 3.0  # the server looks for what it can give back every two seconds


class MeasuredServer:
    def __init__(self, folder: Path, **options: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, str(folder), json.dumps(options)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._asking = threading.Lock()
        self.port = int(self._answer())
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def connect(self, role: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(f"host=127.0.0.1 port={self.port} user={role} dbname=postgres", autocommit=True)

    def resident(self) -> int:
        """MiB without files' pages."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("RssAnon")]
        return int(line.split()[1]) // 1024

    def ask(self, command: str) -> str:
        with self._asking:
            assert self._process.stdin is not None
            self._process.stdin.write(f"{command}\n")
            self._process.stdin.flush()
            return self._answer()

    def settled(self) -> int:
        """What it takes when it has been left alone until that does not become less."""
        least, since = self.resident(), time.monotonic()
        while time.monotonic() - since < QUIET_S:
            time.sleep(0.1)
            if self.resident() < least:
                least, since = self.resident(), time.monotonic()
        return least

    def comes_back_to(self, base: int, beside: int = 0) -> None:
        """Within 20 %, and as many bytes more as are kept with purpose or stay in the allocators."""
        self.wait_until(lambda: self.ask("left") == "0")
        self.wait_until(lambda: self.resident() <= base * 1.2 + ALLOCATORS_KEEP_MIB + beside // MIB)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        ends = time.monotonic() + COMES_BACK_S
        while not condition():
            assert time.monotonic() < ends, f"it takes {self.resident()} MiB, and {self.ask('left')} are left at work"
            time.sleep(0.05)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _watch(self) -> None:
        while not self._stop.wait(0.01) and self._process.poll() is None:
            self.peak = max(self.peak, self.resident())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(5)
        self._process.kill()
        self._process.wait(10)
