"""Clients of a measurement, each a process with one connection, over TCP on loopback."""

from __future__ import annotations

import multiprocessing
import random
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol

import psycopg

from tests.bench.stats import latency_summary

PROTOCOLS = ("simple", "extended", "prepared")
_WARM_UP = 50  # statements: prepared by then, plans known, caches warm
_READ_BYTES = 1 << 20
_READY = b"Z\0\0\0\5I"


class Parameters(Protocol):
    def __call__(self, chance: random.Random) -> Sequence[object]: ...


@dataclass(frozen=True)
class Question:
    """What the clients ask; ``parameters`` must be a function of a module, since it travels to their processes."""

    name: str
    text: str
    parameters: Parameters


def ask(port: int, question: Question, *, clients: int, seconds: float, protocol: str = "prepared") -> dict[str, Any]:
    """Queries a second of all clients together, and the latencies of all of them."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for number in range(clients):
        mine, theirs = context.Pipe()
        process = context.Process(target=_client, args=(theirs, port, question, protocol, seconds, number), daemon=True)
        process.start()
        pipes.append(mine)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()
    for pipe in pipes:
        pipe.send("go")
    latencies_ms = [latency for pipe in pipes for latency in pipe.recv()]
    for process in processes:
        process.join()
    return {"per_s": round(len(latencies_ms) / seconds, 1), **latency_summary(latencies_ms)}


def conninfo(port: int) -> str:
    return f"host=127.0.0.1 port={port} user=postgres dbname=postgres"


def _client(pipe: Connection, port: int, question: Question, protocol: str, seconds: float, seed: int) -> None:
    chance = random.Random(seed)
    latencies_ms = []
    with psycopg.connect(conninfo(port), autocommit=True) as connection:
        connection.prepare_threshold = 0 if protocol == "prepared" else None
        cursor = psycopg.ClientCursor(connection) if protocol == "simple" else connection.cursor()

        def once() -> None:
            cursor.execute(question.text, question.parameters(chance))
            if cursor.description is not None:
                cursor.fetchall()

        for _ in range(_WARM_UP):
            once()
        pipe.send("ready")
        pipe.recv()
        began = time.perf_counter()
        end = began + seconds
        while began < end:
            once()
            done = time.perf_counter()
            latencies_ms.append((done - began) * 1000)
            began = done
    pipe.send(latencies_ms)


def stream(port: int, text: str, watch: Callable[[], None] = lambda: None) -> tuple[float, int]:
    """Seconds and bytes of one simple query's whole answer, read as fast as it comes and thrown away.

    ``watch`` is called between reads.
    """
    with socket.create_connection(("127.0.0.1", port)) as wire:
        body = struct.pack("!i", 3 << 16) + b"user\0postgres\0database\0postgres\0\0"
        wire.sendall(struct.pack("!i", len(body) + 4) + body)
        _read(wire)
        began = time.perf_counter()
        wire.sendall(b"Q" + struct.pack("!i", len(text) + 5) + text.encode() + b"\0")
        size = _read(wire, watch)
        return time.perf_counter() - began, size


def _read(wire: socket.socket, watch: Callable[[], None] = lambda: None) -> int:
    """Up to ReadyForQuery."""
    size, tail = 0, b""
    while not tail.endswith(_READY):
        data = wire.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("the server hung up")
        size += len(data)
        tail = (tail + data)[-len(_READY) :]
        watch()
    return size
