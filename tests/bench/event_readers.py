"""Readers of a stream of events, in a process of their own: ``python -m tests.bench.event_readers PORT VIEW READERS
SECONDS``. Prints how old changes were when they came, from their commit on, and what readers were told besides.

It says ``connected`` when all have their snapshot, and ends after SECONDS or when its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import os
import re
import sys
import time
from collections import Counter

from tests.bench.stats import latency_summary

_AT = re.compile(rb'"at":"([^"]+)"')
_AT_ONCE = 100
_REQUEST = (
    "GET /v1/changes?view={view} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
    "Authorization: Basic cG9zdGdyZXM6\r\n\r\n"
)


class _Reader(asyncio.Protocol):
    def __init__(self, all_: _Readers) -> None:
        self._all = all_
        self._rest = b""
        self.begun = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self._all.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        now = time.time()
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            if b"event: change\n" in event:
                self._all.changes.append((now, event))
            elif b"event: snapshot\n" in event and not self.begun.done():
                self.begun.set_result(None)
            elif b"event: " in event:
                self._all.others[event.partition(b"event: ")[2].split(b"\n")[0].decode()] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.others["lost"] += 1
        if not self.begun.done():
            self.begun.set_exception(ConnectionError("hung up on before the snapshot"))


class _Readers:
    def __init__(self, port: int, view: str) -> None:
        self.port = port
        self.request = _REQUEST.format(view=view).encode()
        self.changes: list[tuple[float, bytes]] = []
        self.others: Counter[str] = Counter()

    async def run(self, readers: int, seconds: float) -> dict[str, object]:
        loop = asyncio.get_running_loop()
        kept = []
        began = time.monotonic()
        for _ in range(0, readers, _AT_ONCE):
            made = [await loop.create_connection(lambda: _Reader(self), "127.0.0.1", self.port) for _ in range(_AT_ONCE)]
            await asyncio.gather(*(protocol.begun for _, protocol in made))
            kept += made
        connected_s = time.monotonic() - began
        print("connected", flush=True)
        self.changes.clear()
        began = time.monotonic()
        ended = asyncio.Event()
        loop.add_reader(sys.stdin.fileno(), ended.set)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), seconds or None)
        took = time.monotonic() - began
        changes, told = list(self.changes), dict(self.others)
        ages = []
        for now, event in changes:
            match = _AT.search(event)
            assert match is not None
            ages.append((now - dt.datetime.fromisoformat(match[1].decode()).timestamp()) * 1000)
        epochs = len({_AT.search(event)[1] for _, event in changes})  # type: ignore[index]
        return {
            "readers": len(kept),
            "connected_s": round(connected_s, 1),
            "epochs": epochs,
            "epochs_per_s": round(epochs / took, 1),
            "missed": epochs * len(kept) - len(changes),
            "told": told,
            **(latency_summary(ages) if ages else {}),
        }


def main() -> None:
    port, view, readers, seconds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    found = asyncio.run(_Readers(port, view).run(readers, seconds))
    print(json.dumps(found), flush=True)
    os._exit(0)  # without closing thousands of sockets one by one


if __name__ == "__main__":
    main()
