"""Rules of membership: who may let others into a role, and that no role is, by any way round, a member of itself."""

from __future__ import annotations

from catalog.model import Membership, Role
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Notice
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import RoleSpec


def require_admin(role: Role, context: SessionContext, services: Services) -> None:
    """A superuser's role is given by superusers alone: whoever is in it could act as one."""
    own = privileges.authority(context, services)
    if own.superuser:
        return
    if role.superuser:
        raise SqlError(sqlstates.INSUFFICIENT_PRIVILEGE, "must be superuser to alter superusers")
    admins = {each.member for each in services.catalog.memberships.all() if each.role == role.oid and each.admin}
    if not admins & own.oids:
        raise SqlError(sqlstates.INSUFFICIENT_PRIVILEGE, f'must have admin option on role "{role.name}"')


def refuse_public(spec: RoleSpec) -> None:
    if spec.special == "public":
        raise SqlError(sqlstates.UNDEFINED_OBJECT, 'role "public" does not exist', position=spec.position)


def add(role: Role, member: Role, membership: Membership, context: SessionContext, services: Services) -> None:
    catalog = services.catalog
    above = catalog.privileges.authority(role.name)
    if member.oid in above.oids:
        raise SqlError(sqlstates.INVALID_GRANT_OPERATION, f'role "{role.name}" is a member of role "{member.name}"')
    known = catalog.memberships.find(role.oid, member.oid)
    if known is not None and (known.admin or not membership.admin):
        message = f'role "{member.name}" is already a member of role "{role.name}"'
        context.notices.append(Notice("NOTICE", sqlstates.SUCCESSFUL_COMPLETION, message))
        return
    catalog.memberships.put(membership)
