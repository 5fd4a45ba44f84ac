"""ALTER ROLE … SET and RESET: what the role's next sessions begin with."""

from __future__ import annotations

from dataclasses import replace

from mvserver.front import Result
from mvserver.routing import privileges, role_names
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.session.settings.settings import SessionSettings, canonical
from mvserver.sql.statements.roles import AlterRoleSetting

FIELDS = None
TAG = "ALTER ROLE"


def run(statement: AlterRoleSetting, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        role = role_names.resolve(statement.role, context, services)
        if role.name != context.role:
            privileges.require_superuser(context, services, "alter role")
        kept = dict(role.settings)
        if statement.setting is None:
            kept.clear()
        elif statement.value is None:
            kept.pop(canonical(statement.setting), None)
        else:
            key, value = SessionSettings({}).check(statement.setting, statement.value)
            kept[key] = value
        catalog.roles.update(replace(role, settings=tuple(kept.items())))
    return done(TAG)
