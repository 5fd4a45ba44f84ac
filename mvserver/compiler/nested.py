"""Aggregating what was aggregated: the groups of a sub-query, or of a view, as a changelog that a SELECT can read.

A query that only computes with another one's groups and filters them is part of their finishing. One that groups them
again needs a second state, fed by what becomes of the groups: each change of one takes back what it gave before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.compiler import lower_duckdb
from mvserver.compiler.derived import Groups, derived_scan
from mvserver.compiler.expressions import ColumnReference, Expression, by_place
from mvserver.compiler.plans import PLAIN, AggregateCall, Aggregation, ContinuousPlan, Scan
from mvserver.compiler.scope import Scope, ScopeColumn
from mvserver.compiler.windowed import check_grouped
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of

if TYPE_CHECKING:
    from mvserver.compiler.analyzer import Source


def changes_of(source: Source, plan: Aggregation, select: exp.Expression) -> Source:
    """The same names over the rows that ``plan`` gives, whose outputs they stand for. ``select`` is the tree of what
    reads them."""
    plan = check_grouped(plan, select)
    if _levels(plan.scan) >= limits.AGGREGATION_LEVELS_MAX:
        raise SqlError(
            sqlstates.STATEMENT_TOO_COMPLEX,
            f"aggregates are nested more than {limits.AGGREGATION_LEVELS_MAX} levels deep",
            position=position_of(select),
        )
    named = tuple(replace(output, name=f"{i}.{output.name}") for i, output in enumerate(plan.outputs))
    groups = Groups(replace(plan, outputs=named))
    scan = derived_scan(f"groups of {plan.scan.relation}", groups, groups.key)
    (table,) = source.scope.tables
    columns = tuple(
        ScopeColumn(column.name, ColumnReference(output.type, output.name))
        for column, output in zip(table.columns, named, strict=True)
    )
    return replace(source, scope=Scope((replace(table, columns=columns),)), scan=scan, where=None, aggregation=None)


def _levels(scan: Scan) -> int:
    """How many aggregations are below a scan, with the one that reads it."""
    derived = scan.derived
    if derived is None:
        return 1
    return max(_levels(side.scan) for side in derived.sides) + isinstance(derived, Groups)


def goes_along(plan: ContinuousPlan) -> bool:
    """Whether a query over groups changes in the transaction that changes them: where DuckDB can evaluate all that it
    computes of a group. An inner aggregate without keys has a row that no batch brings."""
    groups = plan.scan.derived
    if not isinstance(plan, Aggregation) or not isinstance(groups, Groups) or plan.scan.unnests:
        return False
    if not groups.plan.keys or () in groups.plan.grouping_sets:
        return False
    if any(call.function not in PLAIN for call in plan.aggregates):
        return False
    try:
        for part in (*plan.keys, plan.where, *(part for call in plan.aggregates for part in _parts(call))):
            if part is not None:
                over_columns(part, plan.scan)
    except SqlError:  # DuckDB is not trusted with it: Spark evaluates, a batch later
        return False
    return True


def over_columns(node: Expression, scan: Scan) -> str:
    """DuckDB's text of an expression over the columns of a log, c0 ..., in the order of the scan's."""
    return lower_duckdb.lower(by_place(node, (column.name for column in scan.columns)), "c{}".format, str)


def _parts(call: AggregateCall) -> tuple[Expression | None, ...]:
    return call.argument, call.filter
