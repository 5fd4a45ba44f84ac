"""DESCRIBE FUNCTION: its text, its bounds, and the queries that call it."""

from __future__ import annotations

from catalog.dependencies import kind
from mvserver.front import Result
from mvserver.routing import functions, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, json_text, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.functions import DescribeFunction
from mvserver.types.oids import BOOL, INT8, JSON, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("name", TEXT), ("kind", TEXT), ("arguments", TEXT), ("returns", TEXT), ("language", TEXT), ("strict", BOOL),
    ("timeout_millis", INT8), ("memory_mb", INT8), ("owner", TEXT), ("created_at", TIMESTAMPTZ),
    ("updated_at", TIMESTAMPTZ), ("queries", JSON), ("body", TEXT),
)  # fmt: skip


def run(statement: DescribeFunction, context: SessionContext, services: Services, work: Work) -> Result:
    found = functions.function(statement.name, context, services)
    privileges.require_sight(found, context, services, statement.name.position)
    own = privileges.authority(context, services)
    queries = [
        query.id for query in services.catalog.queries.of_function(found.id)
        if privileges.sees_query(query, own, services)
    ]  # fmt: skip
    row = (
        found.name, kind(found), ", ".join(f"{name} {type_}" for name, type_ in found.parameters), found.result,
        found.language, found.strict, found.timeout_ms, found.memory_bytes // 2**20, found.owner,
        moment(found.created_at), moment(found.updated_at), json_text(queries), found.body,
    )  # fmt: skip
    return result("DESCRIBE FUNCTION", FIELDS, [row])
