"""CREATE [OR REPLACE] CHANGELOG: columns with a primary key over an entity, which is made when it is not there."""

from __future__ import annotations

from dataclasses import replace

from mvserver.front import Result
from mvserver.routing import changelog_declaration, declaring, lookup, stream_declaration
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateChangelog

FIELDS = None
TAG = "CREATE CHANGELOG"


def run(statement: CreateChangelog, context: SessionContext, services: Services, work: Work) -> Result:
    place = declaring.place(lookup.CHANGELOG, statement, context, services)
    if place is None:
        return done(TAG)
    statement = declaring.changelog_with_columns(statement, context, services)
    columns = stream_declaration.check_columns(statement.columns)
    typed = [(c.name, c.type) for c in statement.columns]
    changelog_declaration.check_primary_key(typed, statement.primary_key)
    declaration = changelog_declaration.read(statement.properties, typed, services.stores.kinds())
    declaration = replace(
        declaration, stream=declaring.with_descriptor(declaration.stream, declaration.given, context, services)
    )
    store, value_format = declaring.store_and_format(lookup.CHANGELOG, declaration.stream, context, services)
    kind = services.stores.kind(store.type)
    key = changelog_declaration.record_key(declaration, typed, statement.primary_key, kind)
    key = declaring.key_with_descriptor(key, statement.properties, store, context, services)
    of_value = [each for each in typed if key is None or each[0] not in key.excluded]
    stream_declaration.check_value_columns(
        value_format, of_value, declaration.stream.value_delimiter, checked=declaration.stream.value_checked
    )
    stream_declaration.check_value(declaration.stream, value_format, typed, kind, statement.properties)
    schema, name = place
    topic = declaration.compacted(kind)
    entity = declaring.EntityUnder(store, declaration.stream.entity or name.lower(), topic, declaration.given)
    new = declaring.relation(
        lookup.CHANGELOG,
        statement,
        place,
        changelog_declaration.with_key(columns, statement.primary_key),
        changelog_declaration.kept(declaration.stream, value_format, key),
        entity,
        context,
        services,
        statement.primary_key,
    )
    declaring.declare(new, entity, statement, schema, context, services, work)
    return done(TAG)
