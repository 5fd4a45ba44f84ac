"""What CREATE ROLE and ALTER ROLE keep of a password."""

from __future__ import annotations

from mvserver.auth import passwords
from mvserver.session.context import SessionContext
from mvserver.sql.statements.roles import RoleOptions


def verifier(options: RoleOptions, role: str, context: SessionContext) -> str | None:
    """Made before the catalog's transaction, since it takes milliseconds on purpose."""
    if not options.password:
        if options.password is not None:
            context.notice("empty string is not a valid password, clearing password")
        return None
    return passwords.stored(options.password, role, context.settings.get("password_encryption", passwords.SCRAM))
