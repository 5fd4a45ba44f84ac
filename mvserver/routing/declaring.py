"""Streams and changelogs are declared with columns, or by the SELECT that writes to them: the steps common to all."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from catalog.acl import Privilege
from catalog.model import Column, Relation, Schema, Store
from mvserver.routing import continuous, lookup, replacing, stream_declaration, stream_entity
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.stream_declaration import StreamDeclaration
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties
from mvserver.sql.statements.relations import CreateChangelog, CreateChangelogAs, CreateStream, CreateStreamAs


@dataclass(frozen=True)
class EntityUnder:
    """The entity of a relation as it has to be; ``given`` are the properties that ``declaration`` was read from."""

    store: Store
    name: str
    declaration: StreamDeclaration
    given: Properties

    def ensure(self, context: SessionContext, services: Services, work: Work) -> None:
        stream_entity.ensure(self.store, self.name, self.declaration, self.given, context, services, work)


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
    return store, stream_declaration.required_format(declaration.value_format, store_kind, kind)


def relation(
    kind: str,
    statement: CreateStream | CreateChangelog | CreateStreamAs | CreateChangelogAs,
    place: tuple[Schema, str],
    columns: tuple[Column, ...],
    properties: Sequence[tuple[str, str]],
    entity: EntityUnder,
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
    with services.catalog.transaction():
        old = None
        if statement.or_replace:
            old = replacing.redeclared(new, statement.name, schema, context, services)
        entity.ensure(context, services, work)
        replacing.put(new, old, services, work)


def begin_writing(
    new: Relation,
    entity: EntityUnder,
    kind: str,
    statement: CreateStreamAs | CreateChangelogAs,
    planned: PlannedQuery,
    start: str,
    context: SessionContext,
    services: Services,
    work: Work,
) -> None:
    """Keeps a relation with the query that writes to it; ``kind`` is the query's."""
    catalog = services.catalog
    with catalog.transaction():
        entity.ensure(context, services, work)
        sink = catalog.relations.add(new)
        query = continuous.query(kind, statement, planned, sink.id, start, context, services)
        catalog.queries.add(query)
    work.after_commit(services.engine.reconcile)
    context.notice(f'query {query.id} writes to {sink.kind} "{sink.name}"')
