"""CREATE API_TOKEN: acts as the role that makes it. The token itself is shown once, in the answer, and kept nowhere."""

from __future__ import annotations

import math

from catalog.model import ApiToken
from mvserver.auth import api_tokens
from mvserver.front import Result
from mvserver.routing.ports import Services
from mvserver.routing.role_options import moment_of
from mvserver.routing.rows import fields, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.api_tokens import CreateApiToken
from mvserver.types.oids import TEXT

FIELDS = fields(("name", TEXT), ("token", TEXT))


def run(statement: CreateApiToken, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    until = None if statement.valid_until is None else moment_of(statement.valid_until)
    made = api_tokens.new()
    with catalog.transaction():
        catalog.api_tokens.add(
            ApiToken(
                statement.name,
                api_tokens.digest(made),
                catalog.roles.get(context.role).oid,
                services.clock(),
                None if until == math.inf else until,
            )
        )
    return result("CREATE API_TOKEN", FIELDS, [(statement.name, made)])
