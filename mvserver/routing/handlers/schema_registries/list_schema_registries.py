"""LIST SCHEMA_REGISTRIES: those that the role may use in some way."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.schema_registries import ListSchemaRegistries
from mvserver.types.oids import TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("name", TEXT), ("type", TEXT), ("uris", TEXT), ("owner", TEXT), ("created_at", TIMESTAMPTZ),
    ("updated_at", TIMESTAMPTZ),
)  # fmt: skip


def run(statement: ListSchemaRegistries, context: SessionContext, services: Services, work: Work) -> Result:
    own = privileges.authority(context, services)
    rows = [
        (each.name, each.type, each.property("uris"), each.owner, moment(each.created_at), moment(each.updated_at))
        for each in services.catalog.schema_registries.all()
        if own.sees(each)
    ]
    return result("LIST SCHEMA_REGISTRIES", FIELDS, rows)
