"""Queries over rows of the server's own that need no Spark: the rows are in DuckDB, and it evaluates them.

A Spark job costs some hundred milliseconds however few rows it has, and the rows would go there and back. DuckDB is
trusted with what is proved equal to Spark's (:mod:`mvserver.compiler.lower_duckdb`).
"""

from __future__ import annotations

from collections.abc import Iterator

from mvserver.compiler import lower_duckdb
from mvserver.compiler.expressions import Expression, by_place
from mvserver.compiler.plans import PLAIN, Aggregation, ContinuousPlan, Scan
from mvserver.errors import SqlError


def in_duckdb(plan: ContinuousPlan) -> bool:
    """Whether DuckDB can evaluate all that the query computes of a row of its derived scan."""
    scan = plan.scan
    if scan.derived is None or scan.unnests or scan.window is not None:
        return False
    if any(column.not_null for column in scan.columns):  # a row may be rejected
        return False
    if isinstance(plan, Aggregation):
        if any(call.function not in PLAIN for call in plan.aggregates):
            return False
    elif plan.retention_ms is not None:
        return False
    try:
        for part in _parts(plan):
            over_columns(part, scan)
    except SqlError:  # DuckDB is not trusted with it
        return False
    return True


def over_columns(node: Expression, scan: Scan) -> str:
    """DuckDB's text of an expression over the columns of a log, c0 ..., in the order of the scan's."""
    return lower_duckdb.lower(by_place(node, (column.name for column in scan.columns)), "c{}".format, str)


def _parts(plan: ContinuousPlan) -> Iterator[Expression]:
    if plan.where is not None:
        yield plan.where
    if not isinstance(plan, Aggregation):
        yield from (output.expression for output in plan.outputs)
        return
    yield from plan.keys
    for call in plan.aggregates:
        yield from (part for part in (call.argument, call.filter) if part is not None)
