"""DROP STORE: refused while streams are on it; the entities in it stay."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import DropStore

FIELDS = None
TAG = "DROP STORE"


def run(statement: DropStore, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        store = catalog.stores.find(statement.name)
        if store is None and statement.if_exists:
            notices.missing(context, f'store "{statement.name}" does not exist')
            return done(TAG)
        store = catalog.stores.get(statement.name)
        privileges.require_owner(store, context, services)
        dependents = catalog.dependencies.of_store(store)
        if dependents:
            raise SqlError(
                sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
                f"cannot drop store {store.name} because other objects depend on it",
                detail=dependents.detail(),
                hint="Drop the streams on it first.",
            )
        catalog.stores.delete(store.id)
    work.after_commit(lambda: services.stores.forget(store.id))
    if context.store == store.name and not work.rehearsal:
        context.store = None
    return done(TAG)
