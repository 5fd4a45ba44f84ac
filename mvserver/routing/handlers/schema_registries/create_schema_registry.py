"""CREATE SCHEMA_REGISTRY, for roles that have CREATESTORE: it is reached before it is kept."""

from __future__ import annotations

import uuid

from catalog.model import SchemaRegistry
from mvserver import sqlstates
from mvserver.front import Result
from mvserver.routing import notices, privileges, schema_registries
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.schema_registries import CreateSchemaRegistry

FIELDS = None
TAG = "CREATE SCHEMA_REGISTRY"


def run(statement: CreateSchemaRegistry, context: SessionContext, services: Services, work: Work) -> Result:
    known = services.catalog.schema_registries
    privileges.require_attribute(context, services, privileges.CREATESTORE, "create schema registry")
    if statement.if_not_exists and known.find(statement.name) is not None:
        told = f'schema registry "{statement.name}" already exists'
        notices.skipped(context, sqlstates.DUPLICATE_OBJECT, told)
        return done(TAG)
    known.check_new(statement.name)
    type_ = schema_registries.type_of(statement.properties)
    properties = schema_registries.checked(type_, statement.properties, {}, services)
    now = services.clock()
    registry = SchemaRegistry(str(uuid.uuid4()), 0, statement.name, type_, properties, context.role, now, now)
    schema_registries.answers(registry, services, work)
    try:
        with services.catalog.transaction():
            known.add(registry)
    except BaseException:
        services.schema_registries.forget(registry.id)
        raise
    return done(TAG)
