"""DROP TYPE: nothing that is kept depends on a type, so CASCADE and RESTRICT do the same."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import lookup, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.types import DropType

FIELDS = None
TAG = "DROP TYPE"


def run(statement: DropType, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        for name in statement.names:
            enum = lookup.find_type(name, context, services)
            if enum is None:
                missing = f'type "{name}" does not exist'
                if not statement.if_exists:
                    raise SqlError(sqlstates.UNDEFINED_OBJECT, missing, position=name.position)
                schema = lookup.missing_schema(name, context, services)
                notices.missing(context, missing if schema is None else f"{schema} does not exist")
                continue
            privileges.require_relation_owner(enum, context, services, name.position)
            services.catalog.enums.delete(enum.id)
    return done(TAG)
