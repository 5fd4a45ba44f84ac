"""CREATE TABLE … AS SELECT: a table of a store, which is made when it is not there, and the query that writes to it."""

from __future__ import annotations

from mvserver.compiler.tables import TABLE
from mvserver.front import Result
from mvserver.routing import continuous, declaring, lookup, sinks, table_sinks
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateTableAs

FIELDS = None
TAG = "CREATE TABLE"


def run(statement: CreateTableAs, context: SessionContext, services: Services, work: Work) -> Result:
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return done(TAG)
    planned = table_sinks.plan_table(statement, context, services)
    start = continuous.attach(planned.query, context, services, work)
    under = planned.under
    new = declaring.relation(
        TABLE,
        statement,
        (planned.schema, planned.name),
        under.columns,
        tuple(under.properties.items()),
        under,
        context,
        services,
        under.key,
    )
    declaring.begin_writing(new, under, "create_table_as", statement, planned.query, start, context, services, work)
    if not under.key:
        sinks.at_least_once(planned.query, new, under.store, context, services)
    return done(TAG)
