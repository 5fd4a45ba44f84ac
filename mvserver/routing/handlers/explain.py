"""EXPLAIN: the plan that would run, printed from the objects that would run. Nothing is executed."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgwire.backend import Result
from mvserver.routing import sinks
from mvserver.routing.ports import Services
from mvserver.routing.rows import TEXT, fields, result
from mvserver.routing.views import plan_view
from mvserver.routing.work import Work
from mvserver.serving.api import PullScope
from mvserver.session.context import SessionContext
from mvserver.sql.statements import CreateMaterializedView, CreateStreamAs, Explain, InsertInto, Pull

FIELDS = fields(("QUERY PLAN", TEXT))

_IGNORED = ("verbose", "costs", "settings", "generic_plan", "summary", "memory", "timing", "buffers", "wal")
_OFF = ("off", "false", "0")


def run(statement: Explain, context: SessionContext, services: Services, work: Work) -> Result:
    _check_options(statement)
    return result("EXPLAIN", FIELDS, [(line,) for line in _lines(statement, context, services)])


def _lines(statement: Explain, context: SessionContext, services: Services) -> Sequence[str]:
    inner = statement.statement
    if isinstance(inner, Pull):
        return services.pulls.explain(services.pulls.plan(inner.select, _scope(context)))
    if isinstance(inner, CreateMaterializedView):
        return services.explain_plan(plan_view(inner, context, services).query.plan)
    if isinstance(inner, CreateStreamAs):
        return services.explain_plan(sinks.plan_stream(inner, context, services).query.plan)
    if isinstance(inner, InsertInto):
        return services.explain_plan(sinks.plan_insert(inner, context, services)[1].plan)
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        "EXPLAIN of this statement is not supported",
        hint="It explains SELECT, CREATE MATERIALIZED VIEW, CREATE STREAM AS and INSERT INTO.",
    )


def _scope(context: SessionContext) -> PullScope:
    """As the session would read."""
    return PullScope(context.database, context.search_path, context.role, context.settings.get("timezone", "UTC"))


def _check_options(statement: Explain) -> None:
    for name, value in statement.options:
        if name == "analyze" and value.lower() not in _OFF:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "EXPLAIN ANALYZE is not supported",
                hint="DESCRIBE QUERY shows the rates of a running continuous query.",
            )
        if name == "format" and value.lower() != "text":
            raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"EXPLAIN format {value} is not supported")
        if name not in ("analyze", "format", *_IGNORED):
            raise SqlError(sqlstates.SYNTAX_ERROR, f'unrecognized EXPLAIN option "{name}"')
