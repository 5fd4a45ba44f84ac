"""What a key costs: a view in which every event is a new key, filled to one and to ten million.

Bytes a key are the growth of the processes' resident memory and of the data directory over the same server with
almost no keys, after a restart in which nothing is read: what is held, not what filling it took.
"""

from __future__ import annotations

from typing import Any

from tests.bench.bench import Bench
from tests.bench.held import held
from tests.bench.load import preload
from tests.bench.processes import usage
from tests.bench.viewsets import View
from tests.bench.workload import KEYS

_KEYS = (1_000_000, 10_000_000)
_FEW = 1_000


def measure(bench: Bench) -> dict[str, Any]:
    rows = []
    view = View("k_url", ("url",), ("sum(amount) AS amount_sum",))
    with bench.fresh(KEYS, [view]) as running:
        preload(running.bootstrap, running.topic, KEYS, _FEW, seed=1)
        running.watch_until(_FEW)
        base_rss, base_disk = held(running.server)
        loaded = _FEW
        for keys in _KEYS:
            wanted = max(_FEW * 2, int(keys * bench.settings.scale))
            preload(running.bootstrap, running.topic, KEYS, wanted - loaded, seed=1, start=loaded)
            loaded = wanted
            running.watch_until(loaded, poll_s=1.0)
            peak = usage(running.server.pid).rss_bytes
            rss, disk = held(running.server)
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
