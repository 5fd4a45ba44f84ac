"""ALTER TYPE … ADD VALUE."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.front import Result
from mvserver.routing import lookup, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.types import AlterTypeAddValue

FIELDS = None
TAG = "ALTER TYPE"


def run(statement: AlterTypeAddValue, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        enum = lookup.enum_type(statement.name, context, services)
        privileges.require_owner(enum, context, services, statement.name.position)
        if statement.if_not_exists and any(label.name == statement.label for label in enum.labels):
            notices.skipped(context, sqlstates.DUPLICATE_OBJECT, f'enum label "{statement.label}" already exists')
        else:
            neighbour = statement.before if statement.before is not None else statement.after
            services.catalog.enums.add_label(enum, statement.label, neighbour, before=statement.before is not None)
    return done(TAG)
