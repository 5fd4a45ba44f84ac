"""DROP API_TOKEN: whoever comes with it is refused from the next request on."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.api_tokens import DropApiToken

FIELDS = None
TAG = "DROP API_TOKEN"


def run(statement: DropApiToken, context: SessionContext, services: Services, work: Work) -> Result:
    tokens = services.catalog.api_tokens
    with services.catalog.transaction():
        if statement.if_exists and tokens.find(statement.name) is None:
            notices.missing(context, f'API token "{statement.name}" does not exist')
            return done(TAG)
        token = tokens.get(statement.name)
        privileges.require_token_owner(token, context, services)
        tokens.delete(token.name)
    return done(TAG)
