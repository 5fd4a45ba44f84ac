"""CREATE ENTITY: a topic or a directory, without a stream over it."""

from __future__ import annotations

from catalog.acl import Privilege
from mvserver.front import Result
from mvserver.routing import lookup, stream_entity
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import CreateEntity

FIELDS = None


def run(statement: CreateEntity, context: SessionContext, services: Services, work: Work) -> Result:
    store = lookup.store(statement.store, Privilege.CREATE, context, services)
    stream_entity.check_properties(store, statement.properties, services)
    client = services.stores.client(store)
    client.check_create_entity(statement.name, statement.properties)
    work.effect(
        f'entity "{statement.name}"',
        lambda: client.create_entity(statement.name, statement.properties),
        lambda: client.drop_entity(statement.name, {}),
    )
    return done("CREATE ENTITY")
