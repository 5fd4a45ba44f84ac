"""How long a client waits that reads what it has just written, by ``mv.freshness = 'latest'`` in the live lane.

The time counts from when the broker has the record to the answer that shows it, once while nothing else comes in, and
once while other records do.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Producer

from tests.bench.bench import Bench, Running
from tests.bench.load import PARTITIONS, LiveLoad
from tests.bench.markers import ages_under_load
from tests.bench.stats import latency_summary
from tests.bench.viewsets import clicks_views
from tests.bench.workload import CLICKS, marker_url

RATES = (0, 1_000)  # other records a second
VIEWS = 3
_FIRST = 5_000_000  # number of the first record that is written and read; the load's own markers are before
_EVERY_S = 0.1
_WARM_UPS_MAX = 10  # until the lane is the live one
_FLUSH_S = 30.0


def measure(bench: Bench) -> dict[str, Any]:
    rows = []
    with bench.fresh(CLICKS, clicks_views(VIEWS)) as running:
        for again in range(_WARM_UPS_MAX):
            ages_under_load(running, running.views[0].name, max(RATES), bench.settings.warm_up_s, again * 10_000)
            if _lane(running) == "live":
                break
        for turn, rate in enumerate(RATES):
            waits = _beside_others(running, rate, bench.settings.seconds, turn)
            rows.append({"views": VIEWS, "events_per_s": rate, "lane": _lane(running), **latency_summary(waits)})
            print(f"    {rows[-1]}")
    return {"rows": rows}


def _beside_others(running: Running, rate: int, seconds: float, turn: int) -> list[float]:
    first = _FIRST + turn * 1_000_000
    if not rate:
        return _waits_ms(running, first, seconds)
    load = LiveLoad(running.bootstrap, running.topic, CLICKS, rate, first_marker=500_000, alone=False)
    load.start()
    try:
        return _waits_ms(running, first, seconds)
    finally:
        load.stop()


def _waits_ms(running: Running, first: int, seconds: float) -> list[float]:
    producer = Producer({"bootstrap.servers": running.bootstrap, "log_level": 2, "linger.ms": 0, "acks": "all"})
    view, waits = running.views[0].name, []
    with running.connect() as client:
        client.execute("SET mv.freshness = 'latest'")
        for number in range(first, first + int(seconds / _EVERY_S)):
            producer.produce(running.topic, CLICKS.marker_message(number)["value"], partition=number % PARTITIONS)
            if producer.flush(_FLUSH_S):
                raise RuntimeError("the broker did not take a record")
            began = time.monotonic()
            found = client.execute(f"SELECT n FROM {view} WHERE url = '{marker_url(number)}'".encode()).fetchall()
            waits.append((time.monotonic() - began) * 1000)
            if found != [(1,)]:
                raise AssertionError(f"{found} is not what was written")
            time.sleep(max(0.0, _EVERY_S - (time.monotonic() - began)))  # the client's own interval
    return waits


def _lane(running: Running) -> str:
    with running.connect() as client:
        row = client.execute("SELECT lane FROM mv_catalog.pipelines").fetchone()
    return str(row[0]) if row else ""
