"""USE STORE: the default of every statement of the session that takes a store."""

from __future__ import annotations

from catalog.acl import Privilege
from mvserver.front import Result
from mvserver.routing import lookup
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import UseStore

FIELDS = None


def run(statement: UseStore, context: SessionContext, services: Services, work: Work) -> Result:
    context.store = lookup.store(statement.name, Privilege.USAGE, context, services).name
    return done("USE")
