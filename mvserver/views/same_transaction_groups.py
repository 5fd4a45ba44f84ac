"""A query over groups whose expressions DuckDB evaluates: what it takes of each change, in the same transaction."""

from __future__ import annotations

from mvserver.compiler.nested import goes_along
from mvserver.compiler.plans import Aggregation
from mvserver.views import log_values
from mvserver.views.change_input import contributed
from mvserver.views.targets import Target
from spark_sinks.duckdb.changes.changelog import RetractedState
from spark_sinks.duckdb.changes.group_logs import GROUP_CHANGES, SameTransactionGroups

_PASSES = "passes"


def along(target: Target) -> SameTransactionGroups | None:
    """None for a query that needs Spark, and for one that is not over groups."""
    plan, state = target.plan, target.state
    if not isinstance(plan, Aggregation) or not isinstance(state, RetractedState) or not goes_along(plan):
        return None
    scan, rows = plan.scan, state.rows
    keys = [log_values.key(key, scan) for key in plan.keys]
    arguments = [log_values.argument(call.call, scan) for call in target.calls]
    columns = contributed(state, keys, arguments, ())
    kept = [f"CASE WHEN {_PASSES} THEN {text} END AS {name}" for text, name in zip(columns, rows.columns, strict=True)]
    primary = [f"c{i}" for i in range(len(rows.keys))]
    identity = f"{rows.identity_of(primary)} AS {rows.identity[0]}"
    named = [f"{column} AS {name}" for column, name in zip(primary, rows.keys, strict=True)]
    passing = f"CASE WHEN NOT deleted THEN {log_values.condition(plan.where, scan)} ELSE false END AS {_PASSES}"
    changes = (
        f"SELECT {', '.join([identity, *named, _PASSES, *kept])} FROM (SELECT *, {passing} FROM {GROUP_CHANGES}) AS g"
    )
    return SameTransactionGroups(target.query_id, state, changes, target.keeper)
