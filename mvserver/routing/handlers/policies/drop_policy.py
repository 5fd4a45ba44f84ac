"""DROP POLICY. Row security stays: without a policy, nobody but the owner sees a row."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import lookup, notices, row_security
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.policies import DropPolicy

FIELDS = None
TAG = "DROP POLICY"


def run(statement: DropPolicy, context: SessionContext, services: Services, work: Work) -> Result:
    policies = services.catalog.policies
    with services.catalog.transaction():
        if statement.if_exists and lookup.find_relation(statement.on, context, services) is None:
            notices.missing(context, f'relation "{statement.on}" does not exist')
            return done(TAG)
        view = row_security.secured(statement.on, context, services)
        if statement.if_exists and policies.find(view, statement.name) is None:
            notices.missing(context, f'policy "{statement.name}" for relation "{view.name}" does not exist')
            return done(TAG)
        policies.delete(policies.get(view, statement.name))
        if view.row_security and not policies.of_relation(view):
            context.notice(
                f'materialized view "{view.name}" has no policy left: only its owner sees rows',
                hint=f"ALTER MATERIALIZED VIEW {view.name} DISABLE ROW LEVEL SECURITY shows them to all with SELECT.",
            )
    return done(TAG)
