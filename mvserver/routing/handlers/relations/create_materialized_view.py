"""CREATE [OR REPLACE] MATERIALIZED VIEW … AS SELECT: durable and registered when it returns; its history may still be
coming in."""

from __future__ import annotations

import uuid
from dataclasses import replace

from catalog.model import Relation
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import continuous, lookup
from mvserver.routing.ports import Services
from mvserver.routing.replacing import redefined
from mvserver.routing.rows import done
from mvserver.routing.views import PlannedView, plan_view, replaced_view
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateMaterializedView
from mvserver.streaming.api import HISTORY

FIELDS = None
TAG = "CREATE MATERIALIZED VIEW"


def run(statement: CreateMaterializedView, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return done(TAG)
    planned = plan_view(statement, context, services)
    start = continuous.attach(planned.query, context, services, work)
    with catalog.transaction():
        view = Relation(
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
        version = 1
        if planned.replaces is None:
            view = catalog.relations.add(view)
        else:
            view, version = _redefined(planned, view, statement, context, services)
        query = continuous.query("materialized_view", statement, planned.query, view.id, start, context, services)
        kept = () if planned.history_ms is None else ((HISTORY, str(planned.history_ms)),)
        catalog.queries.add(
            replace(query, owner=view.owner, definition_version=version, properties=(*query.properties, *kept))
        )
    work.after_commit(services.engine.reconcile)
    if planned.query.plan.scan.starting_position == continuous.EARLIEST:
        context.notice(
            f'materialized view "{view.name}" is being filled from the history of its source',
            detail=f"Its query is {query.id}.",
            hint="A SELECT on it waits until it is filled; DESCRIBE QUERY shows how far it is.",
        )
    return done(TAG)


def _redefined(
    planned: PlannedView,
    view: Relation,
    statement: CreateMaterializedView,
    context: SessionContext,
    services: Services,
) -> tuple[Relation, int]:
    """Its query ends and another one begins, with a state of its own."""
    catalog = services.catalog
    old = replaced_view(statement, (planned.schema, planned.name), context, services)
    if old is None or old != planned.replaces:
        raise SqlError(
            sqlstates.SERIALIZATION_FAILURE,
            f'materialized view "{planned.name}" was changed by another session',
            hint="Run the statement again.",
        )
    (query,) = catalog.queries.of_sink(old.id)
    catalog.queries.delete(query.id)
    return redefined(old, view, services), query.definition_version + 1
