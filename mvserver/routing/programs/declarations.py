"""Statements of the first dialect that declare what a program reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.model import Relation, Schema, Store
from mvserver.lenses.program import RowKind
from mvserver.quoting import constant, quoted
from mvserver.routing import declaring
from mvserver.routing.declaring import EntityUnder
from mvserver.routing.ports import Services
from mvserver.routing.programs.schemas import SchemaField, TopicSchema
from mvserver.session.context import SessionContext
from mvserver.sql import parse_one
from mvserver.sql.statements.relations import CreateChangelog, CreateStream

Columns = Sequence[tuple[str, SchemaField]]


@dataclass(frozen=True)
class Declaration:
    """A relation that is not kept yet."""

    relation: Relation
    entity: EntityUnder
    statement: CreateStream | CreateChangelog


def source(
    name: str,
    topic: str,
    kind: RowKind,
    schema: TopicSchema,
    place: tuple[Schema, Store],
    error_handling: str | None,
    context: SessionContext,
    services: Services,
) -> Declaration:
    """The topic under a name of the processor's own, with columns for both facets."""
    properties = dict(schema.properties)
    if error_handling is not None:
        properties["source.deserialization.error.handling"] = error_handling
    if schema.timestamp is not None:
        properties["timestamp"] = schema.timestamp
    properties["value.format"] = schema.value_format
    key_format = None if schema.key is None else schema.key.format
    return _declared(
        name,
        topic,
        kind,
        (schema.key_columns(), schema.value_columns()),
        key_format,
        properties,
        place,
        context,
        services,
    )


def target(
    name: str,
    topic: str,
    kind: RowKind,
    columns: tuple[Columns, Columns],
    formats: tuple[str | None, str],
    properties: Mapping[str, str],
    place: tuple[Schema, Store],
    context: SessionContext,
    services: Services,
) -> Declaration:
    """``columns`` and ``formats`` are those of the key and of the value."""
    given = {**properties, "value.format": formats[1]}
    return _declared(name, topic, kind, columns, formats[0], given, place, context, services)


def _declared(
    name: str,
    topic: str,
    kind: RowKind,
    columns: tuple[Columns, Columns],
    key_format: str | None,
    properties: Mapping[str, str],
    place: tuple[Schema, Store],
    context: SessionContext,
    services: Services,
) -> Declaration:
    schema, store = place
    keys, values = columns
    items = [f"{quoted(column)} {field.type}" for column, field in keys]
    items += [f"{quoted(column)} {field.type}{' NOT NULL' if field.not_null else ''}" for column, field in values]
    names = ",".join(column for column, _ in keys)
    given = {"store": store.name, "topic": topic, **properties}
    if keys and key_format is not None:
        given |= {"key.format": key_format, "value.columns.exclude": names}
    if kind is RowKind.TABLE:
        items.append(f"PRIMARY KEY ({', '.join(quoted(column) for column, _ in keys)})")
    elif keys:
        given["key.columns"] = names
    listed = ", ".join(f"'{key}' = {constant(value)}" for key, value in given.items())
    what = "CHANGELOG" if kind is RowKind.TABLE else "STREAM"
    text = f"CREATE {what} {quoted(name)} ({', '.join(items)}) WITH ({listed})"
    statement = parse_one(text)
    if isinstance(statement, CreateChangelog):
        return Declaration(*declaring.declared_changelog(statement, (schema, name), context, services), statement)
    assert isinstance(statement, CreateStream)  # noqa: S101 - just written
    return Declaration(*declaring.declared_stream(statement, (schema, name), context, services), statement)
