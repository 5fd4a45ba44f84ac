"""CREATE STREAM … AS SELECT: a stream, the topic under it, and the query that writes to it."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import continuous, declaring, lookup, sinks
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateStreamAs

FIELDS = None
TAG = "CREATE STREAM"


def run(statement: CreateStreamAs, context: SessionContext, services: Services, work: Work) -> Result:
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return done(TAG)
    planned = sinks.plan_stream(statement, context, services)
    start = continuous.attach(planned.query, context, services, work)
    entity = declaring.EntityUnder(planned.store, planned.entity, planned.declaration, statement.properties)
    properties = planned.declaration.kept(planned.value_format)
    place, columns = (planned.schema, planned.name), planned.query.columns()
    new = declaring.relation(lookup.STREAM, statement, place, columns, properties, entity, context, services)
    declaring.begin_writing(new, entity, "create_stream_as", statement, planned.query, start, context, services, work)
    sinks.at_least_once(planned.query, new, planned.store, context, services)
    return done(TAG)
