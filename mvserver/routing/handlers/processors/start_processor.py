"""START PROCESSOR: its queries go on from where they stopped, or begin."""

from __future__ import annotations

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
    failed = [id_ for id_, status in processors.statuses(found, services).items() if status.state.value == "FAILED"]
    with services.catalog.transaction():
        for query in processors.owned(statement.name, context, services).queries:
            services.catalog.queries.set_desired_state(query.id, processors.RUNNING)
    work.after_commit(services.engine.reconcile)
    for query in found.queries:
        if query.id in failed and query.desired_state == processors.RUNNING:
            work.after_commit(_Restart(query.id, services))
    return done(TAG)


class _Restart:
    """A query that has failed by its own fault; the others of its group go on with it."""

    def __init__(self, query_id: str, services: Services) -> None:
        self._query_id = query_id
        self._services = services

    def __call__(self) -> None:
        status = self._services.engine.status(self._query_id)
        if status.error is not None and "of the same application" not in status.error:
            self._services.engine.restart(self._query_id)
