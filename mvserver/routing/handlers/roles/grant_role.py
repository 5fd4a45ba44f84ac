"""GRANT role TO role: the member may what the role may; what a role is itself (SUPERUSER, CREATEDB …) is not shared."""

from __future__ import annotations

from catalog.model import Membership
from mvserver.front import Result
from mvserver.routing import memberships, role_names
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.roles import GrantRole

FIELDS = None
TAG = "GRANT ROLE"


def run(statement: GrantRole, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        grantor = catalog.roles.get(context.role)
        for name in statement.roles:
            role = catalog.roles.get(name)
            memberships.require_admin(role, context, services)
            for spec in statement.to:
                memberships.refuse_public(spec)
                member = role_names.resolve(spec, context, services)
                memberships.add(
                    role,
                    member,
                    Membership(role.oid, member.oid, grantor.oid, statement.admin_option),
                    context,
                    services,
                )
    return done(TAG)
