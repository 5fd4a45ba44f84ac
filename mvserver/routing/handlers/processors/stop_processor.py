"""STOP PROCESSOR: its queries stop at their positions."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing.ports import Services
from mvserver.routing.programs import processors
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.processors import StopProcessor

FIELDS = None
TAG = "STOP PROCESSOR"


def run(statement: StopProcessor, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        found = processors.owned(statement.name, context, services)
        if found.stopped:
            context.notice(f'processor "{found.name}" is already stopped')
            return done(TAG)
        for query in found.queries:
            services.catalog.queries.set_desired_state(query.id, processors.STOPPED)
    work.after_commit(services.engine.reconcile)
    return done(TAG)
