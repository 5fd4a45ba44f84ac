"""CREATE POLICY: which rows of a materialized view some roles may see. The first one turns row security on."""

from __future__ import annotations

from catalog.model import Policy
from mvserver.front import Result
from mvserver.routing import row_security
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.policies import CreatePolicy

FIELDS = None
TAG = "CREATE POLICY"


def run(statement: CreatePolicy, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    services.pulls.check_policy(row_security.secured(statement.on, context, services), statement.condition)
    with catalog.transaction():
        view = row_security.secured(statement.on, context, services)
        catalog.policies.check_new(view, statement.name)
        to = row_security.roles(statement.to, context, services)
        catalog.policies.add(
            Policy(0, statement.name, view.oid, statement.condition, to, statement.restrictive, statement.command)
        )
        if not view.row_security:
            row_security.enable(view, context, services)
            context.notice(
                f'row security is enabled for materialized view "{view.name}"',
                detail="Roles see the rows that policies let them see; its owner sees all.",
            )
    return done(TAG)
