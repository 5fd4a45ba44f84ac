"""How old an event is when all views of its source show it, and what the server takes for that, in either lane.

The client is a dashboard: every 5 ms it asks each view for what it waits for, by ``key IN (…)``. The server's cores are
those of its process and of Spark's JVM, with what the client's look-ups cost.
"""

from __future__ import annotations

import time
from typing import Any

from tests.bench.bench import Bench, Client, Running
from tests.bench.load import MARKER_EVERY_S, LiveLoad
from tests.bench.markers import ages_ms
from tests.bench.processes import cores_between, usage
from tests.bench.stats import latency_summary
from tests.bench.viewsets import clicks_views
from tests.bench.workload import CLICKS, marker_url

LANES = {"batch": "off", "live": "auto"}
RATES = (1_000, 10_000)
VIEWS = (3, 10)
_POLL_S = 0.005
_OUTSTANDING_MAX = 100
_DRAIN_S = 300.0
_WARM_UPS_MAX = 10  # until the lane is the one that is measured


def measure(bench: Bench) -> dict[str, Any]:
    rows = []
    for number in VIEWS:
        for lane, setting in LANES.items():
            with bench.fresh(CLICKS, clicks_views(number), arguments=("--live-lane", setting)) as running:
                for turn, rate in enumerate(RATES):
                    first = turn * 1_000_000
                    for again in range(_WARM_UPS_MAX):
                        _ages(running, rate, bench.settings.warm_up_s, first + again * 10_000)
                        if _lane(running) == lane:
                            break
                    ages, cores = _ages(running, rate, bench.settings.seconds, first + 500_000)
                    found = _lane(running)
                    rows.append(
                        {
                            "lane": lane,
                            "at_the_end": found,
                            "views": number,
                            "events_per_s": rate,
                            "cores": round(cores, 2),
                            **latency_summary(ages),
                        }
                    )
                    print(f"    {rows[-1]}")
    return {"rows": rows}


def _lane(running: Running) -> str:
    with running.connect() as client:
        row = client.execute("SELECT lane FROM mv_catalog.pipelines").fetchone()
    return str(row[0]) if row else ""


def _ages(running: Running, rate: int, seconds: float, first_marker: int) -> tuple[list[float], float]:
    views = [view.name for view in running.views if "url" in view.keys]
    load = LiveLoad(running.bootstrap, running.topic, running.workload, rate, first_marker=first_marker)
    with running.connect() as client:
        load.start()
        before = usage(running.server.pid)
        seen = _watch(client, views, load, seconds)
        cores = cores_between(before, usage(running.server.pid))
    return ages_ms({marker.number: marker.stamp for marker in load.stop()}, seen), cores


def _watch(client: Client, views: list[str], load: LiveLoad, seconds: float) -> dict[int, float]:
    """When each marker of these seconds was in the answers of all views."""
    seen: dict[int, float] = {}
    following, waiting = load.first_marker, set[int]()
    last = load.first_marker + int(seconds / MARKER_EVERY_S)
    end = load.begin_at + seconds
    while (began := time.time()) < end or (waiting and began < end + _DRAIN_S):
        sent = min(last, load.first_marker + int((began - load.begin_at) / MARKER_EVERY_S) + 1)
        waiting.update(range(following, max(following, sent)))
        following = max(following, sent)
        urls = {marker_url(number): number for number in sorted(waiting)[:_OUTSTANDING_MAX]}
        found = set(urls)
        for view in views if urls else ():
            found &= _shown(client, view, urls)
        now = time.time()
        for url in found:
            seen[urls[url]] = now
            waiting.discard(urls[url])
        time.sleep(max(0.0, _POLL_S - (time.time() - began)))  # the client's own interval
    return seen


def _shown(client: Client, view: str, urls: dict[str, int]) -> set[str]:
    listed = ", ".join(f"'{url}'" for url in urls)
    return {url for (url,) in client.execute(f"SELECT url FROM {view} WHERE url IN ({listed})".encode()).fetchall()}
