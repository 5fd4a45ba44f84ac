"""The end of objects with all that hangs on them: refused without CASCADE, told to the session with it."""

from __future__ import annotations

from catalog.dependencies import Dependents
from mvserver.routing import notices
from mvserver.routing.ports import Services
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext


def clear(what: str, dependents: Dependents, cascade: bool, services: Services) -> None:
    """Drops the dependents of ``what``, 2BP01 without ``cascade``. Inside a transaction."""
    if dependents and not cascade:
        raise dependents.refuse(what)
    services.catalog.dependencies.drop(dependents.relations, dependents.queries)


def tell(dependents: Dependents, context: SessionContext, services: Services, work: Work) -> None:
    """Names to the session what went too, and lets the engine end its queries. After the transaction."""
    notices.cascades(context, dependents.names)
    if dependents.relations or dependents.queries:
        work.after_commit(services.engine.reconcile)
