"""DESCRIBE QUERY: one row with everything that is known about a continuous query at this moment."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.pgcatalog.visibility import TELLING
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.query_states import hides_rows, relation_name, status_of
from mvserver.routing.rows import fields, json_text, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.queries import DescribeQuery
from mvserver.types.oids import BOOL, FLOAT8, INT8, JSON, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("id", TEXT), ("kind", TEXT), ("intended_state", TEXT), ("actual_state", TEXT), ("error", TEXT), ("note", TEXT),
    ("query", TEXT), ("sources", JSON), ("sinks", JSON), ("rows_in", INT8), ("rows_in_per_s", FLOAT8),
    ("rows_out_per_s", FLOAT8), ("rejected", INT8), ("start_position", JSON), ("position", JSON),
    ("latest_position", JSON), ("lag_records", INT8), ("caught_up", BOOL), ("freshness_ms", FLOAT8),
    ("filled_share", FLOAT8), ("last_change_at", TIMESTAMPTZ), ("last_confirmed_at", TIMESTAMPTZ), ("epoch", INT8),
    ("version", INT8), ("owner", TEXT), ("created_at", TIMESTAMPTZ), ("lane", TEXT), ("lane_reason", TEXT),
)  # fmt: skip

_TELLING = TELLING | {"rows_in_per_s", "rows_out_per_s", "start_position"}
"""What tells of rows that policies may hide, as in mv_catalog.queries."""


def run(statement: DescribeQuery, context: SessionContext, services: Services, work: Work) -> Result:
    query = services.catalog.queries.get(statement.id)
    privileges.require_query_sight(query, context, services)
    status = status_of(query, {each.query_id: each for each in services.engine.statuses()})
    row: tuple[object, ...] = (
        query.id,
        query.kind,
        query.desired_state.upper(),
        status.state.value,
        status.error,
        status.note,
        query.select_text,
        json_text([relation_name(id_, services) for id_ in query.source_ids]),
        json_text([relation_name(query.sink_id, services)]),
        status.rows_in,
        status.rows_in_per_s,
        status.rows_out_per_s,
        status.rejected,
        query.start_position,
        status.position,
        status.latest_position,
        status.lag_records,
        status.caught_up,
        status.freshness_ms,
        status.filled_share,
        moment(status.last_change_at),
        moment(status.last_confirmed_at),
        status.epoch,
        query.definition_version,
        query.owner,
        moment(query.created_at),
        status.lane,
        status.lane_reason,
    )
    if hides_rows(query, privileges.authority(context, services), services):
        row = tuple(None if field.name in _TELLING else value for field, value in zip(FIELDS, row, strict=True))
    return result("DESCRIBE QUERY", FIELDS, [row])
