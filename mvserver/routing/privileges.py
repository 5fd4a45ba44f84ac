"""What only a superuser may do. It is asked of the catalog, so that a change holds from the next statement on."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext


def is_superuser(context: SessionContext, services: Services) -> bool:
    role = services.catalog.roles.find(context.role)
    return role is not None and role.superuser


def require_superuser(context: SessionContext, services: Services, what: str) -> None:
    """``what`` is what is denied, as in ``create role``."""
    if not is_superuser(context, services):
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE, f"permission denied to {what}", detail="Only superusers may do this."
        )
