"""REVOKE [ADMIN OPTION FOR] role FROM role."""

from __future__ import annotations

from dataclasses import replace

from mvserver import sqlstates
from mvserver.front import Notice, Result
from mvserver.routing import memberships, role_names
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.roles import RevokeRole

FIELDS = None
TAG = "REVOKE ROLE"


def run(statement: RevokeRole, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        for name in statement.roles:
            role = catalog.roles.get(name)
            memberships.require_admin(role, context, services)
            for spec in statement.of:
                memberships.refuse_public(spec)
                member = role_names.resolve(spec, context, services)
                known = catalog.memberships.find(role.oid, member.oid)
                if known is None:
                    message = f'role "{member.name}" is not a member of role "{role.name}"'
                    context.notices.append(Notice("WARNING", sqlstates.WARNING, message))
                elif statement.option_only:
                    catalog.memberships.put(replace(known, admin=False))
                else:
                    catalog.memberships.delete(role.oid, member.oid)
    return done(TAG)
