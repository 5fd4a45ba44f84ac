"""LIST FUNCTIONS and LIST AGGREGATES: the functions of one's own that the role may call."""

from __future__ import annotations

from catalog.dependencies import kind
from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.functions import ListFunctions
from mvserver.types.oids import INT8, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("database", TEXT), ("schema", TEXT), ("name", TEXT), ("kind", TEXT), ("arguments", TEXT), ("returns", TEXT),
    ("language", TEXT), ("queries", INT8), ("owner", TEXT), ("created_at", TIMESTAMPTZ),
)  # fmt: skip


def run(statement: ListFunctions, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    own = privileges.authority(context, services)
    with catalog.snapshot():
        queries = catalog.queries.all()
        rows = []
        for each in catalog.functions.all():
            schema = catalog.schemas.by_id(each.schema_id)
            database = None if schema is None else catalog.databases.by_id(schema.database_id)
            if statement.aggregates and not each.aggregate:
                continue
            if schema is None or database is None or not privileges.sees_relation(each, own, services):
                continue
            arguments = ", ".join(f"{name} {type_}" for name, type_ in each.parameters)
            calls = sum(each.id in query.function_ids for query in queries)
            rows.append(
                (database.name, schema.name, each.name, kind(each), arguments, each.result, each.language, calls,
                 each.owner, moment(each.created_at))
            )  # fmt: skip
    return result("LIST AGGREGATES" if statement.aggregates else "LIST FUNCTIONS", FIELDS, rows)
