"""CREATE ENTITY: a topic, a directory or a table, without a relation over it."""

from __future__ import annotations

from catalog.acl import Privilege
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import lookup, stream_entity, table_sinks
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import CreateEntity

FIELDS = None


def run(statement: CreateEntity, context: SessionContext, services: Services, work: Work) -> Result:
    store = lookup.store(statement.store, Privilege.CREATE, context, services)
    kind = services.stores.kind(store.type)
    if kind.tables is not None:
        table_sinks.create_entity(store, statement, services, work)
        return done("CREATE ENTITY")
    if statement.columns:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"an entity of a store of type {store.type} has no columns",
            hint="CREATE STREAM declares the columns of its records.",
        )
    stream_entity.check_properties(store, statement.properties, services)
    client = services.stores.client(store)
    client.check_create_entity(statement.name, statement.properties)
    work.effect(
        f'entity "{statement.name}"',
        lambda: client.create_entity(statement.name, statement.properties),
        lambda: client.drop_entity(statement.name, {}),
    )
    return done("CREATE ENTITY")
