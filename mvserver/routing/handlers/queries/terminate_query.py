"""TERMINATE QUERY: it stops at its position; a view keeps the rows that it has."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.queries import TerminateQuery

FIELDS = None
TAG = "TERMINATE QUERY"


def run(statement: TerminateQuery, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        query = catalog.queries.get(statement.id)
        privileges.require_query_owner(query, context, services)
        if query.desired_state == "terminated":
            context.notice(f'query "{query.id}" is already terminated')
            return done(TAG)
        catalog.queries.set_desired_state(query.id, "terminated")
    work.after_commit(services.engine.reconcile)
    return done(TAG)
