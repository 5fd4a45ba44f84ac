"""The values that a query computes of a row of a log, as DuckDB evaluates them: the same that Spark would bring."""

from __future__ import annotations

from mvserver.compiler.duckdb_types import duckdb_type
from mvserver.compiler.expressions import Expression
from mvserver.compiler.in_duckdb import over_columns
from mvserver.compiler.plans import AggregateCall, Scan
from mvserver.sql.types import Kind


def condition(where: Expression | None, scan: Scan) -> str:
    return "true" if where is None else f"coalesce({over_columns(where, scan)}, false)"


def key(node: Expression, scan: Scan) -> str:
    text = value(node, scan)
    # One zero, as where Spark evaluates: a primary key would tell -0 from 0.
    return f"CASE WHEN {text} = 0 THEN 0 ELSE {text} END" if node.type.kind in (Kind.FLOAT, Kind.DOUBLE) else text


def argument(call: AggregateCall, scan: Scan) -> str:
    text = "1" if call.argument is None else value(call.argument, scan)
    return text if call.filter is None else f"CASE WHEN {over_columns(call.filter, scan)} THEN {text} END"


def value(node: Expression, scan: Scan) -> str:
    return f"CAST({over_columns(node, scan)} AS {duckdb_type(node.type)})"
