"""CREATE [OR REPLACE] CHANGELOG: columns with a primary key over an entity, which is made when it is not there."""

from __future__ import annotations

import uuid

from catalog.acl import Privilege
from catalog.model import Relation
from mvserver.front import Result
from mvserver.routing import changelog_declaration, lookup, replacing, stream_declaration, stream_entity
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateChangelog

FIELDS = None
TAG = "CREATE CHANGELOG"


def run(statement: CreateChangelog, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return done(TAG)
    schema, name = lookup.new_relation(statement.name, context, services)
    if statement.or_replace:
        replacing.replaced(lookup.CHANGELOG, statement.name, (schema, name), context, services)
    else:
        catalog.relations.check_new(schema.id, name)
    columns = stream_declaration.check_columns(statement.columns)
    typed = [(c.name, c.type) for c in statement.columns]
    changelog_declaration.check_primary_key(typed, statement.primary_key)
    declaration = changelog_declaration.read(statement.properties, typed)
    store = lookup.store(declaration.stream.store, Privilege.USAGE, context, services)
    formats = services.stores.formats(store.type)
    value_format = stream_declaration.required_format(
        declaration.stream.value_format, formats, lookup.CHANGELOG, store.type
    )
    key = changelog_declaration.record_key(declaration, typed, statement.primary_key, store.type)
    entity = declaration.stream.entity or name.lower()
    relation = Relation(
        id=str(uuid.uuid4()),
        oid=0,
        schema_id=schema.id,
        name=name,
        kind=lookup.CHANGELOG,
        columns=changelog_declaration.with_key(columns, statement.primary_key),
        properties=changelog_declaration.kept(declaration.stream, value_format, key),
        definition=statement.text,
        owner=context.role,
        created_at=services.clock(),
        store_id=store.id,
        entity=entity,
        key_columns=statement.primary_key,
    )
    with catalog.transaction():
        old = None
        if statement.or_replace:
            old = replacing.redeclared(relation, statement.name, schema, context, services)
        made = declaration.compacted(store.type)
        stream_entity.ensure(store, entity, made, declaration.given, context, services, work)
        replacing.put(relation, old, services, work)
    return done(TAG)
