"""CREATE CHANGELOG … AS SELECT: a changelog, the compacted topic under it, and the query that writes to it."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import changelog_sinks, continuous, declaring, lookup, sinks
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateChangelogAs

FIELDS = None
TAG = "CREATE CHANGELOG"


def run(statement: CreateChangelogAs, context: SessionContext, services: Services, work: Work) -> Result:
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return done(TAG)
    planned = changelog_sinks.plan_changelog(statement, context, services)
    start = continuous.attach(planned.query, context, services, work)
    entity = declaring.EntityUnder(planned.store, planned.entity, planned.topic, planned.declaration.given)
    new = declaring.relation(
        lookup.CHANGELOG,
        statement,
        (planned.schema, planned.name),
        planned.columns(),
        planned.properties(),
        entity,
        context,
        services,
        planned.primary_key,
    )
    declaring.begin_writing(
        new, entity, "create_changelog_as", statement, planned.query, start, context, services, work
    )
    sinks.tell_repeated(new, planned.store, context, services)
    return done(TAG)
