"""ALTER ROLE and ALTER USER: superusers change any role, the others their own password."""

from __future__ import annotations

from dataclasses import replace

from catalog.model import Role
from catalog.roles import BOOTSTRAP_OID
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgwire.backend import Result
from mvserver.routing import privileges, role_passwords
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements import AlterRole, RoleOptions

FIELDS = None
TAG = "ALTER ROLE"


def run(statement: AlterRole, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    options = statement.options
    name = context.role if statement.name is None else statement.name
    own_password = name == context.role and options.superuser is None and options.login is None
    if not own_password:
        privileges.require_superuser(context, services, "alter role")
    _check(catalog.roles.get(name), options)
    password = role_passwords.verifier(options, name, context) if options.sets_password else None
    with catalog.transaction():
        role = catalog.roles.get(name)  # it may have changed meanwhile
        catalog.roles.update(_changed(role, options, password))
    return done(TAG)


def _check(role: Role, options: RoleOptions) -> None:
    if role.oid == BOOTSTRAP_OID and options.superuser is False:
        # somebody must always be able to manage roles
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            "permission denied to alter role",
            detail="The bootstrap user must have the SUPERUSER attribute.",
        )


def _changed(role: Role, options: RoleOptions, password: str | None) -> Role:
    return replace(
        role,
        superuser=role.superuser if options.superuser is None else options.superuser,
        can_login=role.can_login if options.login is None else options.login,
        password=password if options.sets_password else role.password,
    )
