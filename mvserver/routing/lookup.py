"""The first questions of most handlers: the store or relation that is meant, and the place of a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from catalog.acl import Privilege
from catalog.model import EnumType, Query, Relation, Schema, Store
from mvserver import sqlstates
from mvserver.compiler.plans import ErrorHandling, ScanColumn
from mvserver.compiler.shape import RelationShape, Resolve, ViewDefinition
from mvserver.compiler.source_properties import STATE_TTL
from mvserver.compiler.view_properties import kept_properties
from mvserver.errors import SqlError
from mvserver.routing import descriptor_sources, notices, privileges
from mvserver.routing.functions import KnownFunctions
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.sql.dialect import parse_select
from mvserver.sql.statements.base import ObjectName
from mvserver.sql.types import SqlType, parse_type

STREAM = "stream"
CHANGELOG = "changelog"
VIEW = "materialized view"
PLAIN_VIEW = "view"

SYSTEM_SCHEMAS = ("pg_catalog", "information_schema")


def store(name: str | None, needed: Privilege, context: SessionContext, services: Services) -> Store:
    """The named store, else the session's; 3D000 where there is neither, 42501 where the role may not do there what it
    wants to."""
    chosen = name if name is not None else context.store
    if chosen is None:
        raise SqlError(
            sqlstates.INVALID_CATALOG_NAME,
            "no store has been selected",
            hint="Name the store in the statement, or select one for the session with USE STORE.",
        )
    found = services.catalog.stores.get(chosen)
    privileges.require(found, needed, context, services)
    return found


def find_relation(name: ObjectName, context: SessionContext, services: Services) -> Relation | None:
    _refuse_place(name.parts, name.position, context, services)
    path = privileges.usable_path(context, services)
    return services.catalog.names.find_relation(name.parts, context.database, path, name.position)


def relation(name: ObjectName, context: SessionContext, services: Services) -> Relation:
    _refuse_place(name.parts, name.position, context, services)
    path = privileges.usable_path(context, services)
    return services.catalog.names.relation(name.parts, context.database, path, name.position)


def find_type(name: ObjectName, context: SessionContext, services: Services) -> EnumType | None:
    _refuse_place(name.parts, name.position, context, services)
    path = privileges.usable_path(context, services)
    return services.catalog.names.find_type(name.parts, context.database, path, name.position)


def missing_schema(name: ObjectName, context: SessionContext, services: Services) -> str | None:
    """What IF EXISTS tells of a name whose schema is not there."""
    if len(name.parts) == 1 or name.parts[-2] in SYSTEM_SCHEMAS:
        return None
    database = services.catalog.databases.find(name.parts[0] if len(name.parts) == 3 else context.database)
    if database is not None and services.catalog.schemas.find(database.id, name.parts[-2]) is not None:
        return None
    return f'schema "{name.parts[-2]}"'


def enum_type(name: ObjectName, context: SessionContext, services: Services) -> EnumType:
    """42704 where there is none."""
    found = find_type(name, context, services)
    if found is None:
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f'type "{name}" does not exist', position=name.position)
    return found


def new_relation(name: ObjectName, context: SessionContext, services: Services) -> tuple[Schema, str]:
    """Where a relation of this name would be made; 42501 where the role may not make one."""
    schema, plain = services.catalog.names.new_relation(name.parts, context.database, context.schema, name.position)
    privileges.require(schema, Privilege.CREATE, context, services, name.position)
    return schema, plain


def is_there_already(name: ObjectName, context: SessionContext, services: Services) -> bool:
    """For IF NOT EXISTS: with the notice that the statement is passed over."""
    schema, plain = new_relation(name, context, services)
    if services.catalog.relations.find(schema.id, plain) is None:
        return False
    notices.skipped(context, sqlstates.DUPLICATE_TABLE, f'relation "{plain}" already exists')
    return True


def _refuse_place(parts: Sequence[str], position: int | None, context: SessionContext, services: Services) -> None:
    if len(parts) > 1:
        privileges.require_place(parts[:-1], context, services, position)


def store_of(stream: Relation, services: Services) -> tuple[Store, str]:
    """A stream's store and entity."""
    found = services.catalog.stores.by_id(stream.store_id) if stream.store_id is not None else None
    if found is None or stream.entity is None:
        raise SqlError(sqlstates.WRONG_OBJECT_TYPE, f'"{stream.name}" is not a stream')
    return found, stream.entity


