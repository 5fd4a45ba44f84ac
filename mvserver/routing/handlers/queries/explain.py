"""EXPLAIN: the plan that would run, printed from the objects that would run.

Nothing is executed here: the session has run what ANALYZE has measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.compiler.changelogs import replaces_rows
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.front import Field, Result
from mvserver.routing import changelog_sinks, push, sinks, table_sinks
from mvserver.routing.explain_documents import document, of_lines
from mvserver.routing.handlers.relations import insert_into
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, result
from mvserver.routing.views import plan_view
from mvserver.routing.work import Work
from mvserver.serving.api import PlanNode, PlanRequest, PullPlan, ReadsStream, owner_of, refuse_continuous
from mvserver.session.context import SessionContext
from mvserver.sql.explain_options import ExplainOptions, explain_options
from mvserver.sql.push import push_query
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.queries import Explain, Measured, Pull, PushQuery
from mvserver.sql.statements.relations import (
    CreateChangelogAs,
    CreateMaterializedView,
    CreateStreamAs,
    CreateTableAs,
    InsertInto,
)
from mvserver.types.oids import JSON, TEXT

FIELDS = fields(("QUERY PLAN", TEXT))
_JSON_FIELDS = fields(("QUERY PLAN", JSON))


def fields_of(statement: Explain) -> tuple[Field, ...]:
    return _JSON_FIELDS if explain_options(statement.options).format == "json" else FIELDS


def run(statement: Explain, context: SessionContext, services: Services, work: Work) -> Result:
    options, measured = explain_options(statement.options), statement.measured
    if options.analyze and measured is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "EXPLAIN ANALYZE of this statement is not supported",
            hint="It runs a SELECT that ends by itself. DESCRIBE QUERY shows the rates of a running continuous query.",
        )
    if options.format == "json":
        told = document(_tree(statement, context, services), options, measured)
        return result("EXPLAIN", _JSON_FIELDS, [(told,)])
    lines = _lines(statement, context, services, options)
    if measured is not None:
        lines = _with_measures(lines, measured, options)
    return result("EXPLAIN", FIELDS, [(line,) for line in lines])


def _with_measures(lines: Sequence[str], measured: Measured, options: ExplainOptions) -> Sequence[str]:
    """As PostgreSQL has them: in the first line, and behind the plan."""
    time = f"time={measured.first_ms:.3f}..{measured.total_ms:.3f} " if options.timing else ""
    times = (f"Planning Time: {measured.planning_ms:.3f} ms", f"Execution Time: {measured.total_ms:.3f} ms")
    first = f"{lines[0]} (actual {time}rows={measured.rows} loops=1)"
    return [first, *lines[1:], *(times if options.summary else ())]


def _tree(statement: Explain, context: SessionContext, services: Services) -> PlanNode:
    inner = statement.statement
    if isinstance(inner, Pull):
        try:
            planned = _planned(inner, context, services)
        except ReadsStream:
            return of_lines(_push_lines(push_query(inner.text), context, services))
        return services.pulls.plan_nodes(planned, owner=owner_of(context.scope()), stopped=context.cancelled)
    return of_lines(_continuous_lines(inner, context, services))


def _planned(query: Pull, context: SessionContext, services: Services) -> PullPlan:
    scope = context.scope()
    refuse_continuous(query, scope)
    return services.pulls.plan(
        PlanRequest(query.select, scope, text=query.text, start=query.start, stopped=context.cancelled)
    )


def _lines(statement: Explain, context: SessionContext, services: Services, options: ExplainOptions) -> Sequence[str]:
    inner = statement.statement
    if isinstance(inner, Pull):
        try:
            planned = _planned(inner, context, services)
        except ReadsStream:
            return _push_lines(push_query(inner.text), context, services)
        return services.pulls.explain(
            planned, owner=owner_of(context.scope()), stopped=context.cancelled, costs=options.costs
        )
    return _continuous_lines(inner, context, services)


def _continuous_lines(inner: Statement, context: SessionContext, services: Services) -> Sequence[str]:
    if isinstance(inner, CreateMaterializedView):
        return _kept_lines(plan_view(inner, context, services).query.plan, services)
    if isinstance(inner, CreateStreamAs):
        return services.explain_plan(sinks.plan_stream(inner, context, services).query.plan)
    if isinstance(inner, CreateChangelogAs):
        return _kept_lines(changelog_sinks.plan_changelog(inner, context, services).query.plan, services)
    if isinstance(inner, CreateTableAs):
        return services.explain_plan(table_sinks.plan_table(inner, context, services).query.plan)
    if isinstance(inner, InsertInto):
        return services.explain_plan(insert_into.plan(inner, context, services)[1].plan)
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        "EXPLAIN of this statement is not supported",
        hint="It explains SELECT, CREATE MATERIALIZED VIEW, STREAM, CHANGELOG and TABLE AS, and INSERT INTO.",
    )


def _kept_lines(plan: ContinuousPlan, services: Services) -> Sequence[str]:
    """Of a query that reads along with others."""
    return [*services.explain_plan(plan), *services.engine.planned_lane(plan)]


def _push_lines(query: PushQuery, context: SessionContext, services: Services) -> Sequence[str]:
    end = "until its client ends it" if query.limit is None else f"until {query.limit} rows are sent"
    plan = push.plan(query, context, services).plan
    kinds = ["  Each row with the kind of its change: +I, -U, +U or -D"] if replaces_rows(plan) else []
    return [f"Push query, {end}", *kinds, *_kept_lines(plan, services)]
