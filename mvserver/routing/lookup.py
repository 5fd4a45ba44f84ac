"""What most handlers ask first: which store, which relation, where a new one goes."""

from __future__ import annotations

from catalog.model import Relation, Schema, Store
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
    return services.catalog.names.find_relation(name.parts, context.database, (context.schema,), name.position)


def relation(name: ObjectName, context: SessionContext, services: Services) -> Relation:
    return services.catalog.names.relation(name.parts, context.database, (context.schema,), name.position)


def new_relation(name: ObjectName, context: SessionContext, services: Services) -> tuple[Schema, str]:
    return services.catalog.names.new_relation(name.parts, context.database, context.schema, name.position)


def store_of(stream: Relation, services: Services) -> tuple[Store, str]:
    """A stream's store and entity."""
    found = services.catalog.stores.by_id(stream.store_id) if stream.store_id is not None else None
    if found is None or stream.entity is None:
        raise SqlError(sqlstates.WRONG_OBJECT_TYPE, f'"{stream.name}" is not a stream')
    return found, stream.entity


def resolver(database: str, schema: str, services: Services) -> Resolve:
    """How the compiler finds relations, by the search path that the query keeps."""

    def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
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
