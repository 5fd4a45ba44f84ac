"""ALTER ROLE … RENAME TO: sessions of the role go on under the new name."""

from __future__ import annotations

from dataclasses import replace

from mvserver import sqlstates
from mvserver.auth import passwords
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.roles import RenameRole

FIELDS = None
TAG = "ALTER ROLE"


def run(statement: RenameRole, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        role = catalog.roles.get(statement.name)
        if role.name in (context.session_role, context.role):
            which = "session" if role.name == (context.session_role or context.role) else "current"
            raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"{which} user cannot be renamed")
        privileges.require_superuser(context, services, "rename role")
        catalog.roles.rename(role, statement.new_name)
        if role.password is not None and isinstance(passwords.parse(role.password), passwords.Md5Verifier):
            # the name is a part of what was hashed
            catalog.roles.update(replace(catalog.roles.get(statement.new_name), password=None))
            context.notice("MD5 password cleared because of role rename")
    return done(TAG)
