"""From how a statement names a role to the role."""

from __future__ import annotations

from catalog.acl import PUBLIC
from catalog.model import Role
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import RoleSpec


def resolve(spec: RoleSpec, context: SessionContext, services: Services) -> Role:
    """Not PUBLIC, which the parser lets stand only for those who are given something."""
    names = {"current": context.role, "session": context.session_role or context.role}
    return services.catalog.roles.get(names.get(spec.special or "", spec.name))


def grantee(spec: RoleSpec, context: SessionContext, services: Services) -> int:
    """Its oid, that of PUBLIC too."""
    return PUBLIC if spec.special == "public" else resolve(spec, context, services).oid
