"""GRANT privileges ON objects TO roles."""

from __future__ import annotations

from functools import partial

from catalog import acl
from mvserver.front import Result
from mvserver.routing import grants
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.privileges import Grant

FIELDS = None
TAG = "GRANT"


def run(statement: Grant, context: SessionContext, services: Services, work: Work) -> Result:
    give = partial(acl.grant, with_grant_option=statement.grant_option)
    grants.apply(statement, statement.to, give, context, services)
    return done(TAG)
