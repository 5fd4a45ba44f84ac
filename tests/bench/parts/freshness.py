"""How old an event is when another connection's SELECT first shows it.

All views of a source change in one transaction, so the first view stands for all.
"""

from __future__ import annotations

from typing import Any

from tests.bench.bench import Bench
from tests.bench.markers import ages_under_load
from tests.bench.stats import latency_summary
from tests.bench.viewsets import wide_views
from tests.bench.workload import WIDE

RATES = (1_000, 10_000)
VIEWS = (1, 3, 10, 100)


def measure(bench: Bench) -> dict[str, Any]:
    results = []
    for number in VIEWS:
        views = wide_views(number)
        first_view = views[0].name
        with bench.fresh(WIDE, views) as running:
            for turn, rate in enumerate(RATES):
                first = turn * 1_000_000
                ages_under_load(running, first_view, rate, bench.settings.warm_up_s, first)
                ages = ages_under_load(running, first_view, rate, bench.settings.seconds, first + 500_000)
                results.append(
                    {
                        "views": number,
                        "events_per_s": rate,
                        "key_sets": len({tuple(sorted(view.keys)) for view in views}),
                        "with_where": sum(view.where is not None for view in views),
                        "keys": running.keys(),
                        **latency_summary(ages),
                    }
                )
                print(f"    {number} views, {rate} events/s: {results[-1]}")
    return {"rows": results}
