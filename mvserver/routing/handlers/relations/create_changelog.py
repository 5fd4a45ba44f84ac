"""CREATE [OR REPLACE] CHANGELOG: columns with a primary key over an entity, which is made when it is not there."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import declaring, lookup
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateChangelog

FIELDS = None
TAG = "CREATE CHANGELOG"


def run(statement: CreateChangelog, context: SessionContext, services: Services, work: Work) -> Result:
    place = declaring.place(lookup.CHANGELOG, statement, context, services)
    if place is None:
        return done(TAG)
    statement = declaring.changelog_with_columns(statement, context, services)
    new, entity = declaring.declared_changelog(statement, place, context, services)
    declaring.declare(new, entity, statement, place[0], context, services, work)
    return done(TAG)
