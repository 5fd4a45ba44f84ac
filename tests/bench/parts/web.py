"""How long a change takes to many readers of one view over HTTP, and what readers cost that only wait.

Once the server has the front end alone, over a view that changes at a fixed rate; once it is a whole server with a view
over Kafka, which is sent a record at that rate. Readers are another process on the same machine. Ages are from the
moment an epoch is there, or its commit begins, until a reader has it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mvserver.demo.server import free_port
from tests.bench.bench import Bench
from tests.bench.event_server import CONNECTIONS
from tests.bench.load import MARKER_EVERY_S, LiveLoad, preload
from tests.bench.processes import cores_between, own_rss_bytes, usage
from tests.bench.viewsets import View
from tests.bench.workload import WIDE

READERS, EPOCHS_PER_S, SECONDS = 1_000, 10.0, 30.0
IDLE = 10_000
_VIEW = View("few", ("url",), ("sum(amount) AS amount_sum",))
_EVENTS = 5_000  # that the view has before
_HTTP_PORT_FROM = 18080
_LEAST = 100  # the readers connect in groups of so many


def measure(bench: Bench) -> dict[str, Any]:
    scale = min(1.0, bench.settings.scale)
    readers, idle, seconds = _scaled(READERS, scale), _scaled(IDLE, scale), max(3.0, SECONDS * scale)
    found = {"busy": _busy(readers, seconds), "idle": _idle(idle), "whole": _whole(bench, readers, idle, seconds)}
    print(f"    {found}")
    return found


def _whole(bench: Bench, readers: int, idle: int, seconds: float) -> dict[str, Any]:
    """The same of a whole server: its view changes with each record, and the memory is of its process without Spark."""
    port = free_port(_HTTP_PORT_FROM)
    arguments = ("--http-port", str(port), "--http-max-connections", str(CONNECTIONS))
    with bench.fresh(WIDE, [_VIEW], arguments=arguments) as running:
        preload(running.bootstrap, running.topic, running.workload, _EVENTS, seed=1)
        running.watch_until(_EVENTS, timeout_s=300)
        pid = running.server.pid
        load = LiveLoad(running.bootstrap, running.topic, running.workload, 0)  # its markers are a record each 0.1 s
        load.start()
        try:
            with _readers(port, readers, seconds, _VIEW.name) as reading:
                before = usage(pid)
                busy = json.loads(_line(reading))
                busy["cores"] = round(cores_between(before, usage(pid)), 2)
        finally:
            load.stop()
        with running.connect() as client:
            running.watch_until(_EVENTS + load.sent, timeout_s=300)
            row = client.execute("SELECT lane FROM mv_catalog.pipelines").fetchone()
        before_bytes = own_rss_bytes(pid)
        with _readers(port, idle, 20.0, _VIEW.name) as reading:
            found = json.loads(_line(reading))
            after_bytes = own_rss_bytes(pid)
    return {
        "busy": {**busy, "sent_per_s": round(1 / MARKER_EVERY_S), "lane": row and row[0]},
        "idle": {
            "readers": found["readers"],
            "lost": found["told"].get("lost", 0),
            "server_mib": before_bytes >> 20,
            "readers_mib": (after_bytes - before_bytes) >> 20,
        },
    }


def _scaled(readers: int, scale: float) -> int:
    return max(_LEAST, int(readers * scale) // _LEAST * _LEAST)


def _busy(readers: int, seconds: float) -> dict[str, Any]:
    with _server(EPOCHS_PER_S) as (server, port), _readers(port, readers, seconds, "by_page") as reading:
        before = usage(server.pid)
        found = json.loads(_line(reading))
        return {**found, "cores": round(cores_between(before, usage(server.pid)), 2)}


def _idle(readers: int) -> dict[str, Any]:
    with _server(0) as (server, port):
        before = usage(server.pid).rss_bytes
        with _readers(port, readers, 20.0, "by_page") as reading:
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
def _readers(port: int, readers: int, seconds: float, view: str) -> Iterator[subprocess.Popen[str]]:
    with _child("tests.bench.event_readers", str(port), view, str(readers), str(seconds)) as process:
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
