"""REVOKE privileges ON objects FROM roles; with CASCADE also what these have passed on."""

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
from mvserver.sql.statements import Revoke

FIELDS = None
TAG = "REVOKE"


def run(statement: Revoke, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        if statement.on.kind == "organization":
            organization.change(statement, statement.of, False, context, services)
            return done(TAG)
        wanted = grants.read_privileges(statement.privileges, grants.kind_of_target(statement.on))
        grantees = [role_names.grantee(spec, context, services) for spec in statement.of]
        named = None if statement.granted_by is None else role_names.grantee(statement.granted_by, context, services)

        def take(list_: Acl, by: Grantor, owner: int, given: Privileges) -> Acl:
            for grantee in grantees:
                list_ = acl.revoke(
                    list_, grantor=by.oid, owner=owner, grantee=grantee, privileges=given,
                    option_only=statement.option_only, cascade=statement.cascade,
                )  # fmt: skip
            return list_

        for thing in grants.targets(statement.on, context, services):
            grants.change(thing, wanted, statement.privileges is None, "revoked", named, take, context, services)
    return done(TAG)
