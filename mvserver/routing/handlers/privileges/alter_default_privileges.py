"""ALTER DEFAULT PRIVILEGES: what is granted on the objects that a role will make."""

from __future__ import annotations

from catalog import acl
from catalog.acl import Acl, Privileges
from catalog.model import Role
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import grants, privileges, role_names
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import RoleSpec
from mvserver.sql.statements.privileges import AlterDefaultPrivileges, Grant

FIELDS = None
TAG = "ALTER DEFAULT PRIVILEGES"


def run(statement: AlterDefaultPrivileges, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    change = statement.change
    kind = grants.kind_of_target(change.on)
    wanted = grants.read_privileges(change.privileges, kind)
    with catalog.transaction():
        schemas: list[str | None] = [
            catalog.names.schema(name.parts, context.database, name.position)[1].id for name in statement.schemas
        ]
        grantees = [role_names.grantee(spec, context, services) for spec in _of(statement)]
        for spec in statement.roles or (RoleSpec(special="current"),):
            role = role_names.resolve(spec, context, services)
            _check(role, context, services)
            for schema_id in schemas or [None]:
                known = catalog.default_privileges.find(role.oid, schema_id, kind)
                changed = _changed(known, statement, role.oid, grantees, wanted)
                catalog.default_privileges.put(role.oid, schema_id, kind, changed)
    return done(TAG)


def _of(statement: AlterDefaultPrivileges) -> tuple[RoleSpec, ...]:
    return statement.change.to if isinstance(statement.change, Grant) else statement.change.of


def _check(role: Role, context: SessionContext, services: Services) -> None:
    if not privileges.authority(context, services).is_member(role):
        raise SqlError(sqlstates.INSUFFICIENT_PRIVILEGE, "permission denied to change default privileges")


def _changed(list_: Acl, statement: AlterDefaultPrivileges, role: int, grantees: list[int], wanted: Privileges) -> Acl:
    change = statement.change
    for grantee in grantees:
        if isinstance(change, Grant):
            list_ = acl.grant(
                list_, grantor=role, owner=role, grantee=grantee, privileges=wanted,
                with_grant_option=change.grant_option,
            )  # fmt: skip
        else:
            list_ = acl.revoke(
                list_, grantor=role, owner=role, grantee=grantee, privileges=wanted,
                option_only=change.option_only, cascade=change.cascade,
            )  # fmt: skip
    return list_
