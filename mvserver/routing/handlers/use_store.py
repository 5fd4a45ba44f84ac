"""USE STORE: the default of every statement of the session that takes a store."""

from __future__ import annotations

from mvserver.pgwire.backend import Result
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements import UseStore

FIELDS = None


def run(statement: UseStore, context: SessionContext, services: Services, work: Work) -> Result:
    context.store = services.catalog.stores.get(statement.name).name
    return done("USE")
