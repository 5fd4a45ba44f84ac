"""CREATE STORE, for roles that have CREATESTORE: properties are checked and the store is reached before it is kept."""

from __future__ import annotations

import uuid

from catalog.model import Store
from mvserver import sqlstates
from mvserver.front import Result
from mvserver.routing import notices, privileges, schema_registries, store_kinds
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import CreateStore

FIELDS = None
TAG = "CREATE STORE"


def run(statement: CreateStore, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    privileges.require_attribute(context, services, privileges.CREATESTORE, "create store")
    if statement.if_not_exists and catalog.stores.find(statement.name) is not None:
        notices.skipped(context, sqlstates.DUPLICATE_OBJECT, f'store "{statement.name}" already exists')
        return done(TAG)
    catalog.stores.check_new(statement.name)
    kind = store_kinds.kind(PropertyReader(statement.properties, "a store"), services)
    properties = store_kinds.checked(kind, statement.properties, {}, services)
    schema_registries.check_of_store(properties, context, services)
    now = services.clock()
    store = Store(str(uuid.uuid4()), 0, statement.name, kind.name, properties, context.role, now, now)
    store_kinds.answers(store, services, work)
    with catalog.transaction():
        schema_registries.check_of_store(properties, context, services)  # it may have been dropped meanwhile
        catalog.stores.add(store)
    return done(TAG)
