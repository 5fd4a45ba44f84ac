"""REVOKE privileges ON objects FROM roles; with CASCADE also what these have passed on."""

from __future__ import annotations

from functools import partial

from catalog import acl
from mvserver.front import Result
from mvserver.routing import grants
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.privileges import Revoke

FIELDS = None
TAG = "REVOKE"


def run(statement: Revoke, context: SessionContext, services: Services, work: Work) -> Result:
    take = partial(acl.revoke, option_only=statement.option_only, cascade=statement.cascade)
    grants.apply(statement, statement.of, take, context, services)
    return done(TAG)
