"""What it costs that rows are taken back: the same records grouped as a changelog's and as a stream's.

As a stream each record adds to its group. As a changelog of some 100,000 customers a record replaces its customer's
row, which leaves the group that it was in: sums are corrected by the difference, for a maximum the group is computed
anew from its rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.bench import completion
from tests.bench.bench import STREAM, Bench
from tests.bench.load import preload
from tests.bench.markers import ages_under_load
from tests.bench.stats import latency_summary
from tests.bench.workload import VISITS

RATE = 10_000
_BACKLOG = 1_000_000
_VIEW = "grouped"
_SOURCES = {
    "stream": replace(VISITS, timestamp=None),
    "changelog": replace(VISITS, timestamp=None, primary_key="customer"),
}
_AGGREGATES = {"count, sum": "count(*) AS n, sum(amount) AS amount", "count, max": "count(*) AS n, max(amount) AS most"}


def measure(bench: Bench) -> dict[str, Any]:
    backlog = max(100_000, int(_BACKLOG * bench.settings.scale))
    rows = [_measured(bench, source, aggregates, backlog) for source in _SOURCES for aggregates in _AGGREGATES]
    return {"events": backlog, "rows": rows}


def _measured(bench: Bench, source: str, aggregates: str, backlog: int) -> dict[str, Any]:
    with bench.fresh(_SOURCES[source], ()) as running:
        preload(running.bootstrap, running.topic, running.workload, backlog, seed=1)
        statement = (
            f"CREATE MATERIALIZED VIEW {_VIEW} AS SELECT url, {_AGGREGATES[aggregates]} FROM {STREAM} GROUP BY url"
        )
        with running.connect() as client:
            client.execute("SET mv.read_while_filling = on")
            completion.create(running.server, client, statement)  # Spark is up and warm then
            client.execute(f"DROP MATERIALIZED VIEW {_VIEW}".encode())
            seconds, cpu_s = completion.create(running.server, client, statement)
            ages_under_load(running, _VIEW, RATE, bench.settings.warm_up_s, 0)
            found = latency_summary(ages_under_load(running, _VIEW, RATE, bench.settings.seconds / 2, 500_000))
    measured = {
        "source": source,
        "aggregates": aggregates,
        "events_per_s": round(backlog / seconds),
        "cpu_us_per_event": round(cpu_s * 1e6 / backlog, 1),
        "live_per_s": RATE,
        **found,
    }
    print(f"    {measured}")
    return measured
