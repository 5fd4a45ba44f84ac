"""How fast a full topic is read: events a second after the first visible row, and as a share of reading alone.

The views are made on the empty topic and the server is stopped while the topic is filled; so all views of a run read
the same backlog together, as after an outage. The scan-only rate is a plain PySpark query over the same topic with the
same columns decoded and its rows thrown away, in a process of its own, in the same run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.bench import Bench, Running
from tests.bench.load import preload
from tests.bench.processes import usage
from tests.bench.stats import rate_after_first
from tests.bench.viewsets import clicks_views, wide_views
from tests.bench.workload import CLICKS, WIDE

VIEWS = (1, 3, 10)
_SCAN_TIMEOUT_S = 1_200.0
_SCAN = Path(__file__).resolve().parents[1] / "scan_only.py"


def measure(bench: Bench) -> dict[str, Any]:
    results = []
    for workload, view_set in ((WIDE, wide_views), (CLICKS, clicks_views)):
        for number in VIEWS:
            with bench.fresh(workload, view_set(number)) as running:
                results.append({"workload": workload.name, "views": number, **_run(bench, running)})
                print(f"    {results[-1]}")
    return {"events": bench.settings.backlog_events, "rows": results}


def _run(bench: Bench, running: Running) -> dict[str, Any]:
    total = bench.settings.backlog_events
    running.server.stop()
    preload_rate = preload(running.bootstrap, running.topic, running.workload, total, seed=1)
    scan_rate = scan_only(running.bootstrap, running.topic, running.workload.columns)
    began = time.monotonic()
    running.server.start()
    points = running.watch_until(total)
    running.check_complete(total)
    rate = rate_after_first(points, total)
    first = next(moment for moment, visible in points if visible > 0)
    return {
        "events_per_s": round(rate),
        "scan_only_per_s": round(scan_rate),
        "share_of_scan": round(rate / scan_rate, 3),
        "start_to_first_row_s": round(first - began, 2),
        "start_to_all_s": round(points[-1][0] - began, 2),
        "preload_per_s": round(preload_rate),
        "keys": running.keys(),
        "rss_mib": usage(running.server.pid).rss_bytes >> 20,
    }


def scan_only(bootstrap: str, topic: str, columns: str, at_a_time: int = 1_000_000) -> float:
    """Events a second of reading and decoding alone, so many in each micro-batch."""
    command = [sys.executable, str(_SCAN), bootstrap, topic, columns, str(at_a_time)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SCAN_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the scan-only query failed:\n{done.stderr[-4_000:]}")
    return float(json.loads(done.stdout.splitlines()[-1])["events_per_s"])
