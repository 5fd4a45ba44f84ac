"""LIST DATABASES."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.namespaces import ListDatabases
from mvserver.types.oids import BOOL, TEXT, TIMESTAMPTZ

FIELDS = fields(("name", TEXT), ("current", BOOL), ("owner", TEXT), ("created_at", TIMESTAMPTZ))


def run(statement: ListDatabases, context: SessionContext, services: Services, work: Work) -> Result:
    own = privileges.authority(context, services)
    found = [database for database in services.catalog.databases.all() if own.sees(database)]
    rows = [(d.name, d.name == context.database, d.owner, moment(d.created_at)) for d in found]
    return result("LIST DATABASES", FIELDS, rows)
