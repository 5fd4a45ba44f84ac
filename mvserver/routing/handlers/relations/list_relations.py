"""LIST RELATIONS, LIST STREAMS, LIST MATERIALIZED VIEWS [IN SCHEMA s]."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import ListRelations
from mvserver.types.oids import TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("database_name", TEXT), ("schema_name", TEXT), ("name", TEXT), ("type", TEXT), ("store", TEXT), ("entity", TEXT),
    ("owner", TEXT), ("created_at", TIMESTAMPTZ),
)  # fmt: skip


def run(statement: ListRelations, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    parts = statement.schema.parts if statement.schema is not None else (context.schema,)
    position = statement.schema.position if statement.schema is not None else None
    own = privileges.authority(context, services)
    with catalog.snapshot():
        database, schema = catalog.names.schema(parts, context.database, position)
        stores = {store.id: store.name for store in catalog.stores.all()}
        rows = [
            (database.name, schema.name, r.name, r.kind, stores.get(r.store_id or ""), r.entity, r.owner,
             moment(r.created_at))
            for r in catalog.relations.of_schema(schema.id)
            if (not statement.kinds or r.kind in statement.kinds) and privileges.sees_relation(r, own, services)
        ]  # fmt: skip
    return result("LIST RELATIONS", FIELDS, rows)
