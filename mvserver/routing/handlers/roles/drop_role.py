"""DROP ROLE and DROP USER: all that are named or none, and never one that something belongs to or is granted to."""

from __future__ import annotations

from catalog import acl
from catalog.model import Role
from catalog.refusals import word
from catalog.roles import BOOTSTRAP_OID
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import notices, privileges, row_security
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.roles import DropRole

FIELDS = None
TAG = "DROP ROLE"

_DETAIL_LINES_MAX = 100  # PostgreSQL's


def run(statement: DropRole, context: SessionContext, services: Services, work: Work) -> Result:
    roles = services.catalog.roles
    privileges.require_superuser(context, services, "drop role")
    with services.catalog.transaction():
        for name in dict.fromkeys(statement.names):
            if statement.if_exists and roles.find(name) is None:
                notices.missing(context, f'role "{name}" does not exist')
                continue
            role = roles.get(name)
            _check(role, context, services)
            services.catalog.memberships.delete_of(role.oid)
            services.catalog.api_tokens.delete_of(role.oid)
            roles.delete(role.id)
    return done(TAG)


def _check(role: Role, context: SessionContext, services: Services) -> None:
    if role.name == context.role:
        raise SqlError(sqlstates.OBJECT_IN_USE, "current user cannot be dropped")
    if role.name == context.session_role:
        raise SqlError(sqlstates.OBJECT_IN_USE, "session user cannot be dropped")
    if role.oid == BOOTSTRAP_OID:
        raise SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f"cannot drop role {role.name} because it is required by the database system",
        )
    catalog = services.catalog
    uses = [f"owner of {what}" for what in catalog.roles.owned_by(role.name)]
    uses += [f"privileges for {word(thing)} {thing.name}" for thing in catalog.privileges.given_to(role)]
    uses += [f"target of {row_security.said_of(policy, services)}" for policy in catalog.policies.of_role(role.oid)]
    for each in catalog.default_privileges.all():
        owner = catalog.roles.by_oid(each.role)
        what = f"default privileges on new {each.kind.value}s belonging to role {owner.name if owner else each.role}"
        if each.role == role.oid:
            uses.append(f"owner of {what}")
        elif role.oid in acl.roles_in(each.acl, each.role):
            uses.append(f"privileges for {what}")
    if uses:
        lines = uses[:_DETAIL_LINES_MAX]
        if len(uses) > _DETAIL_LINES_MAX:
            lines.append(f"and {len(uses) - _DETAIL_LINES_MAX} other objects")
        raise SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f'role "{role.name}" cannot be dropped because some objects depend on it',
            detail="\n".join(lines),
            hint="REASSIGN OWNED gives them to another role; DROP OWNED takes from the role what was granted to it.",
        )
