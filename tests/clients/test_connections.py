"""Many idle connections, and clients that are slow to say anything: each costs little, and a healthy one is answered.

The real sessions over the real wire, in this process; so the memory measured has the clients' side in it too.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mvserver.pgwire.server import PgWireServer
from tests.clients.live_server import LiveServer, with_views
from tests.wire.client import RawClient, query, rows, startup
from tests.wire.server import wait_for

KIB = 1024
CONNECTION_BYTES_MAX = 150 * KIB
LOGIN = {"user": "postgres", "database": "postgres"}
HEALTHY_S_MAX = 1.0


class Crowded:
    """A second port of a server, with room for more connections and little patience."""

    def __init__(self, server: LiveServer, connections: int, patience_s: float) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.wire = PgWireServer(
            server.backend, "127.0.0.1", 0, connections_max=connections, authentication_timeout_s=patience_s
        )
        asyncio.run_coroutine_threadsafe(self.wire.start(), self.loop).result(20)

    @property
    def conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.wire.port} user=postgres dbname=postgres"

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.wire.shutdown(0.0), self.loop).result(20)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


@pytest.fixture
def views(tmp_path: Path) -> Iterator[LiveServer]:
    server = with_views(LiveServer(tmp_path))
    server.start()
    yield server
    server.stop()


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def idle(crowded: Crowded) -> RawClient:
    """Logged in, has asked once, and says nothing more."""
    client = RawClient(crowded.wire.port, timeout=30)
    client.log_in(**LOGIN)
    client.send(query("SELECT visits FROM visits WHERE url = './shop'"))
    assert rows(client.until()) == [(b"20",)]
    return client


def slow(crowded: Crowded) -> RawClient:
    """The start-up packet, of which not all comes."""
    client = RawClient(crowded.wire.port, timeout=30)
    client.send(startup(**LOGIN)[:7])
    return client


def crowd(views: LiveServer, idle_count: int, slow_count: int, patience_s: float) -> None:
    crowded = Crowded(views, idle_count + slow_count + 20, patience_s)
    clients: list[RawClient] = []
    try:
        for client in [idle(crowded) for _ in range(20)]:  # what is made once is made now
            client.close()
        wait_for(lambda: crowded.wire.connections == 0)
        before, open_before = resident(), descriptors()
        clients += [idle(crowded) for _ in range(idle_count)]
        assert (resident() - before) / idle_count < CONNECTION_BYTES_MAX
        late = [slow(crowded) for _ in range(slow_count)]
        clients += late
        with psycopg.connect(crowded.conninfo, autocommit=True) as healthy:
            for client in late:  # a byte at a time, none of which completes anything
                client.send(b"\0")
                began = time.monotonic()
                assert healthy.execute("SELECT sum(visits) FROM visits").fetchone() == (60,)
                assert time.monotonic() - began < HEALTHY_S_MAX
        wait_for(lambda: crowded.wire.connections == idle_count, patience_s + 10)  # the slow ones are cut
        assert {client.rest()[:1] for client in late} <= {b"", b"E"}
        clients[0].send(query("SELECT sum(visits) FROM visits"))
        assert rows(clients[0].until()) == [(b"60",)]
        for client in clients:
            client.close()
        wait_for(lambda: crowded.wire.connections == 0, 30)
        wait_for(lambda: descriptors() <= open_before, 30)
    finally:
        for client in clients:
            client.close()
        crowded.stop()


def test_three_hundred_idle_connections_and_slow_clients(views: LiveServer) -> None:
    crowd(views, idle_count=300, slow_count=40, patience_s=2.0)


@pytest.mark.night
def test_a_thousand_idle_connections_and_two_hundred_slow_clients(views: LiveServer) -> None:
    crowd(views, idle_count=1_000, slow_count=200, patience_s=10.0)
