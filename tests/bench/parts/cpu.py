"""Cores used with nothing to do, and under 1,000 and 10,000 events a second with ten views."""

from __future__ import annotations

import time
from typing import Any

from tests.bench.bench import Bench, Running
from tests.bench.load import LiveLoad
from tests.bench.processes import cores_between, usage
from tests.bench.viewsets import wide_views
from tests.bench.workload import WIDE

_RATES = (0, 1_000, 10_000)


def measure(bench: Bench) -> dict[str, Any]:
    rows = []
    with bench.fresh(WIDE, wide_views(10)) as running:
        _warm_up(running, bench.settings.warm_up_s)
        for rate in _RATES:
            rows.append(_cores(running, rate, bench.settings.seconds / 2))
            print(f"    {rows[-1]}")
    return {"views": 10, "rows": rows}


def _warm_up(running: Running, seconds: float) -> None:
    load = LiveLoad(running.bootstrap, running.topic, running.workload, 1_000)
    load.start()
    time.sleep(seconds)  # of load, which the clock bounds
    load.stop()


def _cores(running: Running, rate: int, seconds: float) -> dict[str, Any]:
    load = LiveLoad(running.bootstrap, running.topic, running.workload, rate) if rate else None
    if load is not None:
        load.start()
    time.sleep(5.0)  # what came before has ended
    before = usage(running.server.pid)
    time.sleep(seconds)  # over which the processor's time is taken
    after = usage(running.server.pid)
    if load is not None:
        load.stop()
    return {"events_per_s": rate, "cores": round(cores_between(before, after), 3), "rss_mib": after.rss_bytes >> 20}
