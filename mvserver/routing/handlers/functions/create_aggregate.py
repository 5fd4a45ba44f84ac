"""CREATE AGGREGATE: a function whose arguments are the lists of a group's values."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.python_functions.definition import is_collected
from mvserver.routing.handlers.functions import create_function
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.functions import CreateAggregate

FIELDS = None
TAG = "CREATE AGGREGATE"


def run(statement: CreateAggregate, context: SessionContext, services: Services, work: Work) -> Result:
    if not statement.parameters:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION,
            "an aggregate has at least one argument",
            hint="Its body has the list of each argument's values.",
            position=statement.name.position,
        )
    for each in statement.parameters:
        if not is_collected(each.type):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"an argument of type {each.type} is not supported",
                hint="Aggregates of one's own take scalar types.",
                position=each.position,
            )
    create_function.create(statement, context, services, work, aggregate=True)
    return done(TAG)
