"""LIST DESCRIPTORS: the messages and records of all descriptor sources that the role may use."""

from __future__ import annotations

from mvserver.described_schemas import messages
from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.descriptor_sources import ListDescriptors
from mvserver.types.oids import TEXT

FIELDS = fields(("name", TEXT), ("source", TEXT), ("type", TEXT), ("owner", TEXT))


def run(statement: ListDescriptors, context: SessionContext, services: Services, work: Work) -> Result:
    own = privileges.authority(context, services)
    rows = [
        (name, each.name, each.type, each.owner)
        for each in services.catalog.descriptor_sources.all()
        if own.sees(each)
        for name in messages(each)
    ]
    return result("LIST DESCRIPTORS", FIELDS, rows)
