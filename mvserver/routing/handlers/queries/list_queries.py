"""LIST QUERIES: what each continuous query should be doing, and what it does."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.query_states import hides_rows, relation_name, status_of
from mvserver.routing.rows import fields, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.queries import ListQueries
from mvserver.types.oids import INT8, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("id", TEXT), ("name", TEXT), ("version", INT8), ("kind", TEXT), ("intended_state", TEXT), ("actual_state", TEXT),
    ("error", TEXT), ("query", TEXT), ("owner", TEXT), ("created_at", TIMESTAMPTZ),
)  # fmt: skip


def run(statement: ListQueries, context: SessionContext, services: Services, work: Work) -> Result:
    statuses = {status.query_id: status for status in services.engine.statuses()}
    own = privileges.authority(context, services)
    rows = []
    for query in services.catalog.queries.all():
        if not privileges.sees_query(query, own, services):
            continue
        status = status_of(query, statuses)
        error = None if hides_rows(query, own, services) else status.error
        rows.append(
            (query.id, relation_name(query.sink_id, services), query.definition_version, query.kind,
             query.desired_state.upper(), status.state.value, error, query.select_text, query.owner,
             moment(query.created_at))
        )  # fmt: skip
    return result("LIST QUERIES", FIELDS, rows)
