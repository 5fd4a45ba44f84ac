"""From the tree of a SELECT to the frozen plan of a continuous query."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from mvserver import sqlstates
from mvserver.compiler.analyzer import analyze
from mvserver.compiler.capabilities.spark_text import identifier
from mvserver.compiler.expressions import KeyReference
from mvserver.compiler.lower_duckdb import lower as lower_duckdb
from mvserver.compiler.lower_spark import lower as lower_spark
from mvserver.compiler.lower_spark import spark_type
from mvserver.compiler.plans import Aggregation, ContinuousPlan, Output, Projection
from mvserver.compiler.scope import Scope
from mvserver.compiler.shape import RelationShape, Resolve
from mvserver.compiler.source_properties import check_query_properties, scan_of
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of
from mvserver.sql.types import SqlType


@dataclass(frozen=True)
class PlanColumn:
    """A column of what a plan produces."""

    name: str
    type: SqlType
    is_key: bool = False


def compile_select(select: exp.Expression, resolve: Resolve, *, default_starting: str) -> ContinuousPlan:
    """Bind, check and plan a continuous SELECT; ``default_starting`` is used where the source says nothing.

    Everything that can be known to fail is found here: both lowerings are made once and thrown away.
    """
    _refuse_clauses(select)
    check_query_properties(select)
    table = _source(select)
    parts = tuple(str(part.this) for key in ("catalog", "db", "this") if (part := table.args.get(key)) is not None)
    relation = resolve(parts, position_of(table))
    if relation.kind != "stream":
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'continuous queries over a {relation.kind} are not supported: "{parts[-1]}"',
            hint="The source of a continuous query is a stream.",
            position=position_of(table),
        )
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, "column aliases of a source are not supported", position=position_of(alias)
        )
    scope = Scope.of(relation, str(alias.this.this) if alias is not None and alias.this is not None else None)
    plan = analyze(select, scope, scan_of(relation, table, default_starting))
    check_lowering(plan)
    return plan


def plan_columns(plan: ContinuousPlan) -> tuple[PlanColumn, ...]:
    """The columns that the plan produces, in order, with those that are keys marked."""
    keys = plan_keys(plan)
    return tuple(PlanColumn(output.name, output.type, output.name in keys) for output in plan.outputs)


def plan_keys(plan: ContinuousPlan) -> tuple[str, ...]:
    """The names of the outputs that are group keys, in the order of the outputs; none for a projection.

    Keys of GROUP BY that the SELECT list leaves out have no name here: the view still groups by them.
    """
    if isinstance(plan, Projection):
        return ()
    return tuple(output.name for output in plan.outputs if isinstance(output.expression, KeyReference))


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
    for expression in scanned:
        lower_spark(expression, identifier)
    for output in plan.outputs:
        spark_type(output.type)


def _refuse_clauses(select: exp.Expression) -> None:
    if not isinstance(select, exp.Select):
        raise _refused("UNION, INTERSECT and EXCEPT", select, "Write one query for each part.")
    if select.args.get("with_") is not None:
        raise _refused("WITH", select.args["with_"], "Name the streams in FROM.")
    if select.args.get("distinct") is not None:
        raise _refused("SELECT DISTINCT", select.args["distinct"], "GROUP BY the columns instead.")
    for clause, spelled in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if select.args.get(clause) is not None:
            raise _refused(spelled, select.args[clause], "Use it in the SELECT that reads the view.")
    if select.args.get("windows") is not None:
        raise _refused("WINDOW", select, "Use it in the SELECT that reads the view.")


def _source(select: exp.Expression) -> exp.Expression:
    source = select.args.get("from_")
    if source is None:
        raise _refused("a SELECT without FROM", select, "A continuous query reads a stream.")
    joins = select.args.get("joins")
    if joins:
        raise _refused("a join", joins[0], "Join the views in the SELECT that reads them.")
    table: exp.Expression = source.this
    if not isinstance(table, exp.Table):
        raise _refused("a sub-query in FROM", table, "Name a stream.")
    return table


def _refused(what: str, node: exp.Expression, hint: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"{what} is not supported in a continuous query",
        hint=hint,
        position=position_of(node),
    )


__all__ = [
    "Aggregation",
    "Output",
    "PlanColumn",
    "RelationShape",
    "Resolve",
    "compile_select",
    "plan_columns",
    "plan_keys",
]
