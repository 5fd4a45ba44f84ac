"""LIST FUNCTION_SOURCES, for superusers: the jars, and how many functions are made of each. Others see none."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.function_sources import ListFunctionSources
from mvserver.types.oids import INT8, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("name", TEXT), ("file", TEXT), ("digest", TEXT), ("description", TEXT), ("functions", INT8), ("owner", TEXT),
    ("created_at", TIMESTAMPTZ),
)  # fmt: skip


def run(statement: ListFunctionSources, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    own = privileges.authority(context, services)
    with catalog.snapshot():
        rows = [
            (each.name, each.file, each.digest, each.description, len(catalog.functions.of_source(each.id)), each.owner,
             moment(each.created_at))
            for each in catalog.function_sources.all()
            if own.superuser
        ]  # fmt: skip
    return result("LIST FUNCTION_SOURCES", FIELDS, rows)
