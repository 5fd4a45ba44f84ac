"""How old a change of one side is when a view of two joined changelogs first shows it, while both sides change.

Each side begins with about 100,000 rows. Both get the same number of changes a second, and the markers are new rows of
the left side.
"""

from __future__ import annotations

from typing import Any

from tests.bench import two_sides
from tests.bench.bench import STREAM, Bench
from tests.bench.load import preload
from tests.bench.stats import latency_summary
from tests.bench.workload import CUSTOMERS, ORDERS

RATE = 1_000  # a side
_CHANGES = 150_000  # of each side before: most of its keys have a row then
_VIEW = "joined"
_RIGHT = "customers"


def measure(bench: Bench) -> dict[str, Any]:
    with bench.fresh(ORDERS, ()) as running, bench.beside(running, _RIGHT, CUSTOMERS) as other:
        sides = two_sides.Sides(running, other, CUSTOMERS, RATE)
        with running.connect() as client:
            preload(running.bootstrap, running.topic, ORDERS, _CHANGES, seed=3)
            preload(running.bootstrap, other, CUSTOMERS, _CHANGES, seed=5)
            client.execute(
                f"CREATE MATERIALIZED VIEW {_VIEW} AS SELECT o.url, o.amount, c.plan "
                f"FROM {STREAM} AS o LEFT JOIN {_RIGHT} AS c ON o.customer = c.url"
            )
            client.execute("SET mv.filling_timeout = '30min'")
            rows = client.execute(f"SELECT count(*) FROM {_VIEW}").fetchone()
            sides.ages_ms(_VIEW, bench.settings.warm_up_s, 0)
            found = latency_summary(sides.ages_ms(_VIEW, bench.settings.seconds, 500_000))
    print(f"    2 x {RATE} changes/s: {found}")
    return {"rows": [{"changes_per_s": RATE, "joined_rows": rows[0] if rows else 0, **found}]}
