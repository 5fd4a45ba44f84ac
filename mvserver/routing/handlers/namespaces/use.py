"""USE: where the session's unqualified names resolve from now on."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.namespaces import Use

FIELDS = None


def run(statement: Use, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    parts, position = statement.name.parts, statement.name.position
    with catalog.snapshot():
        if statement.kind == "schema" or len(parts) > 1:
            if statement.kind == "database":
                raise SqlError(
                    sqlstates.SYNTAX_ERROR,
                    f"improper qualified name (too many dotted names): {statement.name}",
                    position=position,
                )
            privileges.require_place(parts, context, services, position)
            database, schema = catalog.names.schema(parts, context.database, position)
            context.database, context.schema = database.name, schema.name
        else:
            database = catalog.databases.get(parts[0])
            privileges.require_connect(database, context, services, position)
            context.database, context.schema = database.name, "public"
    return done("USE")
