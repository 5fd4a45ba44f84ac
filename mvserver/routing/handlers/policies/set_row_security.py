"""ALTER MATERIALIZED VIEW … {ENABLE | DISABLE | FORCE | NO FORCE} ROW LEVEL SECURITY."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import row_security
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.session.kinds import command_tag
from mvserver.sql.statements.policies import SetRowSecurity

FIELDS = None


def run(statement: SetRowSecurity, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        view = row_security.secured(statement.name, context, services)
        if statement.relation_kind not in (None, view.kind):
            raise SqlError(
                sqlstates.WRONG_OBJECT_TYPE,
                f'"{view.name}" is not a {statement.relation_kind}',
                position=statement.name.position,
            )
        enabled = view.row_security if statement.enabled is None else statement.enabled
        forced = view.row_security_forced if statement.forced is None else statement.forced
        if enabled:
            row_security.enable(view, context, services, forced=forced)
        else:
            services.catalog.relations.set_row_security(view, enabled=False, forced=forced)
    return done(command_tag(statement))
