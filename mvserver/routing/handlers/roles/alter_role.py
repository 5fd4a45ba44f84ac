"""ALTER ROLE and ALTER USER: superusers change any role, the others their own password."""

from __future__ import annotations

from catalog.model import Role
from catalog.roles import BOOTSTRAP_OID
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import privileges, role_options
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.roles import AlterRole, RoleOptions

FIELDS = None
TAG = "ALTER ROLE"


def run(statement: AlterRole, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    options = statement.options
    name = context.role if statement.name is None else statement.name
    if name != context.role or not _password_alone(options):
        privileges.require_superuser(context, services, "alter role")
    _check(catalog.roles.get(name), options)
    changes = role_options.changes(options, name, context)
    with catalog.transaction():
        role = catalog.roles.get(name)  # it may have changed meanwhile
        catalog.roles.update(role_options.changed(role, changes))
    return done(TAG)


def _password_alone(options: RoleOptions) -> bool:
    return options == RoleOptions(sets_password=options.sets_password, password=options.password)


def _check(role: Role, options: RoleOptions) -> None:
    if role.oid == BOOTSTRAP_OID and options.superuser is False:
        # somebody must always be able to manage roles
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            "permission denied to alter role",
            detail="The bootstrap user must have the SUPERUSER attribute.",
        )
