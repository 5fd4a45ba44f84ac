"""The target of CREATE TABLE AS SELECT, validated whole before anything exists: a table of a store, made or found.

The result of a projection over a stream is appended. Rows that are replaced or deleted as records come in, those of an
aggregate or of a changelog, are merged by their key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.acl import Privilege
from catalog.model import Column, Schema, Store
from mvserver import sqlstates
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.plans import Aggregation
from mvserver.compiler.view_properties import with_view_properties
from mvserver.errors import SqlError
from mvserver.routing import (
    changelog_declaration,
    changelog_sinks,
    continuous,
    lookup,
    privileges,
    retention,
    sinks,
    stream_declaration,
)
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.routing.stream_entity import take_turn
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties
from mvserver.sql.statements.relations import CreateTableAs
from mvserver.sql.statements.stores import CreateEntity
from mvserver.table_shapes import table_shape
from spark_sinks.base import TableClient
from spark_sinks.store_kind import StoreKind, Tables
from spark_sinks.table_options import TABLE_PROPERTIES, TableProperty


@dataclass(frozen=True)
class TableUnder:
    """The table of a store as it has to be; ``properties`` are those of the statement."""

    store: Store
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    properties: dict[str, str]

    def ensure(self, context: SessionContext, services: Services, work: Work) -> None:
        """Checks the table column by column, or makes it as an effect of the statement."""
        shape, client = table_shape(self.columns, self.key), _client(self.store, services)
        take_turn(self.store, self.name, services, work)
        if client.check_table(self.name, shape, self.properties):
            return
        privileges.require(self.store, Privilege.CREATE, context, services)
        work.effect(
            f'entity "{self.name}" in store "{self.store.name}"',
            lambda: client.create_table(self.name, shape, self.properties),
            lambda: services.stores.client(self.store).drop_entity(self.name, {}),
        )


@dataclass(frozen=True)
class PlannedTable:
    schema: Schema
    name: str
    query: PlannedQuery
    under: TableUnder


def plan_table(statement: CreateTableAs, context: SessionContext, services: Services) -> PlannedTable:
    schema, name = lookup.new_relation(statement.name, context, services)
    services.catalog.relations.check_new(schema.id, name)
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.LATEST, written=True)
    kept, properties = changelog_sinks.divided(statement.properties)
    key: tuple[str, ...] = ()
    if isinstance(planned.plan, Aggregation) or over_changelog(planned.plan):
        planned, key = _keyed(statement, kept, context, services)
    else:
        PropertyReader(kept, "a table whose rows are only added").end(())
    reader = PropertyReader(properties, "a table")
    store = sinks.chosen_store(reader.text("store"), planned, context, services)
    kind = services.stores.kind(store.type)
    tables = tables_of(kind, services)
    own = {known: text for known in tables.properties if (text := reader.text(known)) is not None}
    common = {p.name: str(n) for p in TABLE_PROPERTIES if (n := _number(reader, p, tables.aliases)) is not None}
    reader.end(("store", *tables.properties, *(p.name for p in TABLE_PROPERTIES), *tables.aliases))
    entity = services.stores.table_entity(store, own, name)
    continuous.refuse_loop(planned, store, entity, services)
    columns = changelog_declaration.with_key(planned.columns(), key)
    return PlannedTable(schema, name, planned, TableUnder(store, entity, columns, key, {**own, **common}))


def create_entity(store: Store, statement: CreateEntity, services: Services, work: Work) -> None:
    """A table that no query writes to yet, with the columns that the statement has."""
    kind = services.stores.kind(store.type)
    if not statement.columns:
        raise SqlError(
            sqlstates.INVALID_TABLE_DEFINITION,
            f"an entity of a store of type {store.type} is a table, and needs columns",
            hint='CREATE ENTITY "schema.table" (column type, ..., PRIMARY KEY (column, ...)) IN STORE name.',
        )
    places = tables_of(kind, services).places
    reader = PropertyReader(statement.properties, f"an entity of a store of type {store.type}")
    given = {known: text for known in places if (text := reader.text(known)) is not None}
    reader.end(places)
    key = statement.primary_key
    changelog_declaration.check_primary_key([(c.name, c.type) for c in statement.columns], key)
    columns = changelog_declaration.with_key(stream_declaration.check_columns(statement.columns), key)
    shape, client = table_shape(columns, key), _client(store, services)
    take_turn(store, statement.name, services, work)
    if services.stores.client(store).entity_exists(statement.name):
        raise SqlError(sqlstates.DUPLICATE_OBJECT, f'entity "{statement.name}" already exists in store "{store.name}"')
    client.check_table(statement.name, shape, given)
    work.effect(
        f'entity "{statement.name}" in store "{store.name}"',
        lambda: client.create_table(statement.name, shape, given),
        lambda: services.stores.client(store).drop_entity(statement.name, {}),
    )


def _keyed(
    statement: CreateTableAs, kept: Properties, context: SessionContext, services: Services
) -> tuple[PlannedQuery, tuple[str, ...]]:
    """Planned anew, as a changelog is: it begins with the earliest records, and its state may be forgotten."""
    millis = retention.read(PropertyReader(kept, "a table"), kept)
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.EARLIEST)
    key = changelog_sinks.checked_key(planned, "a table")
    planned = replace(planned, plan=with_view_properties(planned.plan, millis))
    changelog_declaration.check_primary_key([(o.name, o.type) for o in planned.plan.outputs], key)
    return planned, key


def tables_of(kind: StoreKind[Any], services: Services) -> Tables[Any]:
    """0A000 for a kind of stores that has no tables to write to."""
    if kind.tables is not None:
        return kind.tables
    others = " or ".join(each.name for each in services.stores.kinds() if each.tables is not None)
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"writing a table to a store of type {kind.name} is not supported",
        hint=(f"Name a store of type {others} with the property 'store'; " if others else "")
        + "CREATE STREAM ... AS and CREATE CHANGELOG ... AS write records.",
    )


def _client(store: Store, services: Services) -> TableClient:
    return tables_of(services.stores.kind(store.type), services).client(services.stores.client(store))


def _number(reader: PropertyReader, known: TableProperty, aliases: Mapping[str, str]) -> int | None:
    spelled = [known.name, *(alias for alias, name in aliases.items() if name == known.name)]
    given = [key for key in spelled if reader.has(key)]
    if not given:
        return None
    if len(given) > 1:
        raise reader.error(given[1], f'property "{given[0]}" and property "{given[1]}" are the same')
    number = reader.count(given[0])
    if number is not None and not known.least <= number <= known.most:
        raise reader.error(given[0], f'property "{given[0]}" must be a whole number from {known.least} to {known.most}')
    return number
