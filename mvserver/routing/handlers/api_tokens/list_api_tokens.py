"""LIST API_TOKENS: those of the roles that the role is a member of; a superuser sees all."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.api_tokens import ListApiTokens
from mvserver.types.oids import TEXT, TIMESTAMPTZ

FIELDS = fields(("name", TEXT), ("role", TEXT), ("created_at", TIMESTAMPTZ), ("valid_until", TIMESTAMPTZ))


def run(statement: ListApiTokens, context: SessionContext, services: Services, work: Work) -> Result:
    rows = []
    for token in services.catalog.api_tokens.all():
        role = services.catalog.roles.by_oid(token.role)
        if role is not None and privileges.authority(context, services).is_member(role):
            rows.append((token.name, role.name, moment(token.created_at), moment(token.valid_until)))
    return result("LIST API_TOKENS", FIELDS, rows)
