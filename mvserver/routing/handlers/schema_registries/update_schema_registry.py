"""UPDATE SCHEMA_REGISTRY: new properties over the old, after the registry was reached with them."""

from __future__ import annotations

from dataclasses import replace

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import privileges, schema_registries
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.schema_registries import UpdateSchemaRegistry

FIELDS = None
TAG = "UPDATE SCHEMA_REGISTRY"


def run(statement: UpdateSchemaRegistry, context: SessionContext, services: Services, work: Work) -> Result:
    known = services.catalog.schema_registries
    registry = known.get(statement.name)
    privileges.require_owner(registry, context, services)
    if "type" in statement.properties:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            'property "type" of a schema registry cannot be changed',
            hint="Create another schema registry.",
            position=statement.properties.position("type"),
        )
    base = dict(registry.properties)
    properties = schema_registries.checked(registry.type, statement.properties, base, services)
    updated = replace(registry, properties=properties, updated_at=max(services.clock(), registry.updated_at + 1e-6))
    try:
        schema_registries.answers(updated, services, work)
        with services.catalog.transaction():
            known.get(statement.name)  # it may have been dropped meanwhile
            known.update(registry.id, updated.properties, updated.updated_at)
    except BaseException:
        services.schema_registries.forget(registry.id)  # the next use opens it with the properties in force
        raise
    work.after_commit(services.engine.reconcile)
    return done(TAG)
