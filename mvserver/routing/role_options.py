"""The options of CREATE ROLE and ALTER ROLE, and what they make of a role."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from catalog.model import Role
from mvserver import sqlstates
from mvserver.auth import passwords
from mvserver.errors import SqlError
from mvserver.session.context import SessionContext
from mvserver.sql.statements.roles import RoleOptions


def changes(options: RoleOptions, name: str, context: SessionContext) -> Mapping[str, Any]:
    """Fields of a Role and their new values. Made before the catalog's transaction: a verifier takes milliseconds."""
    said = {
        "superuser": options.superuser,
        "can_login": options.login,
        "create_database": options.create_database,
        "create_store": options.create_store,
        "create_function": options.create_function,
        "bypass_row_security": options.bypass_row_security,
        "connection_limit": options.connection_limit,
        "valid_until": None if options.valid_until is None else moment_of(options.valid_until),
    }
    found: dict[str, Any] = {field: value for field, value in said.items() if value is not None}
    if options.sets_password:
        found["password"] = _verifier(options, name, context)
    return found


def changed(role: Role, changes_: Mapping[str, Any]) -> Role:
    return replace(role, **changes_)


def _verifier(options: RoleOptions, role: str, context: SessionContext) -> str | None:
    """Made before the catalog's transaction, since it takes milliseconds on purpose."""
    if not options.password:
        if options.password is not None:
            context.notice("empty string is not a valid password, clearing password")
        return None
    return passwords.stored(options.password, role, context.settings.get("password_encryption", passwords.SCRAM))


def moment_of(text: str) -> float:
    """Seconds since the epoch of PostgreSQL's timestamptz text; UTC where it has no zone."""
    word = text.strip().lower()
    if word in ("infinity", "-infinity"):
        return -math.inf if word.startswith("-") else math.inf
    try:
        found = dt.datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise SqlError(
            sqlstates.INVALID_DATETIME_FORMAT,
            f'invalid input syntax for type timestamp with time zone: "{text}"',
            hint="Write it as 2030-12-31 23:59:59+00, or infinity.",
        ) from error
    return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp()
