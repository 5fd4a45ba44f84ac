"""How old an event is when another connection's SELECT first shows it.

The age counts from just before the producer gets the marker to the answer of the first look that has it; looks are
5 ms apart. All views of a source change in one transaction, so the first view stands for all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from mvbench.bench import Bench, Client, Running
from mvbench.load import MARKER_EVERY_S, LiveLoad
from mvbench.stats import latency_summary
from mvbench.viewsets import wide_views
from mvbench.workload import WIDE, marker_url

RATES = (1_000, 10_000)
VIEWS = (1, 3, 10, 100)
_POLL_S = 0.005
_OUTSTANDING_MAX = 100
_DRAIN_S = 60.0


def measure(bench: Bench) -> dict[str, Any]:
    results = []
    for number in VIEWS:
        views = wide_views(number)
        with bench.fresh(WIDE, views) as running:
            for turn, rate in enumerate(RATES):
                first = turn * 1_000_000
                _run(running, rate, bench.settings.warm_up_s, first)
                ages_ms = _run(running, rate, bench.settings.seconds, first + 500_000)
                results.append(
                    {
                        "views": number,
                        "events_per_s": rate,
                        "key_sets": len({tuple(sorted(view.keys)) for view in views}),
                        "with_where": sum(view.where is not None for view in views),
                        "keys": running.keys(),
                        **latency_summary(ages_ms),
                    }
                )
                print(f"    {number} views, {rate} events/s: {results[-1]}")
    return {"rows": results}


def _run(running: Running, rate: int, seconds: float, first_marker: int) -> list[float]:
    load = LiveLoad(running.bootstrap, running.topic, running.workload, rate, first_marker=first_marker)
    with running.connect() as client:
        load.start()
        seen = watch_markers(client, running.views[0].name, load, seconds)
    return ages_ms({marker.number: marker.stamp for marker in load.stop()}, seen)


def watch_markers(client: Client, view: str, load: LiveLoad, seconds: float) -> dict[int, float]:
    """When each marker of the first ``seconds`` became visible."""
    last = load.first_marker + int(seconds / MARKER_EVERY_S)
    waiting = set(range(load.first_marker, last))
    seen: dict[int, float] = {}
    deadline = load.begin_at + seconds + _DRAIN_S
    while waiting and time.time() < deadline:
        began = time.time()
        sent = load.first_marker + int((began - load.begin_at) / MARKER_EVERY_S) + 1
        due = sorted(number for number in waiting if number < sent)[:_OUTSTANDING_MAX]
        if due:
            urls = {marker_url(number): number for number in due}
            listed = ", ".join(f"'{url}'" for url in urls)
            rows = client.execute(f"SELECT url FROM {view} WHERE url IN ({listed})").fetchall()
            now = time.time()
            for (url,) in rows:
                seen[urls[url]] = now
                waiting.discard(urls[url])
        time.sleep(max(0.0, _POLL_S - (time.time() - began)))  # the client's own interval, as the document says
    return seen


def ages_ms(stamps: Mapping[int, float], seen: Mapping[int, float]) -> list[float]:
    """A marker that was sent and watched for but never shown is no small age: it fails the measurement."""
    watched = range(min(stamps), max(seen) + 1) if seen else range(min(stamps), min(stamps) + 1)
    lost = [number for number in watched if number in stamps and number not in seen]
    if lost:
        raise AssertionError(f"{len(lost)} of {len(watched)} markers never became visible, the first is {lost[0]}")
    return [(seen[number] - stamps[number]) * 1000 for number in watched]
