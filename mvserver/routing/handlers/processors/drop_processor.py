"""DROP PROCESSOR: its queries end and its own declarations go. Target topics and their declarations stay."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import notices
from mvserver.routing.ports import Services
from mvserver.routing.programs import processors
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.processors import DropProcessor

FIELDS = None
TAG = "DROP PROCESSOR"


def run(statement: DropProcessor, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        if statement.if_exists and processors.find(statement.name, context, services) is None:
            notices.missing(context, f'processor "{statement.name}" does not exist')
            return done(TAG)
        found = processors.owned(statement.name, context, services)
        own = {query.id for query in found.queries}
        sources = processors.sources_of(found, services)
        for source in sources:  # others may read them, as any stream
            others = [query for query in catalog.queries.of_source(source.id) if query.id not in own]
            dependents = catalog.dependencies.of_relation(source)
            if others or dependents.relations:
                raise dependents.refuse(f"processor {found.name}")
        catalog.dependencies.drop(sources, found.queries)
    work.after_commit(services.engine.reconcile)
    return done(TAG)
