"""What a join keeps of an hour: two streams joined WITHIN 1 HOUR, at 1,000 events a second of event time a side.

Event time runs faster than the clock: an hour of it is read as a backlog. After the first hour the rows of the second
one take the places of those that have waited long enough. Held is what the server has after a restart in which nothing
is read, over the same server with the first few events.
"""

from __future__ import annotations

from typing import Any

from tests.bench.bench import STREAM, Bench, Running
from tests.bench.held import held
from tests.bench.load import preload
from tests.bench.processes import usage
from tests.bench.viewsets import View
from tests.bench.workload import VISITS

_HOUR = 3_600_000  # events a side, one a millisecond of event time
_HOURS = (1, 2)
_FEW = 1_000
_SLICE = 600_000
_RIGHT = "others"
_VIEW = View("joined", ("url",), ())


def measure(bench: Bench) -> dict[str, Any]:
    hour = max(_FEW * 20, int(_HOUR * bench.settings.scale))
    rows = []
    with bench.fresh(VISITS, ()) as running, bench.beside(running, _RIGHT, VISITS) as other:
        with running.connect() as client:
            client.execute(
                f"CREATE MATERIALIZED VIEW {_VIEW.name} AS SELECT v.url, count(*) AS n FROM {STREAM} AS v "
                f"JOIN {_RIGHT} AS o WITHIN {hour // 1_000} SECONDS ON v.id = o.id GROUP BY v.url".encode()
            )
        running.views = (_VIEW,)
        _read(running, other, 0, _FEW)
        base_rss, base_disk = held(running.server)
        done = _FEW
        for hours in _HOURS:
            _read(running, other, done, hours * hour)
            done = hours * hour
            peak = usage(running.server.pid).rss_bytes
            rss, disk = held(running.server)
            rows.append(
                {
                    "hours": hours,
                    "events_a_side": done,
                    "rss_mib_while_reading": peak >> 20,
                    "rss_mib_after_restart": rss >> 20,
                    "rss_bytes_per_row": round((rss - base_rss) / (2 * hour), 1),
                    "disk_mib": (disk - base_disk) >> 20,
                }
            )
            print(f"    {rows[-1]}")
    return {"rows_of_an_hour": 2 * hour, "rows": rows}


def _read(running: Running, other: str, start: int, stop: int) -> None:
    """Both sides are sent in turns, as they would come, and every pair is there then."""
    for at in range(start, stop, _SLICE):
        for topic in (running.topic, other):
            preload(running.bootstrap, topic, VISITS, min(_SLICE, stop - at), seed=1, start=at)
    running.watch_until(stop, poll_s=1.0)
