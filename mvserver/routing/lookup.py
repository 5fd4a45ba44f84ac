"""What most handlers ask first: which store, which relation, where a new one goes."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.model import Query, Relation, Schema, Store
from mvserver import sqlstates
from mvserver.compiler.plans import ErrorHandling, ScanColumn
from mvserver.compiler.shape import RelationShape, Resolve
from mvserver.errors import SqlError
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.sql.statements import ObjectName
from mvserver.sql.types import parse_type

STREAM = "stream"
VIEW = "materialized view"


def store(name: str | None, context: SessionContext, services: Services) -> Store:
    """The named store, else the session's; 3D000 where there is neither."""
    chosen = name if name is not None else context.store
    if chosen is None:
        raise SqlError(
            sqlstates.INVALID_CATALOG_NAME,
            "no store has been selected",
            hint="Name the store in the statement, or select one for the session with USE STORE.",
        )
    return services.catalog.stores.get(chosen)


def find_relation(name: ObjectName, context: SessionContext, services: Services) -> Relation | None:
    return services.catalog.names.find_relation(name.parts, context.database, context.search_path, name.position)


def relation(name: ObjectName, context: SessionContext, services: Services) -> Relation:
    return services.catalog.names.relation(name.parts, context.database, context.search_path, name.position)


def new_relation(name: ObjectName, context: SessionContext, services: Services) -> tuple[Schema, str]:
    return services.catalog.names.new_relation(name.parts, context.database, context.schema, name.position)


def store_of(stream: Relation, services: Services) -> tuple[Store, str]:
    """A stream's store and entity."""
    found = services.catalog.stores.by_id(stream.store_id) if stream.store_id is not None else None
    if found is None or stream.entity is None:
        raise SqlError(sqlstates.WRONG_OBJECT_TYPE, f'"{stream.name}" is not a stream')
    return found, stream.entity


def resolver(database: str, search_path: Sequence[str], services: Services) -> Resolve:
    """How the compiler finds the relations of a new statement."""

    def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
        return shape(services.catalog.names.relation(parts, database, search_path, position), services)

    return resolve


def known_resolver(query: Query, services: Services) -> Resolve:
    """How the compiler finds the relations of a definition that the catalog keeps: what its names meant when it was
    made, whatever else has got such a name since."""
    database, schema = query.search_path

    def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
        for source_id in query.source_ids:
            source = services.catalog.relations.by_id(source_id)
            if source is not None and services.catalog.names.path(source)[-len(parts) :] == parts:
                return shape(source, services)
        return shape(services.catalog.names.relation(parts, database, (schema,), position), services)

    return resolve


def shape(found: Relation, services: Services) -> RelationShape:
    return RelationShape(
        id=found.id,
        name=services.catalog.names.full_name(found),
        kind=found.kind,
        columns=tuple(ScanColumn(c.name, parse_type(c.type), c.not_null) for c in found.columns),
        value_format=found.property("value.format") or "json",
        timestamp=found.property("timestamp"),
        timestamp_format=found.property("timestamp.format") or "sql",
        error_handling=ErrorHandling(found.property("source.deserialization.error.handling") or "IGNORE_AND_LOG"),
    )
