"""CREATE MATERIALIZED VIEW … AS SELECT: durable and registered when it returns; its history may still be coming in."""

from __future__ import annotations

import uuid

from catalog.model import Relation
from mvserver.pgwire.backend import Result
from mvserver.routing import continuous, lookup
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.views import plan_view
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateMaterializedView

FIELDS = None
TAG = "CREATE MATERIALIZED VIEW"


def run(statement: CreateMaterializedView, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return done(TAG)
    planned = plan_view(statement, context, services)
    start = continuous.attach(planned.query, context, services, work)
    with catalog.transaction():
        view = catalog.relations.add(
            Relation(
                id=str(uuid.uuid4()),
                oid=0,
                schema_id=planned.schema.id,
                name=planned.name,
                kind=lookup.VIEW,
                columns=planned.query.columns(),
                properties=(),
                definition=statement.text,
                owner=context.role,
                created_at=services.clock(),
                key_columns=planned.key_columns(),
            )
        )
        query = continuous.query("materialized_view", statement, planned.query, view.id, start, context, services)
        catalog.queries.add(query)
    work.after_commit(services.engine.reconcile)
    if planned.query.plan.scan.starting_position == continuous.EARLIEST:
        context.notice(
            f'materialized view "{view.name}" is being filled from the history of its source',
            detail=f"Its query is {query.id}.",
            hint="A SELECT on it waits until it is filled; DESCRIBE QUERY shows how far it is.",
        )
    return done(TAG)
