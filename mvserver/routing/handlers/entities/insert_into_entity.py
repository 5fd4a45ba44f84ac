"""INSERT INTO ENTITY … VALUE (…): one record, written as it is given."""

from __future__ import annotations

from catalog.acl import Privilege
from mvserver.front import Result
from mvserver.routing import lookup
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import InsertIntoEntity

FIELDS = None


def run(statement: InsertIntoEntity, context: SessionContext, services: Services, work: Work) -> Result:
    store = lookup.store(statement.store, Privilege.INSERT, context, services)
    client = services.stores.client(store)
    if work.rehearsal:
        client.describe_entity(statement.name)  # raises when there is none
    else:
        client.insert_record(statement.name, statement.value, statement.key, statement.properties)
    return done("INSERT 0 1")
