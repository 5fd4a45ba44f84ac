"""LIST DESCRIPTOR_SOURCES: those that the role may use in some way."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.descriptor_sources import ListDescriptorSources
from mvserver.types.oids import TEXT, TIMESTAMPTZ

FIELDS = fields(("name", TEXT), ("type", TEXT), ("file", TEXT), ("owner", TEXT), ("created_at", TIMESTAMPTZ))


def run(statement: ListDescriptorSources, context: SessionContext, services: Services, work: Work) -> Result:
    own = privileges.authority(context, services)
    rows = [
        (each.name, each.type, each.property("file"), each.owner, moment(each.created_at))
        for each in services.catalog.descriptor_sources.all()
        if own.sees(each)
    ]
    return result("LIST DESCRIPTOR_SOURCES", FIELDS, rows)
