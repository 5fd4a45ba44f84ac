"""The columns of a relation that is declared without any: from its store, from a registry, or from a descriptor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from catalog.acl import Privilege
from catalog.model import Store
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import descriptor_sources, lookup, registered_columns
from mvserver.routing.changelog_declaration import EXCLUDED, KEY_COLUMNS, KEY_DESCRIPTOR, KEY_FORMAT
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties, Property
from mvserver.sql.statements.relations import CreateChangelog, CreateStream
from spark_sinks.base import DeclaredColumn
from spark_sinks.decode.formats import KEY_FORMATS, NAMES_OF_VALUES

_NO_KEY_HINT = "Name the columns of the primary key: 'key.columns' = 'column, ...'."


@dataclass(frozen=True)
class InferredChangelog:
    """``properties`` are those that follow from the key's schema, where the statement does not say them."""

    columns: tuple[DeclaredColumn, ...]
    primary_key: tuple[str, ...]
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True)
class _Place:
    store: Store
    entity: str
    value_format: str | None


def stream(statement: CreateStream, context: SessionContext, services: Services) -> Sequence[DeclaredColumn]:
    place = _place(statement, context, services)
    found = _of_schema(place, statement.properties, context, services)
    return _of_store(statement, place, "STREAM", services) if found is None else found


def changelog(statement: CreateChangelog, context: SessionContext, services: Services) -> InferredChangelog:
    """With the primary key: that of the table, the columns that 'key.columns' names, or those of the keys' schema."""
    place = _place(statement, context, services)
    found = _of_schema(place, statement.properties, context, services)
    if found is None:
        columns = _of_store(statement, place, "CHANGELOG", services)
        return InferredChangelog(tuple(columns), tuple(c.name for c in columns if c.key))
    reader = PropertyReader(statement.properties, "a changelog")
    named = reader.names(KEY_COLUMNS)
    if named is not None:
        for name in named:
            if all(column.name != name for column in found):
                raise reader.error(
                    KEY_COLUMNS,
                    f'column "{name}" named in property "{KEY_COLUMNS}" does not exist',
                    sqlstate=sqlstates.UNDEFINED_COLUMN,
                )
        return InferredChangelog(tuple(found), tuple(named))
    return _by_key_schema(found, place, reader, statement, context, services)


def _by_key_schema(
    columns: Sequence[DeclaredColumn],
    place: _Place,
    reader: PropertyReader,
    statement: CreateChangelog,
    context: SessionContext,
    services: Services,
) -> InferredChangelog:
    format_ = reader.choice(KEY_FORMAT, KEY_FORMATS)
    descriptor = reader.text(KEY_DESCRIPTOR)
    said: list[Property] = []
    if descriptor is not None:
        given = statement.properties
        full = descriptor_sources.checked(descriptor, format_, KEY_DESCRIPTOR, given, context, services)
        key = descriptor_sources.columns(full, services)
    else:
        registered = registered_columns.key_of_entity(place.store, place.entity, format_, services)
        if registered is None:
            raise SqlError(
                sqlstates.INVALID_TABLE_DEFINITION,
                "the primary key of the changelog is not known",
                detail=f'There is no schema of the keys of entity "{place.entity}".',
                hint=_NO_KEY_HINT,
                position=statement.name.position,
            )
        found, key = registered
        said += [] if format_ is not None else [Property(KEY_FORMAT, found, 0)]
    names = {column.name for column in columns}
    key_only = [column for column in key if column.name not in names]
    if key_only and not reader.has(EXCLUDED):
        said.append(Property(EXCLUDED, ",".join(column.name for column in key_only), 0))
    whole = (*(replace(column, not_null=True) for column in key_only), *columns)
    return InferredChangelog(whole, tuple(column.name for column in key), tuple(said))


def _place(statement: CreateStream | CreateChangelog, context: SessionContext, services: Services) -> _Place:
    """Wrong values are told where all properties are read."""
    given = {
        key: value.strip()
        for key, value in dict(statement.properties).items()
        if isinstance(value, str) and value.strip()
    }
    store = lookup.store(given.get("store"), Privilege.USAGE, context, services)
    format_ = given.get("value.format", "").lower()
    entity = given.get("topic") or statement.name.parts[-1].lower()
    return _Place(store, entity, format_ if format_ in NAMES_OF_VALUES else None)


def _of_schema(
    place: _Place, given: Properties, context: SessionContext, services: Services
) -> Sequence[DeclaredColumn] | None:
    """None where values have no schema that is kept anywhere."""
    descriptor = PropertyReader(given, "a relation").text(descriptor_sources.VALUE)
    if descriptor is not None:
        format_, key = place.value_format, descriptor_sources.VALUE
        full = descriptor_sources.checked(descriptor, format_, key, given, context, services)
        return descriptor_sources.columns(full, services)
    kind, format_ = services.stores.kind(place.store.type), place.value_format
    if not kind.takes_schema_registry or format_ not in kind.formats or not registered_columns.has(format_):
        return None
    return registered_columns.of_entity(place.store, place.entity, format_, services)


def _of_store(
    statement: CreateStream | CreateChangelog, place: _Place, what: str, services: Services
) -> Sequence[DeclaredColumn]:
    known_columns = services.stores.kind(place.store.type).known_columns
    if known_columns is None:
        columns = "column type, ..." + (", PRIMARY KEY (column)" if what == "CHANGELOG" else "")
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"CREATE {what} without columns is not supported for a store of type {place.store.type}",
            hint=f"Declare the columns: CREATE {what} name ({columns}) WITH (...).",
            position=statement.name.position,
        )
    return known_columns(services.stores.client(place.store)).columns(place.entity, changelog=what == "CHANGELOG")
