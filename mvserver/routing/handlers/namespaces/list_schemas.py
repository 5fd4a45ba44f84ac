"""LIST SCHEMAS [IN DATABASE d]."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.namespaces import ListSchemas
from mvserver.types.oids import BOOL, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("database_name", TEXT), ("name", TEXT), ("current", BOOL), ("owner", TEXT), ("created_at", TIMESTAMPTZ)
)


def run(statement: ListSchemas, context: SessionContext, services: Services, work: Work) -> Result:
    database = services.catalog.databases.get(statement.database or context.database)
    privileges.require_sight(database, context, services)
    own = privileges.authority(context, services)
    here = (context.database, context.schema)
    rows = [
        (database.name, schema.name, (database.name, schema.name) == here, schema.owner, moment(schema.created_at))
        for schema in services.catalog.schemas.of_database(database.id)
        if own.sees(schema)
    ]
    return result("LIST SCHEMAS", FIELDS, rows)
