"""RESTART QUERY: a failed or terminated one goes on from its position; where asked past a rejected record, or anew."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.spark_wait import wait_for_spark
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.queries import RestartQuery

FIELDS = None
_VIEW = "materialized_view"


def run(statement: RestartQuery, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    before = catalog.queries.get(statement.id)
    privileges.require_query_owner(before, context, services)
    privileges.require_sources_of(before, services)
    if statement.with_snapshot and before.kind != _VIEW:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "RESTART QUERY ... WITH SNAPSHOT of a query that writes is not supported",
            detail="What it has written would be there twice.",
            hint="Drop the query, and create it anew with 'starting.position' = 'earliest'.",
        )
    if work.rehearsal:
        return done("RESTART QUERY")
    wait_for_spark(context, services)
    if before.desired_state != "running":
        with catalog.transaction():
            catalog.queries.get(statement.id)  # it may have been dropped meanwhile
            catalog.queries.set_desired_state(before.id, "running")
    try:
        services.engine.restart(before.id, skip_rejected=statement.skip_rejected)
        if statement.with_snapshot:
            services.engine.refresh(before.id)
    except BaseException:
        if before.desired_state != "running":
            with catalog.transaction():
                catalog.queries.set_desired_state(before.id, before.desired_state)
        raise
    return done("RESTART QUERY")
