"""EXPLAIN: the plan that would run, printed from the objects that would run. Nothing is executed."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.compiler.changelogs import replaces_rows
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import changelog_sinks, push, sinks, table_sinks
from mvserver.routing.handlers.relations import insert_into
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, result
from mvserver.routing.views import plan_view
from mvserver.routing.work import Work
from mvserver.serving.api import PlanRequest, ReadsStream, owner_of, refuse_continuous
from mvserver.session.context import SessionContext
from mvserver.sql.push import push_query
from mvserver.sql.statements.queries import Explain, Pull, PushQuery
from mvserver.sql.statements.relations import (
    CreateChangelogAs,
    CreateMaterializedView,
    CreateStreamAs,
    CreateTableAs,
    InsertInto,
)
from mvserver.types.oids import TEXT

FIELDS = fields(("QUERY PLAN", TEXT))

_IGNORED = ("verbose", "costs", "settings", "generic_plan", "summary", "memory", "timing", "buffers", "wal")
_OFF = ("off", "false", "0")


def run(statement: Explain, context: SessionContext, services: Services, work: Work) -> Result:
    _check_options(statement)
    return result("EXPLAIN", FIELDS, [(line,) for line in _lines(statement, context, services)])


def _lines(statement: Explain, context: SessionContext, services: Services) -> Sequence[str]:
    inner = statement.statement
    if isinstance(inner, Pull):
        try:
            scope = context.scope()
            refuse_continuous(inner, scope)
            planned = services.pulls.plan(
                PlanRequest(inner.select, scope, text=inner.text, start=inner.start, stopped=context.cancelled)
            )
            return services.pulls.explain(
                planned, owner=owner_of(scope), stopped=context.cancelled, costs=_wants_costs(statement)
            )
        except ReadsStream:
            return _push_lines(push_query(inner.text), context, services)
    if isinstance(inner, CreateMaterializedView):
        return services.explain_plan(plan_view(inner, context, services).query.plan)
    if isinstance(inner, CreateStreamAs):
        return services.explain_plan(sinks.plan_stream(inner, context, services).query.plan)
    if isinstance(inner, CreateChangelogAs):
        return services.explain_plan(changelog_sinks.plan_changelog(inner, context, services).query.plan)
    if isinstance(inner, CreateTableAs):
        return services.explain_plan(table_sinks.plan_table(inner, context, services).query.plan)
    if isinstance(inner, InsertInto):
        return services.explain_plan(insert_into.plan(inner, context, services)[1].plan)
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        "EXPLAIN of this statement is not supported",
        hint="It explains SELECT, CREATE MATERIALIZED VIEW, STREAM, CHANGELOG and TABLE AS, and INSERT INTO.",
    )


def _push_lines(query: PushQuery, context: SessionContext, services: Services) -> Sequence[str]:
    end = "until its client ends it" if query.limit is None else f"until {query.limit} rows are sent"
    plan = push.plan(query, context, services).plan
    kinds = ["  Each row with the kind of its change: +I, -U, +U or -D"] if replaces_rows(plan) else []
    return [f"Push query, {end}", *kinds, *services.explain_plan(plan)]


def _wants_costs(statement: Explain) -> bool:
    given = [value.lower() for name, value in statement.options if name == "costs"]
    return not given or given[-1] not in _OFF


def _check_options(statement: Explain) -> None:
    for name, value in statement.options:
        if name == "analyze" and value.lower() not in _OFF:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "EXPLAIN ANALYZE is not supported",
                hint="DESCRIBE QUERY shows the rates of a running continuous query.",
            )
        if name == "format" and value.lower() != "text":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"EXPLAIN format {value} is not supported",
                hint="Leave it out: it is text.",
            )
        if name not in ("analyze", "format", *_IGNORED):
            raise SqlError(sqlstates.SYNTAX_ERROR, f'unrecognized EXPLAIN option "{name}"')
