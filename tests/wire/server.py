"""A PgWireServer over the toy backend on a loop of its own thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from mvserver.pgwire.server import PgWireServer
from tests.wire.toy import ToyBackend


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Until the condition holds; an error when it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.005)


class Running:
    def __init__(self, **options: Any) -> None:
        self.backend = ToyBackend()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = PgWireServer(self.backend, "127.0.0.1", 0, **options)
        self.run(self.server.start())

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=u dbname=toy sslmode=prefer connect_timeout=10"

    def begin(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Any) -> Any:
        return self.begin(work).result(20)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exc: object) -> None:
        self.run(self.server.shutdown(0))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()
