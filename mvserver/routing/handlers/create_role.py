"""CREATE ROLE and CREATE USER."""

from __future__ import annotations

from mvserver.pgwire.backend import Result
from mvserver.routing import privileges, role_passwords
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements import CreateRole

FIELDS = None
TAG = "CREATE ROLE"


def run(statement: CreateRole, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    privileges.require_superuser(context, services, "create role")
    catalog.roles.check_new(statement.name)
    options = statement.options
    password = role_passwords.verifier(options, statement.name, context)
    with catalog.transaction():
        catalog.roles.add(
            statement.name, superuser=bool(options.superuser), can_login=bool(options.login), password=password
        )
    return done(TAG)
