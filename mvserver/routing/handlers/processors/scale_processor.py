"""SCALE PROCESSOR: a processor has one runner, this server; what is parallel are Spark's tasks."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing.ports import Services
from mvserver.routing.programs import processors
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.processors import ScaleProcessor

FIELDS = None
TAG = "SCALE PROCESSOR"


def run(statement: ScaleProcessor, context: SessionContext, services: Services, work: Work) -> Result:
    found = processors.owned(statement.name, context, services)
    if statement.runners != 1:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'processor "{found.name}" cannot have {statement.runners} runners',
            detail="A processor runs in this server. Spark reads the partitions of its topics in parallel.",
            hint="Give Spark more cores with the server's setting spark_master.",
            position=statement.runners_position,
        )
    context.notice(f'processor "{found.name}" has one runner already')
    return done(TAG)
