"""DESCRIBE STORE: one row; secrets are masked."""

from __future__ import annotations

from typing import Any

from catalog.model import SchemaRegistry, Store
from mvserver.front import Result
from mvserver.masking import masked
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, json_object, moment, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import DescribeStore
from mvserver.types.oids import JSON, TEXT, TIMESTAMPTZ

FIELDS = fields(
    ("name", TEXT),
    ("type", TEXT),
    ("uris", TEXT),
    ("properties", JSON),
    ("owner", TEXT),
    ("created_at", TIMESTAMPTZ),
    ("updated_at", TIMESTAMPTZ),
)


def run(statement: DescribeStore, context: SessionContext, services: Services, work: Work) -> Result:
    store = services.catalog.stores.get(statement.name)
    privileges.require_sight(store, context, services)
    return result("DESCRIBE STORE", FIELDS, [row(store)])


def row(system: Store | SchemaRegistry) -> tuple[Any, ...]:
    return (
        system.name,
        system.type,
        system.property("uris"),
        json_object(masked(system.properties)),
        system.owner,
        moment(system.created_at),
        moment(system.updated_at),
    )
