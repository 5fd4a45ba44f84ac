"""CREATE SCHEMA [database.]name."""

from __future__ import annotations

from catalog.acl import Privilege
from catalog.model import Database
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.namespaces import CreateSchema

FIELDS = None
TAG = "CREATE SCHEMA"


def run(statement: CreateSchema, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    name = statement.name.parts[-1]
    with catalog.transaction():
        database = _database(statement, context, services)
        privileges.require(database, Privilege.CREATE, context, services, statement.name.position)
        if statement.if_not_exists and catalog.schemas.find(database.id, name) is not None:
            notices.skipped(context, sqlstates.DUPLICATE_SCHEMA, f'schema "{name}" already exists')
        else:
            catalog.schemas.add(database.id, name, context.role)
    return done(TAG)


def _database(statement: CreateSchema, context: SessionContext, services: Services) -> Database:
    parts = statement.name.parts
    if len(parts) > 2:
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            f"improper qualified name (too many dotted names): {statement.name}",
            position=statement.name.position,
        )
    return services.catalog.databases.get(parts[0] if len(parts) == 2 else context.database)
