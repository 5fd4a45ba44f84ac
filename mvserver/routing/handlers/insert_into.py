"""INSERT INTO stream SELECT …: one more continuous query that writes to an existing stream."""

from __future__ import annotations

from mvserver.pgwire.backend import Result
from mvserver.routing import continuous, sinks
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements import InsertInto

FIELDS = None


def run(statement: InsertInto, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    sink, planned = sinks.plan_insert(statement, context, services)
    start = continuous.attach(planned, context, services, work)
    with catalog.transaction():
        query = continuous.query("insert_into", statement, planned, sink.id, start, context, services)
        catalog.queries.add(query)
    work.after_commit(services.engine.reconcile)
    context.notice(f'query {query.id} writes to stream "{sink.name}"')
    sinks.at_least_once(planned, context)
    return done("INSERT INTO")
