"""CREATE ROLE and CREATE USER."""

from __future__ import annotations

from catalog.model import Membership, Role
from mvserver.front import Result
from mvserver.routing import memberships, privileges, role_options
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.roles import CreateRole

FIELDS = None
TAG = "CREATE ROLE"

_NEW = Role("", 0, "", superuser=False, can_login=False)


def run(statement: CreateRole, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    privileges.require_superuser(context, services, "create role")
    catalog.roles.check_new(statement.name)
    changes = role_options.changes(statement.options, statement.name, context)
    with catalog.transaction():
        role = catalog.roles.add(role_options.changed(_NEW, {**changes, "name": statement.name}))
        _add_members(statement, role, context, services)
    return done(TAG)


def _add_members(statement: CreateRole, role: Role, context: SessionContext, services: Services) -> None:
    roles, options = services.catalog.roles, statement.options
    grantor = roles.get(context.role).oid
    pairs = [
        *((roles.get(name), role, False) for name in options.in_roles),
        *((role, roles.get(name), False) for name in options.members),
        *((role, roles.get(name), True) for name in options.admins),
    ]
    for above, member, admin in pairs:
        memberships.add(above, member, Membership(above.oid, member.oid, grantor, admin), context, services)
