"""ALTER POLICY: another name, other roles, another condition."""

from __future__ import annotations

from dataclasses import replace

from mvserver.front import Result
from mvserver.routing import row_security
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.policies import AlterPolicy

FIELDS = None
TAG = "ALTER POLICY"


def run(statement: AlterPolicy, context: SessionContext, services: Services, work: Work) -> Result:
    policies = services.catalog.policies
    if statement.condition is not None:
        services.pulls.check_policy(row_security.secured(statement.on, context, services), statement.condition)
    with services.catalog.transaction():
        view = row_security.secured(statement.on, context, services)
        policy = policies.get(view, statement.name)
        if statement.new_name is not None:
            policies.check_new(view, statement.new_name)
            policy = replace(policy, name=statement.new_name)
        if statement.to is not None:
            policy = replace(policy, roles=row_security.roles(statement.to, context, services))
        if statement.condition is not None:
            policy = replace(policy, condition=statement.condition)
        policies.update(policy)
    return done(TAG)
