"""DROP SCHEMA_REGISTRY: refused while stores name it; the schemas in it stay."""

from __future__ import annotations

from functools import partial

from mvserver.front import Result
from mvserver.routing import notices, privileges, schema_registries
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.schema_registries import DropSchemaRegistry

FIELDS = None
TAG = "DROP SCHEMA_REGISTRY"


def run(statement: DropSchemaRegistry, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        if statement.if_exists and catalog.schema_registries.find(statement.name) is None:
            told = f'schema registry "{statement.name}" does not exist'
            notices.missing(context, told)
            return done(TAG)
        registry = catalog.schema_registries.get(statement.name)
        privileges.require_owner(registry, context, services)
        schema_registries.refuse_dropping(registry, catalog.dependencies.of_schema_registry(registry))
        catalog.schema_registries.delete(registry.id)
    work.after_commit(partial(services.schema_registries.forget, registry.id))
    return done(TAG)
