"""CREATE STREAM … AS SELECT: a stream, the topic under it, and the query that writes to it."""

from __future__ import annotations

import uuid

from catalog.model import Relation
from mvserver.front import Result
from mvserver.routing import continuous, lookup, sinks, stream_entity
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateStreamAs

FIELDS = None
TAG = "CREATE STREAM"


def run(statement: CreateStreamAs, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return done(TAG)
    planned = sinks.plan_stream(statement, context, services)
    start = continuous.attach(planned.query, context, services, work)
    with catalog.transaction():
        stream_entity.ensure(
            planned.store, planned.entity, planned.declaration, statement.properties, context, services, work
        )
        stream = catalog.relations.add(
            Relation(
                id=str(uuid.uuid4()),
                oid=0,
                schema_id=planned.schema.id,
                name=planned.name,
                kind=lookup.STREAM,
                columns=planned.query.columns(),
                properties=planned.declaration.kept(planned.value_format),
                definition=statement.text,
                owner=context.role,
                created_at=services.clock(),
                store_id=planned.store.id,
                entity=planned.entity,
            )
        )
        query = continuous.query("create_stream_as", statement, planned.query, stream.id, start, context, services)
        catalog.queries.add(query)
    work.after_commit(services.engine.reconcile)
    context.notice(f'query {query.id} writes to stream "{stream.name}"')
    sinks.at_least_once(planned.query, context)
    return done(TAG)
