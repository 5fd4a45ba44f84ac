"""Streams and changelogs are declared with columns, or by the SELECT that writes to them: the steps common to all."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from catalog.acl import Privilege
from catalog.model import Column, Relation, Schema, Store
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import (
    changelog_declaration,
    continuous,
    descriptor_sources,
    inferring,
    lookup,
    notices,
    registered_columns,
    replacing,
    stream_declaration,
    stream_entity,
)
from mvserver.routing.changelog_declaration import RecordKey
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.stream_declaration import StreamDeclaration
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import ColumnDefinition, Properties
from mvserver.sql.statements.relations import (
    CreateChangelog,
    CreateChangelogAs,
    CreateStream,
    CreateStreamAs,
    CreateTableAs,
)
from mvserver.sql.types import parse_type
from spark_sinks.base import DeclaredColumn


class Under(Protocol):
    """What a relation stands for in a store, as it has to be."""

    @property
    def store(self) -> Store: ...

    @property
    def name(self) -> str: ...

    def ensure(self, context: SessionContext, services: Services, work: Work) -> None:
        """Checks it, or makes it as an effect of the statement."""


@dataclass(frozen=True)
class EntityUnder:
    """The entity of a relation as it has to be; ``given`` are the properties that ``declaration`` was read from."""

    store: Store
    name: str
    declaration: StreamDeclaration
    given: Properties

    def ensure(self, context: SessionContext, services: Services, work: Work) -> None:
        stream_entity.ensure(self.store, self.name, self.declaration, self.given, context, services, work)


def stream_with_columns(statement: CreateStream, context: SessionContext, services: Services) -> CreateStream:
    """With the columns that the entity has, where the statement leaves them out. 0A000 where entities have none."""
    if statement.columns:
        return statement
    return replace(statement, columns=_definitions(inferring.stream(statement, context, services)))


def changelog_with_columns(statement: CreateChangelog, context: SessionContext, services: Services) -> CreateChangelog:
    """The same, with the entity's key."""
    if statement.columns:
        return statement
    found = inferring.changelog(statement, context, services)
    return replace(
        statement,
        columns=_definitions(found.columns),
        primary_key=found.primary_key,
        properties=Properties((*statement.properties.items_, *found.properties)),
    )


def _definitions(found: Sequence[DeclaredColumn]) -> tuple[ColumnDefinition, ...]:
    return tuple(ColumnDefinition(c.name, parse_type(c.type), c.not_null, c.spelling) for c in found)


def with_descriptor(
    declaration: StreamDeclaration, given: Properties, context: SessionContext, services: Services
) -> StreamDeclaration:
    """With the full name of the descriptor of its values, if it names one."""
    name, format_ = declaration.value_descriptor, declaration.value_format
    if name is None:
        return declaration
    full = descriptor_sources.checked(name, format_, descriptor_sources.VALUE, given, context, services)
    return replace(declaration, value_descriptor=full)


def key_with_descriptor(
    key: RecordKey | None, given: Properties, store: Store, context: SessionContext, services: Services
) -> RecordKey | None:
    """The same of a changelog's keys; else their format must be one of the store."""
    if key is None or key.descriptor is None:
        registered_columns.require_registry(store, (None if key is None else key.format,))
        return key
    full = descriptor_sources.checked(key.descriptor, key.format, descriptor_sources.KEY, given, context, services)
    return replace(key, descriptor=full)


def check_declared(
    entity: EntityUnder, statement: CreateStream | CreateChangelog, context: SessionContext, services: Services
) -> None:
    """The entity has what is declared of it, as far as it can say."""
    known_columns = services.stores.kind(entity.store.type).known_columns
    if known_columns is None:
        return
    fields = {c.name: [name for name, _ in c.type.fields] for c in statement.columns}
    key = statement.primary_key if isinstance(statement, CreateChangelog) else None
    for words in known_columns(services.stores.client(entity.store)).check_declared(entity.name, fields, key):
        notices.warning(context, words)


def place(
    kind: str, statement: CreateStream | CreateChangelog, context: SessionContext, services: Services
) -> tuple[Schema, str] | None:
    """The schema and name of the relation; None where it is there already and IF NOT EXISTS is given."""
    if statement.if_not_exists and lookup.is_there_already(statement.name, context, services):
        return None
    schema, name = lookup.new_relation(statement.name, context, services)
    if statement.or_replace:
        replacing.replaced(kind, statement.name, (schema, name), context, services)
    else:
        services.catalog.relations.check_new(schema.id, name)
    return schema, name


def store_and_format(
    kind: str, declaration: StreamDeclaration, context: SessionContext, services: Services
) -> tuple[Store, str]:
    """The store that is named or in use, and the format of the values there."""
    store = lookup.store(declaration.store, Privilege.USAGE, context, services)
    store_kind = services.stores.kind(store.type)
    if store_kind.reader is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"a {kind} over a store of type {store_kind.name} is not supported",
            detail="Queries write to its tables, and do not read them.",
            hint="CREATE TABLE name WITH ('store' = ...) AS SELECT ... writes a query's result there.",
        )
    described = declaration.value_descriptor is not None
    format_ = stream_declaration.required_format(declaration.value_format, store_kind, kind, described=described)
    registered_columns.require_registry(store, (None if described else format_, declaration.key_format))
    return store, format_


