"""DROP ROLE and DROP USER: all that are named or none, and never one that something belongs to."""

from __future__ import annotations

from catalog.model import Role
from catalog.roles import BOOTSTRAP_OID
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgwire.backend import Result
from mvserver.routing import notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements import DropRole

FIELDS = None
TAG = "DROP ROLE"

_DETAIL_LINES_MAX = 100  # PostgreSQL's


def run(statement: DropRole, context: SessionContext, services: Services, work: Work) -> Result:
    roles = services.catalog.roles
    privileges.require_superuser(context, services, "drop role")
    with services.catalog.transaction():
        for name in dict.fromkeys(statement.names):
            if statement.if_exists and roles.find(name) is None:
                notices.skipped(context, sqlstates.UNDEFINED_OBJECT, f'role "{name}" does not exist')
                continue
            role = roles.get(name)
            _check(role, context, services)
            roles.delete(role.id)
    return done(TAG)


def _check(role: Role, context: SessionContext, services: Services) -> None:
    if role.name == context.role:
        raise SqlError(sqlstates.OBJECT_IN_USE, "current user cannot be dropped")
    if role.oid == BOOTSTRAP_OID:
        raise SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f"cannot drop role {role.name} because it is required by the database system",
        )
    owned = services.catalog.roles.owned_by(role.name)
    if owned:
        lines = [f"owner of {what}" for what in owned[:_DETAIL_LINES_MAX]]
        if len(owned) > _DETAIL_LINES_MAX:
            lines.append(f"and {len(owned) - _DETAIL_LINES_MAX} other objects")
        raise SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f'role "{role.name}" cannot be dropped because some objects depend on it',
            detail="\n".join(lines),
        )
