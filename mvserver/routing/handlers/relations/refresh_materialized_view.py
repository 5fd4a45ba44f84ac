"""REFRESH MATERIALIZED VIEW: rebuilt from what its source still has; the view's state says from where."""

from __future__ import annotations

from functools import partial

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import lookup, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.spark_wait import wait_for_spark
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import RefreshMaterializedView

FIELDS = None


def run(statement: RefreshMaterializedView, context: SessionContext, services: Services, work: Work) -> Result:
    view = lookup.relation(statement.name, context, services)
    if view.kind != lookup.VIEW:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f'"{view.name}" is not a materialized view',
            position=statement.name.position,
        )
    privileges.require_owner(view, context, services, statement.name.position)
    (query,) = services.catalog.queries.of_sink(view.id)
    privileges.require_sources_of(query, services)
    if services.catalog.in_transaction:  # at COMMIT
        work.after_commit(partial(services.engine.refresh, query.id))
    else:
        wait_for_spark(context, services)
        services.engine.refresh(query.id)
    return done("REFRESH MATERIALIZED VIEW")
