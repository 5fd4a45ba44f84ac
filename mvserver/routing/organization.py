"""DeltaStream's GRANT … ON ORGANIZATION: what a role may make in the server as a whole. It is the role's attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import privileges, role_names
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import RoleSpec
from mvserver.sql.statements.privileges import Grant, Revoke

_KNOWN = ("create_database", "create_store", "create_function")


def change(
    statement: Grant | Revoke, of: Sequence[RoleSpec], value: bool, context: SessionContext, services: Services
) -> None:
    privileges.require_superuser(context, services, "grant privileges on the organization")
    for word in statement.privileges or ():
        if word not in _KNOWN:
            raise SqlError(
                sqlstates.INVALID_GRANT_OPERATION,
                f"invalid privilege type {word.upper()} for organization",
                hint="They are CREATE_DATABASE, CREATE_STORE and CREATE_FUNCTION.",
            )
    if isinstance(statement, Grant) and statement.grant_option:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "privileges on the organization cannot be granted with grant option",
            hint="Superusers give them.",
        )
    changes: dict[str, Any] = dict.fromkeys(statement.privileges or _KNOWN, value)
    for spec in of:
        if spec.special == "public":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED, "privileges on the organization cannot be granted to PUBLIC"
            )
        services.catalog.roles.update(replace(role_names.resolve(spec, context, services), **changes))
