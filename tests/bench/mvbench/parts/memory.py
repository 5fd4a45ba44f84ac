"""What a key costs: a view in which every event is a new key, filled to one and to ten million.

Bytes a key are the growth of the processes' resident memory and of the data directory over the same server with
almost no keys, after a restart in which nothing is read: what is held, not what filling it took.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from mvbench.bench import Bench, Running
from mvbench.load import preload
from mvbench.processes import usage
from mvbench.stats import median
from mvbench.viewsets import View
from mvbench.workload import KEYS

_KEYS = (1_000_000, 10_000_000)
_FEW = 1_000
_SETTLE_LOOKS = 30


def measure(bench: Bench) -> dict[str, Any]:
    rows = []
    view = View("k_url", ("url",), ("sum(amount) AS amount_sum",))
    with bench.fresh(KEYS, [view]) as running:
        preload(running.bootstrap, running.topic, KEYS, _FEW, seed=1)
        running.watch_until(_FEW)
        base_rss, base_disk = _held(running)
        loaded = _FEW
        for keys in _KEYS:
            wanted = max(_FEW * 2, int(keys * bench.settings.scale))
            preload(running.bootstrap, running.topic, KEYS, wanted - loaded, seed=1, start=loaded)
            loaded = wanted
            running.watch_until(loaded, poll_s=1.0)
            peak = usage(running.server.pid).rss_bytes
            rss, disk = _held(running)
            rows.append(
                {
                    "keys": loaded,
                    "rss_bytes_per_key": round((rss - base_rss) / loaded, 1),
                    "disk_bytes_per_key": round((disk - base_disk) / loaded, 1),
                    "rss_mib_while_filling": peak >> 20,
                    "rss_mib_after_restart": rss >> 20,
                }
            )
            print(f"    {rows[-1]}")
    return {"rows": rows}


def _held(running: Running) -> tuple[int, int]:
    running.server.stop()
    disk = sum(path.stat().st_size for path in _files(running.server.data_directory))
    running.server.start()
    with running.connect() as client:
        running.visible(client)
    return _settled_rss(running), disk


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _settled_rss(running: Running) -> int:
    """Once Spark is up again too: the median of the last looks of half a minute."""
    found = []
    for _ in range(_SETTLE_LOOKS):
        time.sleep(1.0)  # between two looks of half a minute
        found.append(usage(running.server.pid).rss_bytes)
    return int(median(found[-5:]))
