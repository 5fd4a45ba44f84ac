"""What EXPLAIN says of the cost of a pull query, as PostgreSQL's first line has it: postgres_fdw plans by it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mvserver.serving.api import PullPlan

_ROWS = re.compile(r"~([\d,]+) rows?")
_ROW_COST = 0.01  # PostgreSQL's cpu_tuple_cost: DuckDB has no costs
_TEXT_WIDTH = 32  # PostgreSQL's guess for a value of any length


def estimated(plan: PullPlan, lines: Sequence[str]) -> str:
    """By DuckDB's guess of the rows of the result, which stands first among ``lines``."""
    found = next((match for match in map(_ROWS.search, lines) if match is not None), None)
    rows = 1 if found is None else max(1, int(found[1].replace(",", "")))
    return f"(cost=0.00..{rows * _ROW_COST:.2f} rows={rows} width={width(plan)})"


def width(plan: PullPlan) -> int:
    """Of a row of its result, in bytes."""
    return sum(field.type_size if field.type_size > 0 else _TEXT_WIDTH for field in plan.fields)
