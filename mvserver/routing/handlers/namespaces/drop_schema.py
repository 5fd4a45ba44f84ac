"""DROP SCHEMA: with relations in it only by CASCADE."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import cascades, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.namespaces import DropSchema

FIELDS = None
TAG = "DROP SCHEMA"

_MISSING = (sqlstates.INVALID_SCHEMA_NAME, sqlstates.INVALID_CATALOG_NAME)


def run(statement: DropSchema, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        try:
            _, schema = catalog.names.schema(statement.name.parts, context.database, statement.name.position)
        except SqlError as error:
            if not statement.if_exists or error.sqlstate not in _MISSING:
                raise
            notices.missing(context, error.message)
            return done(TAG)
        privileges.require_owner(schema, context, services, statement.name.position)
        dependents = catalog.dependencies.of_schema(schema)
        cascades.clear(f"schema {schema.name}", dependents, statement.cascade, services)
        catalog.schemas.delete(schema.id)
    cascades.tell(dependents, context, services, work)
    return done(TAG)
