"""A server in a process of its own, whose event loop notes the longest time between two of its heartbeats.

It prints its port; for each line that comes in, the longest gap since the last one, in seconds. Whoever holds up the
loop inside the process uses the processor meanwhile; where other processes had it, the time is none of ours.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mvserver.collector import Collector
from mvserver.copy_data.readers import CopyFormat
from mvserver.routing.copying import CopyRecords
from mvserver.session.copies import CopyTarget
from tests.serving.server import PullServer
from tests.serving.world import STREAM_ID, catalog_snapshot
from tests.session.fakes import FakeRouter

EVERY_S = 0.002


class Heart:
    def __init__(self, server: PullServer) -> None:
        self._loop = server.loop
        self._last = self._now()
        self._longest = 0.0
        self._loop.call_soon_threadsafe(self._beat)

    def _beat(self) -> None:
        self._longest, self._last = max(self._longest, self._gap()), self._now()
        self._loop.call_later(EVERY_S, self._beat)

    def longest(self) -> float:
        found, self._longest = max(self._longest, self._gap()), 0.0
        return found

    def _now(self) -> tuple[float, float]:
        return time.monotonic(), time.process_time()

    def _gap(self) -> float:
        return min(now - last for now, last in zip(self._now(), self._last, strict=True)) - EVERY_S


class CopyRouter(FakeRouter):
    """Takes the rows of a COPY, and throws the records away."""

    def copy_target(self, statement: Any, context: Any) -> CopyTarget:
        catalog = catalog_snapshot()
        form = CopyFormat(force_not_null=(False, False), force_null=(False, False))
        (stream,) = (each for each in catalog.relations if each.id == STREAM_ID)
        return CopyRecords(stream, catalog.stores[0], "src", ("url", "n"), form, "json", "UTC")

    def write_copies(self, copies: Sequence[CopyTarget], check: Callable[[], None]) -> None:
        for copy in copies:
            for _ in copy.records(check):
                pass


def main() -> None:
    sys.setswitchinterval(0.001)  # as the server does
    with tempfile.TemporaryDirectory() as folder, PullServer(Path(folder), CopyRouter()) as server:
        collector = Collector(lambda: server.services.large_texts.at_work)
        collector.start()
        heart = Heart(server)
        print(server.wire.port, flush=True)
        for _ in sys.stdin:
            print(heart.longest(), flush=True)
        collector.close()


if __name__ == "__main__":
    main()
