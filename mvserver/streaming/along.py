"""A query over groups whose expressions DuckDB evaluates: what it takes of each change, in the same transaction."""

from __future__ import annotations

from mvserver.compiler.duckdb_types import duckdb_type
from mvserver.compiler.expressions import Expression
from mvserver.compiler.nested import goes_along, over_columns
from mvserver.compiler.plans import AggregateCall, Aggregation, Scan
from mvserver.sql.types import Kind
from mvserver.streaming.change_input import contributed
from mvserver.streaming.targets import Target
from spark_sinks.duckdb.changelog import RetractedState
from spark_sinks.duckdb.group_logs import GROUP_CHANGES, AlongGroups

_PASSES = "passes"


def along(target: Target) -> AlongGroups | None:
    """None for a query that needs Spark, and for one that is not over groups."""
    plan, state = target.plan, target.state
    if not isinstance(plan, Aggregation) or not isinstance(state, RetractedState) or not goes_along(plan):
        return None
    scan, rows = plan.scan, state.rows
    keys = [_key(key, scan) for key in plan.keys]
    arguments = [_argument(call.call, scan) for call in target.calls]
    columns = contributed(state, keys, arguments, ())
    kept = [f"CASE WHEN {_PASSES} THEN {text} END AS {name}" for text, name in zip(columns, rows.columns, strict=True)]
    primary = [f"c{i}" for i in range(len(rows.keys))]
    identity = f"{rows.identity_of(primary)} AS {rows.identity[0]}"
    named = [f"{column} AS {name}" for column, name in zip(primary, rows.keys, strict=True)]
    where = "true" if plan.where is None else f"coalesce({over_columns(plan.where, scan)}, false)"
    passing = f"CASE WHEN NOT deleted THEN {where} ELSE false END AS {_PASSES}"
    changes = (
        f"SELECT {', '.join([identity, *named, _PASSES, *kept])} FROM (SELECT *, {passing} FROM {GROUP_CHANGES}) AS g"
    )
    return AlongGroups(target.query_id, state, changes, target.keeper)


def _key(key: Expression, scan: Scan) -> str:
    text = _value(key, scan)
    # One zero, as where Spark evaluates: a primary key would tell -0 from 0.
    return f"CASE WHEN {text} = 0 THEN 0 ELSE {text} END" if key.type.kind in (Kind.FLOAT, Kind.DOUBLE) else text


def _argument(call: AggregateCall, scan: Scan) -> str:
    value = "1" if call.argument is None else _value(call.argument, scan)
    return value if call.filter is None else f"CASE WHEN {over_columns(call.filter, scan)} THEN {value} END"


def _value(node: Expression, scan: Scan) -> str:
    return f"CAST({over_columns(node, scan)} AS {duckdb_type(node.type)})"
