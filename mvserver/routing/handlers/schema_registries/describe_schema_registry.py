"""DESCRIBE SCHEMA_REGISTRY: one row; secrets are masked."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import privileges
from mvserver.routing.handlers.stores import describe_store
from mvserver.routing.ports import Services
from mvserver.routing.rows import result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.schema_registries import DescribeSchemaRegistry

FIELDS = describe_store.FIELDS


def run(statement: DescribeSchemaRegistry, context: SessionContext, services: Services, work: Work) -> Result:
    registry = services.catalog.schema_registries.get(statement.name)
    privileges.require_sight(registry, context, services)
    return result("DESCRIBE SCHEMA_REGISTRY", FIELDS, [describe_store.row(registry)])
