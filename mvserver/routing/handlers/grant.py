"""GRANT privileges ON objects TO roles: all of it or nothing, but for what the granting role itself may not pass on."""

from __future__ import annotations

from catalog import acl
from catalog.acl import Acl, Privileges
from mvserver.pgwire.backend import Result
from mvserver.routing import grants, organization, role_names
from mvserver.routing.grants import Grantor
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements import Grant

FIELDS = None
TAG = "GRANT"


def run(statement: Grant, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        if statement.on.kind == "organization":
            organization.change(statement, statement.to, True, context, services)
            return done(TAG)
        wanted = grants.read_privileges(statement.privileges, grants.kind_of_target(statement.on))
        grantees = [role_names.grantee(spec, context, services) for spec in statement.to]
        named = None if statement.granted_by is None else role_names.grantee(statement.granted_by, context, services)

        def give(list_: Acl, by: Grantor, owner: int, given: Privileges) -> Acl:
            for grantee in grantees:
                list_ = acl.grant(
                    list_, grantor=by.oid, owner=owner, grantee=grantee, privileges=given,
                    with_grant_option=statement.grant_option,
                )  # fmt: skip
            return list_

        for thing in grants.targets(statement.on, context, services):
            grants.change(thing, wanted, statement.privileges is None, "granted", named, give, context, services)
    return done(TAG)
