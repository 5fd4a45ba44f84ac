"""UPDATE STORE: new properties over the old; the place cannot change its kind or region under what reads it."""

from __future__ import annotations

from dataclasses import replace

from catalog.dependencies import REGISTRY_OF_STORE
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import privileges, schema_registries, store_kinds
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import UpdateStore

FIELDS = None
TAG = "UPDATE STORE"


def run(statement: UpdateStore, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    store = catalog.stores.get(statement.name)
    privileges.require_owner(store, context, services)
    kind = services.stores.kind(store.type)
    for key in statement.properties:
        if key == "type" or key in kind.fixed_keys:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'property "{key}" of a store cannot be changed',
                hint="Create another store.",
                position=statement.properties.position(key),
            )
    properties = store_kinds.checked(kind, statement.properties, dict(store.properties), services)
    if dict(properties).get(REGISTRY_OF_STORE) != store.property(REGISTRY_OF_STORE):
        schema_registries.check_of_store(properties, context, services)
    updated = replace(store, properties=properties, updated_at=max(services.clock(), store.updated_at + 1e-6))
    store_kinds.answers(updated, services, work)
    with catalog.transaction():
        catalog.stores.get(statement.name)  # it may have been dropped meanwhile
        schema_registries.check_there(properties, services)
        catalog.stores.update(store.id, updated.properties, updated.updated_at)
    work.after_commit(services.engine.reconcile)
    return done(TAG)
