"""The wire over a session room with real pull queries: a server without Spark and catalog, on a loop of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from mvserver.pgwire.server import PgWireServer
from mvserver.session.backend import SessionBackend
from mvserver.session.parsing import RememberingParser
from mvserver.session.services import SessionServices
from mvserver.sql import parse
from tests.serving.world import World
from tests.session.fakes import FakeDirectory, FakeRouter, FakeViews

LEFT_WORK_S = 30.0
STOPPED_WITHIN_S = 1.5  # the promise is a second; the rest is room for a busy machine

Client = psycopg.Connection[tuple[Any, ...]]


class PullServer:
    def __init__(self, folder: Path, router: FakeRouter | None = None, **service: Any) -> None:
        self.world = World(folder, **service)
        self.views = FakeViews()
        self.services = SessionServices(
            RememberingParser(parse), router or FakeRouter(), self.world.service, self.views, FakeDirectory()  # type: ignore[arg-type]
        )  # fmt: skip
        self.backend = SessionBackend(self.services)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.wire = PgWireServer(self.backend, "127.0.0.1", 0)
        self._run(self.wire.start())

    def connect(self, **options: Any) -> Client:
        return psycopg.connect(
            f"host=127.0.0.1 port={self.wire.port} user=postgres dbname=postgres", autocommit=True, **options
        )

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self.wire.shutdown(1.0))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()
        self.backend.close()
        self._wait_for_left_work()
        self.world.close()

    def _wait_for_left_work(self) -> None:
        """As the server does before it closes DuckDB."""
        wait_until(lambda: not self.world.service.left, LEFT_WORK_S)


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"this does not become true: {condition}"
        time.sleep(0.01)


def is_cancelled(client: Client, text: str, entered: threading.Semaphore) -> None:
    """Asks ``text`` and cancels it when it has ``entered`` what holds it: the client is told so at once."""
    ended: list[str | None] = []

    def run() -> None:
        try:
            client.execute(text)  # type: ignore[arg-type]
        except psycopg.Error as error:
            ended.append(f"{error.sqlstate} {error.diag.message_primary}")

    thread = threading.Thread(target=run)
    thread.start()
    assert entered.acquire(timeout=20)
    began = time.monotonic()
    client.cancel_safe()
    thread.join(20)
    assert time.monotonic() - began < STOPPED_WITHIN_S
    assert ended == ["57014 canceling statement due to user request"]
