"""How old an event is when a view of joined streams first shows it, while both sides get 10,000 events a second.

Event times are those of the records, so they go with the clock. Each visit of the interval join meets the one of the
same number on the other side; the age counts from the later of the two. In the temporal join each visit meets the
version of its customer at its time, for which it waits until the changelog's watermark has passed it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.bench import two_sides
from tests.bench.bench import STREAM, Bench
from tests.bench.stats import latency_summary
from tests.bench.workload import CUSTOMERS, VISITS, Workload

RATE = 10_000  # a side
_VIEW = "joined"
_RIGHT = "others"
_VISITS = replace(VISITS, timestamp=None)


@dataclass(frozen=True)
class _Join:
    name: str
    right: Workload
    select: str


_JOINS = (
    _Join(
        "interval",
        _VISITS,
        # the load sends its visits again after 10 seconds: each has one partner within less than half of that
        f"SELECT v.url, count(*) AS n, sum(o.amount) AS amount FROM {STREAM} AS v "
        f"JOIN {_RIGHT} AS o WITHIN 4 SECONDS ON v.id = o.id GROUP BY v.url",
    ),
    _Join(
        "temporal",
        replace(CUSTOMERS, timestamp=None),
        f"SELECT v.url, count(c.plan) AS n FROM {STREAM} AS v "
        f"LEFT JOIN {_RIGHT} AS c ON v.customer = c.url GROUP BY v.url",
    ),
)


def measure(bench: Bench) -> dict[str, Any]:
    return {"rows": [_measured(bench, join) for join in _JOINS]}


def _measured(bench: Bench, join: _Join) -> dict[str, Any]:
    with bench.fresh(_VISITS, ()) as running, bench.beside(running, _RIGHT, join.right) as other:
        sides = two_sides.Sides(running, other, join.right, RATE)
        with running.connect() as client:
            client.execute(f"CREATE MATERIALIZED VIEW {_VIEW} AS {join.select}".encode())
            sides.ages_ms(_VIEW, bench.settings.warm_up_s, 0)
            found = latency_summary(sides.ages_ms(_VIEW, bench.settings.seconds, 500_000))
            row = client.execute(f"SELECT sum(n) FROM {_VIEW}").fetchone()
    measured = {"join": join.name, "events_per_s": RATE, "joined_rows": int(row[0]) if row else 0, **found}
    print(f"    {measured}")
    return measured
