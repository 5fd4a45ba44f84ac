"""A stream or changelog as a table of what it has now: for a pull query under mv.stream_reads = 'bounded'."""

from __future__ import annotations

import pyarrow as pa

from mvserver import sqlstates
from mvserver.compiler.plans import Projection
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import continuous
from mvserver.routing.ports import Services
from mvserver.routing.spark_wait import with_spark
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.queries import BoundedRead

FIELDS = None


def run(statement: BoundedRead, context: SessionContext, services: Services, work: Work) -> Result:
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.EARLIEST)
    if not isinstance(planned.plan, Projection) or planned.source.store_id is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'reading {planned.source.kind} "{planned.source.name}" to its present end is not supported',
            hint="Create a materialized view over it.",
        )
    projection = planned.plan

    def read() -> pa.Table:
        return services.engine.read_bounded(projection, statement.limit, context.cancelled)

    table = with_spark(context, services, read, again=False)  # it may be what has ended Spark
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return Result("SELECT ", None, iter(batches))
