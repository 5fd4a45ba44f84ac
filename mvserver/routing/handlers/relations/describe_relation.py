"""DESCRIBE RELATION [COLUMNS]: one row about the relation, or one for each of its columns."""

from __future__ import annotations

from catalog.model import Relation
from mvserver.front import Field, Result
from mvserver.masking import masked
from mvserver.routing import lookup, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, json_object, json_text, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import DescribeRelation
from mvserver.types.oids import BOOL, INT8, JSON, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("name", TEXT), ("type", TEXT), ("columns", JSON), ("primary_key", JSON), ("store", TEXT), ("entity", TEXT),
    ("properties", JSON), ("queries", JSON), ("definition", TEXT), ("owner", TEXT), ("created_at", TIMESTAMPTZ),
)  # fmt: skip
COLUMN_FIELDS = fields(("position", INT8), ("name", TEXT), ("type", TEXT), ("nullable", BOOL), ("key", BOOL))


def fields_of(statement: DescribeRelation) -> tuple[Field, ...]:
    return COLUMN_FIELDS if statement.columns else FIELDS


def run(statement: DescribeRelation, context: SessionContext, services: Services, work: Work) -> Result:
    relation = lookup.relation(statement.name, context, services)
    privileges.require_sight(relation, context, services, statement.name.position)
    if statement.columns:
        rows = [
            (number, column.name, column.type, not column.not_null, column.name in relation.key_columns)
            for number, column in enumerate(relation.columns, start=1)
        ]
        return result("DESCRIBE RELATION", COLUMN_FIELDS, rows)
    return result("DESCRIBE RELATION", FIELDS, [_row(relation, services)])


def _row(relation: Relation, services: Services) -> tuple[object, ...]:
    catalog = services.catalog
    store = catalog.stores.by_id(relation.store_id) if relation.store_id is not None else None
    return (
        catalog.names.full_name(relation),
        relation.kind,
        json_text([{"name": c.name, "type": c.type, "nullable": not c.not_null} for c in relation.columns]),
        json_text(list(relation.key_columns)),
        store.name if store is not None else None,
        relation.entity,
        json_object(masked(relation.properties)),
        json_text([query.id for query in catalog.queries.of_sink(relation.id)]),
        relation.definition,
        relation.owner,
        moment(relation.created_at),
    )