def relation(
    kind: str,
    statement: CreateStream | CreateChangelog | CreateStreamAs | CreateChangelogAs | CreateTableAs,
    place: tuple[Schema, str],
    columns: tuple[Column, ...],
    properties: Sequence[tuple[str, str]],
    entity: Under,
    context: SessionContext,
    services: Services,
    key: tuple[str, ...] = (),
) -> Relation:
    """A new relation of the session's role; the catalog gives it an oid when it is added."""
    schema, name = place
    return Relation(
        id=str(uuid.uuid4()),
        oid=0,
        schema_id=schema.id,
        name=name,
        kind=kind,
        columns=columns,
        properties=tuple(properties),
        definition=statement.text,
        owner=context.role,
        created_at=services.clock(),
        store_id=entity.store.id,
        entity=entity.name,
        key_columns=key,
    )


def declared_stream(
    statement: CreateStream, place: tuple[Schema, str], context: SessionContext, services: Services
) -> tuple[Relation, EntityUnder]:
    """A stream with columns as it would be kept, all checked that can be told without its entity."""
    columns = stream_declaration.check_columns(statement.columns)
    typed = [(c.name, c.type) for c in statement.columns]
    declaration = stream_declaration.read(statement.properties, typed, services.stores.kinds())
    declaration = with_descriptor(declaration, statement.properties, context, services)
    store, value_format = store_and_format(lookup.STREAM, declaration, context, services)
    kind, of_value = services.stores.kind(store.type), declaration.in_value(typed)
    stream_declaration.check_value_columns(
        value_format, of_value, declaration.value_delimiter, checked=declaration.value_checked
    )
    stream_declaration.check_key_columns(declaration, kind, statement.properties)
    stream_declaration.check_value(declaration, value_format, of_value, kind, statement.properties)
    entity = EntityUnder(store, declaration.entity or place[1].lower(), declaration, statement.properties)
    properties = declaration.kept(value_format)
    return relation(lookup.STREAM, statement, place, columns, properties, entity, context, services), entity


def declared_changelog(
    statement: CreateChangelog, place: tuple[Schema, str], context: SessionContext, services: Services
) -> tuple[Relation, EntityUnder]:
    """The same of a changelog."""
    columns = stream_declaration.check_columns(statement.columns)
    typed = [(c.name, c.type) for c in statement.columns]
    changelog_declaration.check_primary_key(typed, statement.primary_key)
    declaration = changelog_declaration.read(statement.properties, typed, services.stores.kinds())
    declaration = replace(declaration, stream=with_descriptor(declaration.stream, declaration.given, context, services))
    stream = declaration.stream
    store, value_format = store_and_format(lookup.CHANGELOG, stream, context, services)
    kind = services.stores.kind(store.type)
    key = changelog_declaration.record_key(declaration, typed, statement.primary_key, kind)
    key = key_with_descriptor(key, statement.properties, store, context, services)
    of_value = [each for each in typed if key is None or each[0] not in key.excluded]
    stream_declaration.check_value_columns(value_format, of_value, stream.value_delimiter, checked=stream.value_checked)
    stream_declaration.check_value(stream, value_format, typed, kind, statement.properties)
    entity = EntityUnder(store, stream.entity or place[1].lower(), declaration.compacted(kind), declaration.given)
    new = relation(
        lookup.CHANGELOG,
        statement,
        place,
        changelog_declaration.with_key(columns, statement.primary_key),
        changelog_declaration.kept(stream, value_format, key),
        entity,
        context,
        services,
        statement.primary_key,
    )
    return new, entity


def declare(
    new: Relation,
    entity: EntityUnder,
    statement: CreateStream | CreateChangelog,
    schema: Schema,
    context: SessionContext,
    services: Services,
    work: Work,
) -> None:
    """Keeps a relation that was declared with columns; its entity is made where it is not there."""

    def replaced() -> Relation | None:
        if not statement.or_replace:
            return None
        return replacing.redeclared(new, statement.name, schema, context, services)

    replaced()  # refused before its entity is made
    entity.ensure(context, services, work)
    check_declared(entity, statement, context, services)
    with services.catalog.transaction():
        replacing.put(new, replaced(), services, work)


def begin_writing(
    new: Relation,
    entity: Under,
    kind: str,
    statement: CreateStreamAs | CreateChangelogAs | CreateTableAs,
    planned: PlannedQuery,
    start: str,
    context: SessionContext,
    services: Services,
    work: Work,
) -> None:
    """Keeps a relation with the query that writes to it; ``kind`` is the query's."""
    catalog = services.catalog
    formats = (("value.format", descriptor_sources.VALUE), ("key.format", descriptor_sources.KEY))
    by_registry = [new.property(part) for part, descriptor in formats if new.property(descriptor) is None]
    registered_columns.require_registry(entity.store, by_registry)
    descriptor_sources.check_written(new, entity.store, services)
    if not work.rehearsal:
        services.schema_registries.check_written(entity.store, new)
    entity.ensure(context, services, work)
    with catalog.transaction():
        sink = catalog.relations.add(new)
        query = continuous.query(kind, statement, planned, sink.id, start, context, services)
        catalog.queries.add(query)
    work.after_commit(services.engine.reconcile)
    context.notice(f'query {query.id} writes to {sink.kind} "{sink.name}"')
