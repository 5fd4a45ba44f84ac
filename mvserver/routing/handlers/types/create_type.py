"""CREATE TYPE name AS ENUM."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import lookup
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.types import CreateType

FIELDS = None
TAG = "CREATE TYPE"


def run(statement: CreateType, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        schema, name = lookup.new_relation(statement.name, context, services)
        services.catalog.enums.add(schema.id, name, statement.labels, context.role)
    return done(TAG)
