"""What the tenth and the hundredth view add, as a share of the whole batch with one view.

A burst of events is sent to a server at rest, and timed from its last acknowledgement to the look that shows all of
it. What a view adds is the mean over the views between: (T10 - T1) / 9 for the tenth, (T100 - T10) / 90 for the
hundredth. Medians of several bursts.
"""

from __future__ import annotations

import time
from typing import Any

from tests.bench.bench import Bench, Running
from tests.bench.load import preload
from tests.bench.stats import median
from tests.bench.viewsets import wide_views
from tests.bench.workload import WIDE

VIEWS = (1, 10, 100)
_BURST = 20_000
_BURSTS = 15
_WARM_UP_BURSTS = 10
_PAUSE_S = 0.5


def measure(bench: Bench) -> dict[str, Any]:
    times: dict[int, float] = {}
    rows = []
    for number in VIEWS:
        with bench.fresh(WIDE, wide_views(number)) as running:
            times[number] = _burst_time(running)
            rows.append({"views": number, "burst_ms": round(times[number] * 1000, 1), "keys": running.keys()})
            print(f"    {rows[-1]}")
    return {"burst_events": _BURST, "rows": rows, **shares(times)}


def shares(times: dict[int, float]) -> dict[str, float]:
    return {
        "tenth_share": round((times[10] - times[1]) / 9 / times[1], 4),
        "hundredth_share": round((times[100] - times[10]) / 90 / times[1], 4),
    }


def _burst_time(running: Running) -> float:
    measured = []
    for turn in range(_WARM_UP_BURSTS + _BURSTS):
        time.sleep(_PAUSE_S)  # the server at rest: what is measured is one burst, not a queue of them
        preload(running.bootstrap, running.topic, running.workload, _BURST, seed=turn)
        sent = time.monotonic()
        points = running.watch_until((turn + 1) * _BURST, poll_s=0.005, timeout_s=300)
        if turn >= _WARM_UP_BURSTS:
            measured.append(points[-1][0] - sent)
    return median(measured)