def resolver(context: SessionContext, services: Services) -> Resolve:
    """How the compiler finds the relations of a new statement: those that the session's role may read."""

    def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
        found = relation(ObjectName(parts, position), context, services)
        privileges.require(found, Privilege.SELECT, context, services, position)
        privileges.require_all_rows(found, context.role, services, position)
        if found.kind == PLAIN_VIEW:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'a continuous query cannot read view "{found.name}"',
                hint="Name what the view reads: streams, changelogs and materialized views.",
                position=position,
            )
        return shape(found, services)

    return resolve


def new_resolver(new: Mapping[str, Relation], services: Services) -> Resolve:
    """How the compiler finds relations that a statement is about to make, by their names, and no others."""

    def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
        found = new.get(parts[0]) if len(parts) == 1 else None
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{".".join(parts)}" does not exist', position=position)
        return shape(found, services)

    return resolve


def known_resolver(query: Query, services: Services) -> Resolve:
    """How the compiler finds the relations of a definition that the catalog keeps: what its names meant when it was
    made, whatever else has got such a name since."""
    database, schema = query.search_path

    def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
        named = services.catalog.names.find_relation(parts, database, (schema,), position)
        if named is not None and named.id in query.source_ids:
            return shape(named, services)
        for source_id in query.source_ids:
            source = services.catalog.relations.by_id(source_id)
            if source is not None and services.catalog.names.path(source)[-len(parts) :] == parts:
                return shape(source, services)
        return shape(services.catalog.names.relation(parts, database, (schema,), position), services)

    return resolve


def shape(found: Relation, services: Services) -> RelationShape:
    key_only = found.columns_of("value.columns.exclude")
    return RelationShape(
        id=found.id,
        name=services.catalog.names.full_name(found),
        kind=found.kind,
        columns=tuple(ScanColumn(c.name, parse_type(c.type), c.not_null, c.spelling) for c in found.columns),
        value_format=found.property("value.format") or "json",
        timestamp=found.property("timestamp"),
        timestamp_format=found.property("timestamp.format") or "sql",
        error_handling=ErrorHandling(found.property("source.deserialization.error.handling") or "IGNORE_AND_LOG"),
        primary_key=found.key_columns,
        key_format=found.property("key.format") if found.kind == CHANGELOG or key_only else None,
        key_only=key_only,
        partition_columns=found.columns_of("partition.columns"),
        view=_definition(found, services) if found.kind == VIEW else None,
        metadata=_metadata(found, services),
        value_schema=descriptor_sources.schema(found, descriptor_sources.VALUE, services),
        key_schema=descriptor_sources.schema(found, descriptor_sources.KEY, services),
        value_delimiter=found.property("value.delimiter"),
        value_checked=found.property("value.schema.validation") == "true",
        reading=_reading(found, services),
    )


def _reading(found: Relation, services: Services) -> tuple[tuple[str, str | None], ...]:
    store = None if found.store_id is None else services.catalog.stores.by_id(found.store_id)
    known = () if store is None else services.stores.kind(store.type).reading_properties()
    return tuple((each.name, found.property(each.name)) for each in known)


def _metadata(found: Relation, services: Services) -> SqlType | None:
    store = None if found.store_id is None else services.catalog.stores.by_id(found.store_id)
    metadata = None if store is None else services.stores.kind(store.type).metadata
    return None if metadata is None else parse_type(metadata)


def _definition(view: Relation, services: Services) -> ViewDefinition | None:
    """None for one that forgets rows or shows them only once: a view over it would have to do so too."""
    query = next(iter(services.catalog.queries.of_sink(view.id)), None)
    if query is None:
        return None
    kept = kept_properties(dict(query.properties))
    state_ttl_ms = kept.pop(STATE_TTL, 0)
    select = parse_select(query.select_text)
    if kept or select.meta.get("emit_final"):
        return None
    return ViewDefinition(select, known_resolver(query, services), state_ttl_ms, KnownFunctions(query, services))
