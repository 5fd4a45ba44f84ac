"""DROP ENTITY: refused while a stream is declared over it. What was in it is gone for good."""

from __future__ import annotations

from catalog.acl import Privilege
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import lookup, notices, stream_entity
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import DropEntity

FIELDS = None
TAG = "DROP ENTITY"


def run(statement: DropEntity, context: SessionContext, services: Services, work: Work) -> Result:
    store = lookup.store(statement.store, Privilege.CREATE, context, services)
    stream_entity.take_turn(store, statement.name, services, work)  # no stream is declared over it meanwhile
    users = [r for r in services.catalog.relations.of_store(store.id) if r.entity == statement.name]
    if users:
        raise SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f"cannot drop entity {statement.name} because other objects depend on it",
            detail="\n".join(f"{r.kind} {r.name} depends on entity {statement.name}" for r in users),
            hint="Drop the streams over it first.",
        )
    client = services.stores.client(store)
    if not client.entity_exists(statement.name):
        if statement.if_exists:
            notices.missing(context, f'entity "{statement.name}" does not exist in store "{store.name}"')
            return done(TAG)
        client.describe_entity(statement.name)  # raises the store's own words for what is not there
    if not work.rehearsal:
        client.drop_entity(statement.name, statement.properties)
    return done(TAG)
