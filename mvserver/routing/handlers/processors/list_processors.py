"""LIST PROCESSORS: those whose queries the role may see."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.programs import processors
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.processors import ListProcessors
from mvserver.types.oids import INT8, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("name", TEXT), ("database", TEXT), ("schema", TEXT), ("state", TEXT), ("queries", INT8), ("owner", TEXT),
    ("created_at", TIMESTAMPTZ), ("program", TEXT),
)  # fmt: skip


def run(statement: ListProcessors, context: SessionContext, services: Services, work: Work) -> Result:
    own = privileges.authority(context, services)
    rows = []
    for each in processors.all_of(services):
        if all(privileges.sees_query(query, own, services) for query in each.queries):
            state = processors.state_of(processors.statuses(each, services))
            created = moment(min(query.created_at for query in each.queries))
            rows.append(
                (each.name, each.database, each.schema, state, len(each.queries), each.owner, created, each.program)
            )
    return result("LIST PROCESSORS", FIELDS, rows)
