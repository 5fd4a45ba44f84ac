"""ANALYZE: there are no statistics to make. Tools send it, and are told where a relation is not there."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.pgcatalog.static_data import PG_CATALOG
from mvserver.routing import lookup
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import Analyze

FIELDS = None


def run(statement: Analyze, context: SessionContext, services: Services, work: Work) -> Result:
    for name in statement.names:
        if PG_CATALOG not in name.parts[:-1] and not name.parts[-1].startswith("pg_"):
            lookup.relation(name, context, services)
    return done("ANALYZE")
