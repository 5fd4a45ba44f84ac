"""Markers waited for by a client that asks for them every 5 ms, and how old each was when it was first shown.

The age counts from just before the producer gets the marker to the answer of the first look that has it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from tests.bench.bench import Client, Running
from tests.bench.load import MARKER_EVERY_S, LiveLoad
from tests.bench.workload import marker_url

_POLL_S = 0.005
_OUTSTANDING_MAX = 100
_DRAIN_S = 300.0  # a server that does not keep up is late, which is a figure


class MarkerWatch:
    """``seen`` has when each marker became visible in the view, whose column ``url`` has it."""

    def __init__(self, client: Client, view: str, load: LiveLoad) -> None:
        self._client = client
        self._view = view
        self._load = load
        self._next = load.first_marker
        self._waiting: set[int] = set()
        self.seen: dict[int, float] = {}

    def look(self, last: int | None = None) -> None:
        """One look for the markers sent by now, below ``last`` where that is given; then the rest of the interval."""
        began = time.time()
        sent = max(self._next, self._load.first_marker + int((began - self._load.begin_at) / MARKER_EVERY_S) + 1)
        sent = sent if last is None else max(self._next, min(sent, last))
        self._waiting.update(range(self._next, sent))
        self._next = sent
        if self._waiting:
            urls = {marker_url(number): number for number in sorted(self._waiting)[:_OUTSTANDING_MAX]}
            listed = ", ".join(f"'{url}'" for url in urls)
            rows = self._client.execute(f"SELECT url FROM {self._view} WHERE url IN ({listed})".encode()).fetchall()
            now = time.time()
            for (url,) in rows:
                self.seen[urls[url]] = now
                self._waiting.discard(urls[url])
        time.sleep(max(0.0, _POLL_S - (time.time() - began)))  # the client's own interval, as the document says

    def drain(self) -> None:
        """Looks on until those that were waited for are there; what does not come in time is found by ``ages_ms``."""
        deadline = time.time() + _DRAIN_S
        while self._waiting and time.time() < deadline:
            self.look(self._next)


def watch_markers(client: Client, view: str, load: LiveLoad, seconds: float) -> dict[int, float]:
    """When each marker of the first ``seconds`` became visible."""
    watch = MarkerWatch(client, view, load)
    last = load.first_marker + int(seconds / MARKER_EVERY_S)
    while time.time() < load.begin_at + seconds:
        watch.look(last)
    watch.drain()
    return watch.seen


def ages_under_load(running: Running, view: str, rate: int, seconds: float, first_marker: int) -> list[float]:
    """While so many other events a second come into the server's source."""
    load = LiveLoad(running.bootstrap, running.topic, running.workload, rate, first_marker=first_marker)
    with running.connect() as client:
        load.start()
        seen = watch_markers(client, view, load, seconds)
    return ages_ms({marker.number: marker.stamp for marker in load.stop()}, seen)


def ages_ms(stamps: Mapping[int, float], seen: Mapping[int, float]) -> list[float]:
    """A marker that was sent and watched for but never shown is no small age: it fails the measurement."""
    watched = range(min(stamps), max(seen) + 1) if seen else range(min(stamps), min(stamps) + 1)
    lost = [number for number in watched if number in stamps and number not in seen]
    if lost:
        raise AssertionError(f"{len(lost)} of {len(watched)} markers never became visible, the first is {lost[0]}")
    return [(seen[number] - stamps[number]) * 1000 for number in watched]
