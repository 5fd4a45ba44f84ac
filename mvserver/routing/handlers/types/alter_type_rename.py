"""ALTER TYPE … RENAME TO and RENAME VALUE."""

from __future__ import annotations

from catalog.acl import Privilege
from mvserver.front import Result
from mvserver.routing import lookup, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.types import AlterTypeRename

FIELDS = None
TAG = "ALTER TYPE"


def run(statement: AlterTypeRename, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        enum = lookup.enum_type(statement.name, context, services)
        privileges.require_owner(enum, context, services, statement.name.position)
        if statement.label is not None:
            catalog.enums.rename_label(enum, statement.label, statement.to)
        else:
            schema = catalog.schemas.by_id(enum.schema_id)
            if schema is not None:
                privileges.require(schema, Privilege.CREATE, context, services, statement.name.position)
            catalog.enums.rename(enum, statement.to)
    return done(TAG)
