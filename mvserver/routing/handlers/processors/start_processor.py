"""START PROCESSOR: its queries go on from where they stopped, or begin."""

from __future__ import annotations

from functools import partial

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.programs import processors
from mvserver.routing.rows import done
from mvserver.routing.spark_wait import wait_for_spark
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.processors import StartProcessor

FIELDS = None
TAG = "START PROCESSOR"


def run(statement: StartProcessor, context: SessionContext, services: Services, work: Work) -> Result:
    found = processors.owned(statement.name, context, services)
    for query in found.queries:
        privileges.require_sources_of(query, services)
    if work.rehearsal:
        return done(TAG)
    wait_for_spark(context, services)
    with services.catalog.transaction():
        for query in processors.owned(statement.name, context, services).queries:
            services.catalog.queries.set_desired_state(query.id, processors.RUNNING)
    work.after_commit(services.engine.reconcile)
    for query_id in processors.failed(found, services):
        work.after_commit(partial(services.engine.restart, query_id))
    return done(TAG)
