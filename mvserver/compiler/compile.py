"""From the tree of a SELECT to the frozen plan of a continuous query."""

from __future__ import annotations

from sqlglot import exp

from mvserver.compiler.capabilities.spark_text import identifier
from mvserver.compiler.changelogs import check_retraction
from mvserver.compiler.derived import pruned
from mvserver.compiler.lower_duckdb import lower as lower_duckdb
from mvserver.compiler.lower_spark import lower as lower_spark
from mvserver.compiler.lower_spark import spark_type
from mvserver.compiler.own_functions import NoFunctions, OwnFunctions, known
from mvserver.compiler.plans import Aggregation, ContinuousPlan, GroupJoin, Output, Projection
from mvserver.compiler.shape import RelationShape, Resolve
from mvserver.compiler.source_properties import STATE_TTL, query_properties
from mvserver.compiler.sources import Names, plan_select
from mvserver.compiler.state_ttl import with_state_ttl
from mvserver.compiler.unsettled import check_drawn, drawing
from mvserver.compiler.windowed import finish


def compile_select(
    select: exp.Expression,
    resolve: Resolve,
    *,
    default_starting: str,
    functions: OwnFunctions | None = None,
    written: bool = False,
) -> ContinuousPlan:
    """Bind, check and plan a continuous SELECT; ``default_starting`` is used where the source says nothing, and
    ``functions`` are the users' own that it may call. Rows that are ``written`` are not kept: only they may have the
    present time and values of chance.

    Everything that can be known to fail is found here: both lowerings are made once and thrown away.
    """
    given = query_properties(select)
    with known(functions or NoFunctions()), drawing(written=written):
        plan = finish(pruned(plan_select(select, Names(resolve, default_starting))), select)
        check_drawn(plan)
    if STATE_TTL in given:
        plan = with_state_ttl(plan, given[STATE_TTL])
    check_retraction(plan)
    check_lowering(plan)
    return plan


def check_lowering(plan: ContinuousPlan) -> None:
    """Lower everything once, so that what cannot be lowered is refused now."""
    if isinstance(plan, Projection):
        scanned = [output.expression for output in plan.outputs]
    else:
        scanned = list(plan.keys)
        for call in plan.aggregates:
            scanned.extend(part for part in (call.argument, call.filter) if part is not None)
        finished = [output.expression for output in plan.outputs]
        for expression in [*finished, *([plan.having] if plan.having is not None else [])]:
            lower_duckdb(expression, key=str, aggregate=str)
    if plan.where is not None:
        scanned.append(plan.where)
    scanned.extend(array for unnest in plan.scan.unnests for array in unnest.arrays)
    for expression in scanned:
        lower_spark(expression, identifier)
    for output in plan.outputs:
        spark_type(output.type)
    join = plan.scan.derived
    for side in () if join is None else join.sides:
        check_lowering(side.plan)
    if isinstance(join, GroupJoin):
        check_lowering(join.groups)


__all__ = [
    "Aggregation",
    "Output",
    "RelationShape",
    "Resolve",
    "compile_select",
]
