"""DROP AGGREGATE: as DROP FUNCTION, of aggregates."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing.handlers.functions import drop_function
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.functions import DropAggregate

FIELDS = None
TAG = "DROP AGGREGATE"


def run(statement: DropAggregate, context: SessionContext, services: Services, work: Work) -> Result:
    drop_function.drop(statement, context, services, work, aggregate=True)
    return done(TAG)
