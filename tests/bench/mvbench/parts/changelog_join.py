"""How old a change of one side is when a view of two joined changelogs first shows it, while both sides change.

Each side begins with about 100,000 rows. Both get the same number of changes a second, and the markers are new rows of
the left side.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka.admin import AdminClient

from mvbench.bench import STORE, STREAM, Bench, Running
from mvbench.load import LiveLoad, preload
from mvbench.parts.freshness import ages_ms, watch_markers
from mvbench.stats import latency_summary
from mvbench.workload import CUSTOMERS, ORDERS

RATE = 1_000  # a side
_CHANGES = 150_000  # of each side before: most of its keys have a row then
_VIEW = "joined"
_RIGHT = "customers"


def measure(bench: Bench) -> dict[str, Any]:
    with bench.fresh(ORDERS, ()) as running:
        other = f"{running.topic}-{_RIGHT}"
        try:
            return _measured(bench, running, other)
        finally:
            admin = AdminClient({"bootstrap.servers": running.bootstrap})
            for deleted in admin.delete_topics([other]).values():
                deleted.result()


def _measured(bench: Bench, running: Running, other: str) -> dict[str, Any]:
    with running.connect() as client:
        client.execute(CUSTOMERS.declare(_RIGHT, STORE, other))
        preload(running.bootstrap, running.topic, ORDERS, _CHANGES, seed=3)
        preload(running.bootstrap, other, CUSTOMERS, _CHANGES, seed=5)
        client.execute(
            f"CREATE MATERIALIZED VIEW {_VIEW} AS SELECT o.url, o.amount, c.plan "
            f"FROM {STREAM} AS o LEFT JOIN {_RIGHT} AS c ON o.customer = c.url"
        )
        client.execute("SET mv.filling_timeout = '30min'")
        rows = client.execute(f"SELECT count(*) FROM {_VIEW}").fetchone()
        _run(running, other, bench.settings.warm_up_s, 0)
        found = latency_summary(_run(running, other, bench.settings.seconds, 500_000))
    print(f"    2 x {RATE} changes/s: {found}")
    return {"rows": [{"changes_per_s": RATE, "joined_rows": rows[0] if rows else 0, **found}]}


def _run(running: Running, other: str, seconds: float, first_marker: int) -> list[float]:
    left = LiveLoad(running.bootstrap, running.topic, ORDERS, RATE, first_marker=first_marker)
    right = LiveLoad(running.bootstrap, other, CUSTOMERS, RATE, first_marker=first_marker)
    with running.connect() as client:
        right.start()
        left.start()
        seen = watch_markers(client, _VIEW, left, seconds)
    right.stop()
    return ages_ms({marker.number: marker.stamp for marker in left.stop()}, seen)
