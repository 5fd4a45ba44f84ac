"""What nine views of a source with five million records feel of a tenth one that is made and filled beside them.

10,000 events a second come in all the while. Before: a minute with the nine. While: the markers that were sent between
the CREATE and the moment at which the tenth view had everything.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.bench.bench import Bench, Client, Running
from tests.bench.load import LiveLoad, preload
from tests.bench.markers import MarkerWatch, ages_ms, ages_under_load
from tests.bench.stats import latency_summary
from tests.bench.viewsets import View, wide_views
from tests.bench.workload import WIDE

RATE = 10_000
_FILL_TIMEOUT_S = 900.0
_LOOK_S = 0.5


def measure(bench: Bench) -> dict[str, Any]:
    *nine, tenth = wide_views(10)
    records = bench.settings.backlog_events
    with bench.fresh(WIDE, nine) as running:
        running.server.stop()
        preload(running.bootstrap, running.topic, WIDE, records, seed=1)
        running.server.start()
        running.watch_until(records)
        ages_under_load(running, nine[0].name, RATE, bench.settings.warm_up_s, 0)
        before = latency_summary(ages_under_load(running, nine[0].name, RATE, bench.settings.seconds, 500_000))
        print(f"    nine views: {before}")
        fill_s, ages = _while_filling(running, tenth, 1_000_000)
        during = latency_summary(ages)
        print(f"    while the tenth is filled, {fill_s:.1f} s: {during}")
    return {
        "records": records,
        "events_per_s": RATE,
        "fill_s": round(fill_s, 1),
        "p99_raised": round(during["p99_ms"] / before["p99_ms"] - 1, 3),
        "rows": [{"when": "before", **before}, {"when": "while", **during}],
    }


def _while_filling(running: Running, tenth: View, first_marker: int) -> tuple[float, list[float]]:
    """Seconds that filling took, and the ages of what came meanwhile."""
    load = LiveLoad(running.bootstrap, running.topic, WIDE, RATE, first_marker=first_marker)
    with running.connect() as watching, running.connect() as making:
        watch = MarkerWatch(watching, running.views[0].name, load)
        load.start()
        while time.time() < load.begin_at + 2.0:
            watch.look()  # the load is even by then
        created_at = time.time()
        creation = threading.Thread(target=making.execute, args=(tenth.create("events").encode(),))
        creation.start()
        while creation.is_alive():
            watch.look()
        filled_at = _watch_until_filled(watch, making, tenth, created_at)
        watch.drain()
    stamps = {marker.number: marker.stamp for marker in load.stop()}
    meanwhile = {number: stamp for number, stamp in stamps.items() if created_at <= stamp <= filled_at}
    seen = {number: watch.seen[number] for number in meanwhile if number in watch.seen}
    return filled_at - created_at, ages_ms(meanwhile, seen)


def _watch_until_filled(watch: MarkerWatch, client: Client, view: View, created_at: float) -> float:
    asked_at = 0.0
    while True:
        watch.look()
        now = time.time()
        if now - asked_at < _LOOK_S:
            continue
        asked_at = now
        left = client.execute("SELECT state FROM mv_catalog.backfills").fetchall()
        if not left:
            return now
        if now > created_at + _FILL_TIMEOUT_S:
            raise TimeoutError(f"view {view.name} was not filled within {_FILL_TIMEOUT_S:g} s: {left}")
