"""SELECT over a stream: its rows as they come, until LIMIT or until the client ends the query."""

from __future__ import annotations

from mvserver.front import Field, Result
from mvserver.routing import continuous, push
from mvserver.routing.ports import Services
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.queries import PushQuery

FIELDS = None


def described(statement: PushQuery, context: SessionContext, services: Services) -> tuple[Field, ...]:
    shaper = services.pulls.shaper(push.columns(push.plan(statement, context, services).plan))
    shaper.close()
    return shaper.fields


def run(statement: PushQuery, context: SessionContext, services: Services, work: Work) -> Result:
    planned = push.plan(statement, context, services)
    start = continuous.attach(planned, context, services, work)
    shaper = services.pulls.shaper(push.columns(planned.plan))
    try:
        rows = services.engine.subscribe(planned.plan, start)
    except BaseException:
        shaper.close()
        raise
    batches = push.PushBatches(rows, shaper, statement.limit)
    return Result("SELECT ", shaper.fields, batches, live=batches.ready)
