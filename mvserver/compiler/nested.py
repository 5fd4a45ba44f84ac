"""Aggregating what was aggregated: the groups of a sub-query, or of a view, as a changelog that a SELECT can read.

A query that only computes with another one's groups and filters them is part of their finishing. One that groups them
again needs a second state, fed by what becomes of the groups: each change of one takes back what it gave before.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.compiler.derived import derived_scan
from mvserver.compiler.expressions import ColumnReference
from mvserver.compiler.in_duckdb import in_duckdb
from mvserver.compiler.plans import Aggregation, ContinuousPlan, Groups, Scan
from mvserver.compiler.scope import Scope, ScopeColumn, Source
from mvserver.compiler.windowed import check_grouped
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of


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
    if not isinstance(plan, Aggregation) or not isinstance(groups, Groups):
        return False
    return bool(groups.plan.keys) and () not in groups.plan.grouping_sets and in_duckdb(plan)
