"""REASSIGN OWNED BY roles TO role: everything that they own, in all databases, and their queries."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges, role_names
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.privileges import ReassignOwned

FIELDS = None
TAG = "REASSIGN OWNED"


def run(statement: ReassignOwned, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        old = [role_names.resolve(spec, context, services) for spec in statement.of]
        new = role_names.resolve(statement.to, context, services)
        for role in (*old, new):
            privileges.require_member(role, context, services, "reassign")
        for role in old:
            for thing in catalog.privileges.things():
                if thing.owner == role.name:
                    catalog.privileges.set_owner(thing, new)
            for query in catalog.queries.all():
                if query.owner == role.name:
                    catalog.privileges.set_query_owner(query.id, new)
    return done(TAG)
