"""A server in a process of its own, whose event loop notes the longest time between two of its heartbeats.

It prints its port; for each line that comes in, the longest gap since the last one, in seconds. Whoever holds up the
loop inside the process uses the processor meanwhile; where other processes had it, the time is none of ours.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from serving_server import PullServer

from mvserver.collector import Collector

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


def main() -> None:
    sys.setswitchinterval(0.001)  # as the server does
    with tempfile.TemporaryDirectory() as folder, PullServer(Path(folder)) as server:
        collector = Collector(lambda: server.services.large_texts.at_work)
        collector.start()
        heart = Heart(server)
        print(server.wire.port, flush=True)
        for _ in sys.stdin:
            print(heart.longest(), flush=True)
        collector.close()


if __name__ == "__main__":
    main()
