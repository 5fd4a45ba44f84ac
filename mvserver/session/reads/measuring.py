"""EXPLAIN ANALYZE of a SELECT: it is run as it would be, and its rows are counted instead of sent."""

from __future__ import annotations

import time

from mvserver.serving.api import PullPlan
from mvserver.session.clock import StatementClock
from mvserver.session.reads.pulls import PullRunner
from mvserver.sql.statements.queries import Measured

_DIGITS = 3  # of a millisecond, as in PostgreSQL


def measured(pulls: PullRunner, plan: PullPlan, planning_s: float, clock: StatementClock) -> Measured:
    began = time.perf_counter()
    first_s: float | None = None
    rows = 0
    result = pulls.run(plan, (), clock)
    try:
        for batch in result.batches:
            first_s = time.perf_counter() - began if first_s is None else first_s
            rows += batch.num_rows
    finally:
        result.close()
    total_s = time.perf_counter() - began
    return Measured(_ms(planning_s), _ms(total_s if first_s is None else first_s), _ms(total_s), rows)


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, _DIGITS)
