"""INSERT INTO … SELECT …: one more continuous query that writes to an existing stream, changelog or table."""

from __future__ import annotations

from catalog.model import Relation
from mvserver.front import Result
from mvserver.routing import changelog_sinks, continuous, lookup, sinks
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import InsertInto

FIELDS = None


def run(statement: InsertInto, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    sink, planned = plan(statement, context, services)
    start = continuous.attach(planned, context, services, work)
    if not work.rehearsal:
        services.schema_registries.check_written(lookup.store_of(sink, services)[0], sink)
    with catalog.transaction():
        query = continuous.query("insert_into", statement, planned, sink.id, start, context, services)
        catalog.queries.add(query)
    work.after_commit(services.engine.reconcile)
    context.notice(f'query {query.id} writes to {sink.kind} "{sink.name}"')
    store, _ = lookup.store_of(sink, services)
    if sink.key_columns:
        sinks.tell_repeated(sink, store, context, services)
    else:
        sinks.at_least_once(planned, sink, store, context, services)
    return done("INSERT INTO")


def plan(statement: InsertInto, context: SessionContext, services: Services) -> tuple[Relation, PlannedQuery]:
    sink = sinks.insert_target(statement, context, services)
    if not sink.key_columns:
        return sink, sinks.plan_insert(sink, statement, context, services)
    return sink, changelog_sinks.plan_insert(sink, statement, context, services)
