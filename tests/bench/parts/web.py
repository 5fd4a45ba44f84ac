"""How long a change takes to many readers of one view over HTTP, and what readers cost that only wait.

The server has the front end alone, over a view that changes at a fixed rate, and readers are another process on the
same machine. Ages are from the moment an epoch is there until a reader has it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.bench.bench import Bench
from tests.bench.processes import cores_between, usage

READERS, EPOCHS_PER_S, SECONDS = 1_000, 10.0, 30.0
IDLE = 10_000
_LEAST = 100  # the readers connect in groups of so many


def measure(bench: Bench) -> dict[str, Any]:
    scale = min(1.0, bench.settings.scale)
    found = {"busy": _busy(_scaled(READERS, scale), max(3.0, SECONDS * scale)), "idle": _idle(_scaled(IDLE, scale))}
    print(f"    {found}")
    return found


def _scaled(readers: int, scale: float) -> int:
    return max(_LEAST, int(readers * scale) // _LEAST * _LEAST)


def _busy(readers: int, seconds: float) -> dict[str, Any]:
    with _server(EPOCHS_PER_S) as (server, port), _readers(port, readers, seconds) as reading:
        before = usage(server.pid)
        found = json.loads(_line(reading))
        return {**found, "cores": round(cores_between(before, usage(server.pid)), 2)}


def _idle(readers: int) -> dict[str, Any]:
    with _server(0) as (server, port):
        before = usage(server.pid).rss_bytes
        with _readers(port, readers, 20.0) as reading:
            found = json.loads(_line(reading))
            after = usage(server.pid).rss_bytes
    return {
        "readers": found["readers"],
        "lost": found["told"].get("lost", 0),
        "server_mib": before >> 20,
        "readers_mib": (after - before) >> 20,
    }


@contextmanager
def _server(rate: float) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with _child("tests.bench.event_server", str(rate)) as process:
        yield process, int(_line(process))


@contextmanager
def _readers(port: int, readers: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    with _child("tests.bench.event_readers", str(port), "by_page", str(readers), str(seconds)) as process:
        assert _line(process) == "connected"
        yield process


@contextmanager
def _child(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, "the process ended"
    return line
