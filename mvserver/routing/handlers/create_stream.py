"""CREATE [OR REPLACE] STREAM: columns and a format over an entity, which is made when it is not there."""

from __future__ import annotations

import uuid

from catalog.acl import Privilege
from catalog.model import Relation
from mvserver.front import Result
from mvserver.routing import lookup, replacing, stream_declaration, stream_entity
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateStream

FIELDS = None
TAG = "CREATE STREAM"


def run(statement: CreateStream, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return done(TAG)
    schema, name = lookup.new_relation(statement.name, context, services)
    if statement.or_replace:
        replacing.replaced(lookup.STREAM, statement.name, (schema, name), context, services)
    else:
        catalog.relations.check_new(schema.id, name)
    columns = stream_declaration.check_columns(statement.columns)
    declaration = stream_declaration.read(statement.properties, [(c.name, c.type) for c in statement.columns])
    store = lookup.store(declaration.store, Privilege.USAGE, context, services)
    formats = services.stores.formats(store.type)
    value_format = stream_declaration.required_format(declaration.value_format, formats, lookup.STREAM, store.type)
    entity = declaration.entity or name.lower()
    relation = Relation(
        id=str(uuid.uuid4()),
        oid=0,
        schema_id=schema.id,
        name=name,
        kind=lookup.STREAM,
        columns=columns,
        properties=declaration.kept(value_format),
        definition=statement.text,
        owner=context.role,
        created_at=services.clock(),
        store_id=store.id,
        entity=entity,
    )
    with catalog.transaction():
        old = None
        if statement.or_replace:
            old = replacing.redeclared(relation, statement.name, schema, context, services)
        stream_entity.ensure(store, entity, declaration, statement.properties, context, services, work)
        replacing.put(relation, old, services, work)
    return done(TAG)
