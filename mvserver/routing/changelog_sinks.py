"""The target of CREATE CHANGELOG AS SELECT and INSERT INTO a changelog, validated whole before anything exists."""

from __future__ import annotations

from dataclasses import dataclass, replace

from catalog.model import Column, Relation, Schema, Store
from mvserver import sqlstates
from mvserver.compiler.changelog_joins import nullable_key
from mvserver.compiler.changelogs import over_changelog, written_key
from mvserver.compiler.plans import Aggregation
from mvserver.compiler.tables import TABLE
from mvserver.compiler.view_properties import VIEW_PROPERTIES, with_view_properties
from mvserver.errors import SqlError
from mvserver.routing import (
    changelog_declaration,
    continuous,
    descriptor_sources,
    lookup,
    retention,
    sinks,
    stream_declaration,
)
from mvserver.routing.changelog_declaration import ChangelogDeclaration, RecordKey
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.routing.stream_declaration import StreamDeclaration
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties
from mvserver.sql.statements.relations import CreateChangelogAs, InsertInto


@dataclass(frozen=True)
class PlannedChangelog:
    """A changelog to be made by CREATE CHANGELOG AS SELECT; ``topic`` is what its topic is made with."""

    schema: Schema
    name: str
    query: PlannedQuery
    store: Store
    entity: str
    declaration: ChangelogDeclaration
    topic: StreamDeclaration
    value_format: str
    primary_key: tuple[str, ...]
    record_key: RecordKey | None

    def columns(self) -> tuple[Column, ...]:
        return changelog_declaration.with_key(self.query.columns(), self.primary_key)

    def properties(self) -> tuple[tuple[str, str], ...]:
        return changelog_declaration.kept(self.topic, self.value_format, self.record_key)


def plan_changelog(statement: CreateChangelogAs, context: SessionContext, services: Services) -> PlannedChangelog:
    schema, name = lookup.new_relation(statement.name, context, services)
    services.catalog.relations.check_new(schema.id, name)
    kept, properties = divided(statement.properties)
    millis = retention.read(PropertyReader(kept, "a changelog"), kept)
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.EARLIEST)
    key = checked_key(planned, "a changelog")
    planned = replace(planned, plan=with_view_properties(planned.plan, millis))
    outputs = [(output.name, output.type) for output in planned.plan.outputs]
    changelog_declaration.check_primary_key(outputs, key)
    declaration = changelog_declaration.read(properties, outputs, services.stores.kinds())
    store = sinks.chosen_store(declaration.stream.store, planned, context, services)
    sinks.check_sink_store(store, services, keyed=True)
    value_format = declaration.stream.value_format or planned.source.property("value.format") or "json"
    kind = services.stores.kind(store.type)
    described = declaration.stream.value_descriptor is not None and kind.has_keys  # else a deletion could not be told
    sinks.check_written_format(value_format, kind, described=described)
    sinks.check_names(planned, kind)
    record_key = changelog_declaration.record_key(declaration, outputs, key, kind)
    of_value = [each for each in outputs if record_key is None or each[0] not in record_key.excluded]
    stream_declaration.check_written_columns(
        value_format, of_value, declaration.stream.value_delimiter, checked=declaration.stream.value_checked
    )
    stream = sinks.with_descriptor(declaration.stream, value_format, properties, context, services)
    declaration = replace(declaration, stream=stream)
    if record_key is not None and record_key.descriptor is not None:
        descriptor = descriptor_sources.checked(
            record_key.descriptor, record_key.format, descriptor_sources.KEY, properties, context, services
        )
        record_key = replace(record_key, descriptor=descriptor)
    entity = declaration.stream.entity or name.lower()
    continuous.refuse_loop(planned, store, entity, services)
    topic = sinks.from_source(declaration.compacted(kind), planned, store, entity, services)
    return PlannedChangelog(schema, name, planned, store, entity, declaration, topic, value_format, key, record_key)


def divided(properties: Properties) -> tuple[Properties, Properties]:
    """Those of the query, and those of what it writes to."""
    own = tuple(item for item in properties.items_ if item.key in VIEW_PROPERTIES)
    return Properties(own), Properties(tuple(item for item in properties.items_ if item not in own))


def plan_insert(sink: Relation, statement: InsertInto, context: SessionContext, services: Services) -> PlannedQuery:
    """Into a changelog or a table with a key; its store and the right to write to it are checked already."""
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.EARLIEST)
    check_insert(sink, planned, services)
    store, entity = lookup.store_of(sink, services)
    continuous.refuse_loop(planned, store, entity, services)
    return planned


def check_insert(sink: Relation, planned: PlannedQuery, services: Services) -> None:
    """Whether the rows of a query fit a changelog, or a table with a key."""
    key = checked_key(planned, f"a {sink.kind} with a key" if sink.kind == TABLE else f"a {sink.kind}")
    sinks.check_columns(sink, planned)
    sinks.check_names(planned, services.stores.kind(lookup.store_of(sink, services)[0].type))
    if set(key) != set(sink.key_columns):
        raise SqlError(
            sqlstates.INVALID_TABLE_DEFINITION,
            f'the key of the query differs from the primary key of {sink.kind} "{sink.name}"',
            detail=f"The query's rows are told apart by ({', '.join(key)}), those of the {sink.kind} by "
            f"({', '.join(sink.key_columns)}).",
            hint="GROUP BY the primary key.",
        )


def checked_key(planned: PlannedQuery, what: str) -> tuple[str, ...]:
    """The columns by which the result's rows are told apart; ``what`` is what they are written to."""
    plan = planned.plan
    if not isinstance(plan, Aggregation) and not over_changelog(plan):
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            "the result of the query is a stream, not a changelog",
            detail="Its rows are only added, and nothing tells which of them replaces another.",
            hint="CREATE STREAM ... AS writes such a result; with GROUP BY it is a changelog.",
        )
    if not isinstance(plan, Aggregation) and nullable_key(plan.scan):
        raise _unsupported(f"an outer join whose rows may lack a part of their key cannot be written to {what}")
    if isinstance(plan, Aggregation) and (plan.grouping_sets or not plan.keys):
        raise _unsupported("an aggregate without GROUP BY columns, or with GROUPING SETS, has no primary key")
    key = written_key(plan)
    if not key:
        what = "GROUP BY" if isinstance(plan, Aggregation) else "the changelog's primary key"
        raise SqlError(
            sqlstates.INVALID_TABLE_DEFINITION,
            f"the SELECT list leaves out a column of {what}",
            detail="The primary key of the result is made of them.",
            hint="Select all of them.",
        )
    return key


def _unsupported(message: str) -> SqlError:
    return SqlError(sqlstates.FEATURE_NOT_SUPPORTED, message, hint="Keep the result in a materialized view.")
