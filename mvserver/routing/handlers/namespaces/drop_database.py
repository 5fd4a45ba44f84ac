"""DROP DATABASE: with relations in it only by CASCADE, and never the one that the session is in."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import cascades, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.namespaces import DropDatabase

FIELDS = None
TAG = "DROP DATABASE"


def run(statement: DropDatabase, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        if statement.if_exists and catalog.databases.find(statement.name) is None:
            notices.missing(context, f'database "{statement.name}" does not exist')
            return done(TAG)
        database = catalog.databases.get(statement.name)
        privileges.require_owner(database, context, services)
        if database.name == context.database:
            raise SqlError(sqlstates.OBJECT_IN_USE, "cannot drop the currently open database")
        dependents = catalog.dependencies.of_database(database)
        cascades.clear(f"database {database.name}", dependents, statement.cascade, services)
        catalog.databases.delete(database.id)
    cascades.tell(dependents, context, services, work)
    return done(TAG)
