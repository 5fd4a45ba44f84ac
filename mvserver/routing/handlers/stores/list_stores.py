"""LIST STORES: those that the role may use in some way."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import ListStores
from mvserver.types.oids import BOOL, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("name", TEXT), ("type", TEXT), ("current", BOOL), ("owner", TEXT), ("created_at", TIMESTAMPTZ),
    ("updated_at", TIMESTAMPTZ),
)  # fmt: skip


def run(statement: ListStores, context: SessionContext, services: Services, work: Work) -> Result:
    own = privileges.authority(context, services)
    rows = [
        (store.name, store.type, store.name == context.store, store.owner, moment(store.created_at),
         moment(store.updated_at))
        for store in services.catalog.stores.all()
        if own.sees(store)
    ]  # fmt: skip
    return result("LIST STORES", FIELDS, rows)
