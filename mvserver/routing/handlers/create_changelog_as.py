"""CREATE CHANGELOG … AS SELECT: a changelog, the compacted topic under it, and the query that writes to it."""

from __future__ import annotations

import uuid

from catalog.model import Relation
from mvserver.front import Result
from mvserver.routing import changelog_sinks, continuous, lookup, stream_entity
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateChangelogAs

FIELDS = None
TAG = "CREATE CHANGELOG"


def run(statement: CreateChangelogAs, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return done(TAG)
    planned = changelog_sinks.plan_changelog(statement, context, services)
    start = continuous.attach(planned.query, context, services, work)
    with catalog.transaction():
        stream_entity.ensure(
            planned.store, planned.entity, planned.topic, planned.declaration.given, context, services, work
        )
        changelog = catalog.relations.add(
            Relation(
                id=str(uuid.uuid4()),
                oid=0,
                schema_id=planned.schema.id,
                name=planned.name,
                kind=lookup.CHANGELOG,
                columns=planned.columns(),
                properties=planned.properties(),
                definition=statement.text,
                owner=context.role,
                created_at=services.clock(),
                store_id=planned.store.id,
                entity=planned.entity,
                key_columns=planned.primary_key,
            )
        )
        query = continuous.query(
            "create_changelog_as", statement, planned.query, changelog.id, start, context, services
        )
        catalog.queries.add(query)
    work.after_commit(services.engine.reconcile)
    context.notice(f'query {query.id} writes to changelog "{changelog.name}"')
    return done(TAG)
