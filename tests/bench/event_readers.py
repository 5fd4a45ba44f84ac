"""Readers of a stream of events, in a process of their own: ``python -m tests.bench.event_readers PORT VIEW READERS
SECONDS``. Prints how old changes were when they came, from their commit on, and what readers were told besides.

It says ``connected`` when all have their snapshot. While it measures it only receives: a reader that computes would be
measured itself.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import select
import socket
import sys
import time
from collections import Counter, defaultdict

from tests.bench.stats import latency_summary

_AT = re.compile(rb'"at":"([^"]+)"')
_AT_ONCE = 100
_TIMEOUT_S = 60.0
_LATE_S = 2.0  # before the end: epochs that may still be on their way
_REQUEST = (
    "GET /v1/changes?view={view} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
    "Authorization: Basic cG9zdGdyZXM6\r\n\r\n"
)


def connected(port: int, view: str, readers: int) -> list[socket.socket]:
    """Each has its snapshot, as far as it fits into a packet: views under measurement are small."""
    request = _REQUEST.format(view=view).encode()
    found: list[socket.socket] = []
    for _ in range(0, readers, _AT_ONCE):
        made = [socket.create_connection(("127.0.0.1", port), _TIMEOUT_S) for _ in range(_AT_ONCE)]
        for each in made:
            each.sendall(request)
        for each in made:
            read = b""
            while b"event: snapshot\n" not in read or not read.endswith(b"\n\n\r\n"):
                piece = each.recv(65_536)
                assert piece, read
                read += piece
            each.setblocking(False)
        found += made
    return found


def received(streams: list[socket.socket], seconds: float) -> list[tuple[float, int, bytes]]:
    """When, by which stream, what."""
    poll = select.epoll()
    by_number = {each.fileno(): each for each in streams}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    found = []
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        for number, _ in poll.poll(left):
            data = by_number[number].recv(65_536)
            found.append((time.time(), number, data))
            if not data:
                poll.unregister(number)
    return found


def summary(pieces: list[tuple[float, int, bytes]], readers: int, began: float, seconds: float) -> dict[str, object]:
    """``began`` is in seconds since the epoch. ``missed`` counts, of epochs well within the time, who lacks one."""
    rests: dict[int, bytes] = defaultdict(bytes)
    ages: list[float] = []
    epochs: Counter[float] = Counter()
    told: Counter[str] = Counter()
    for now, number, data in pieces:
        if not data:
            told["lost"] += 1
        *events, rests[number] = (rests[number] + data).split(b"\n\n")
        for event in events:
            match = _AT.search(event)
            if b"event: change\n" in event and match is not None:
                at = dt.datetime.fromisoformat(match[1].decode()).timestamp()
                if at >= began:  # those before it lay in sockets that nobody read yet
                    epochs[at] += 1
                    ages.append((now - at) * 1000)
            elif b"event: " in event:
                told[event.partition(b"event: ")[2].split(b"\n")[0].decode()] += 1
    whole = [count for at, count in epochs.items() if at < began + seconds - _LATE_S]
    return {
        "readers": readers,
        "epochs_per_s": round(len(epochs) / seconds, 1),
        "missed": sum(readers - count for count in whole),
        "told": dict(told),
        **(latency_summary(ages) if ages else {}),
    }


def main() -> None:
    port, view, readers, seconds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    streams = connected(port, view, readers)
    print("connected", flush=True)
    began = time.time()
    print(json.dumps(summary(received(streams, seconds), len(streams), began, seconds)), flush=True)


if __name__ == "__main__":
    main()
