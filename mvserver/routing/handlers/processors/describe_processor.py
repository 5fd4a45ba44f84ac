"""DESCRIBE PROCESSOR: a row for each of its queries, with what that does at this moment."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.programs import processors
from mvserver.routing.query_states import relation_name
from mvserver.routing.rows import fields, json_text, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.processors import DescribeProcessor
from mvserver.streaming.api import DEAD_LETTERS
from mvserver.types.oids import FLOAT8, INT8, JSON, TEXT

FIELDS = fields(
    ("target", TEXT), ("kind", TEXT), ("query_id", TEXT), ("runner", INT8), ("intended_state", TEXT),
    ("actual_state", TEXT), ("error", TEXT), ("sources", JSON), ("rows_in", INT8), ("rows_in_per_s", FLOAT8),
    ("rows_out_per_s", FLOAT8), ("rejected", INT8), ("lag_records", INT8), ("query", TEXT),
)  # fmt: skip

_KINDS = {"stream": "STREAM", "changelog": "TABLE", DEAD_LETTERS: "DEAD LETTERS"}


def run(statement: DescribeProcessor, context: SessionContext, services: Services, work: Work) -> Result:
    found = processors.get(statement.name, context, services)
    statuses = processors.statuses(found, services)
    rows = []
    for query in found.queries:
        privileges.require_query_sight(query, context, services)
        status, sink = statuses[query.id], services.catalog.relations.by_id(query.sink_id)
        rows.append(
            (
                None if sink is None else sink.entity,
                _KINDS.get(query.kind) or (None if sink is None else _KINDS.get(sink.kind, sink.kind)),
                query.id,
                1,
                query.desired_state.upper(),
                status.state.value,
                status.error,
                json_text([_topic(id_, services) for id_ in query.source_ids]),
                status.rows_in,
                status.rows_in_per_s,
                status.rows_out_per_s,
                status.rejected,
                status.lag_records,
                query.select_text,
            )
        )
    return result("DESCRIBE PROCESSOR", FIELDS, rows)


def _topic(relation_id: str, services: Services) -> str | None:
    relation = services.catalog.relations.by_id(relation_id)
    return relation_name(relation_id, services) if relation is None or relation.entity is None else relation.entity
