"""DESCRIBE <statement>: what it would make and read, as JSON; it is validated and not executed."""

from __future__ import annotations

from typing import Any

from mvserver import sqlstates
from mvserver.compiler.tables import TABLE
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import changelog_sinks, lookup, sinks, table_sinks
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.handlers.relations import create_changelog, create_stream, insert_into
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, json_text, result
from mvserver.routing.views import plan_view
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import ObjectName
from mvserver.sql.statements.queries import DescribeStatement
from mvserver.sql.statements.relations import (
    CreateChangelog,
    CreateChangelogAs,
    CreateMaterializedView,
    CreateStream,
    CreateStreamAs,
    CreateTableAs,
    InsertInto,
)
from mvserver.types.oids import JSON, TEXT

FIELDS = fields(("type", TEXT), ("info", JSON))

Info = dict[str, Any]


def run(statement: DescribeStatement, context: SessionContext, services: Services, work: Work) -> Result:
    inner = statement.statement
    with services.catalog.rehearsal():
        if isinstance(inner, CreateStream):
            type_, info = "CREATE_STREAM", _create_stream(inner, context, services)
        elif isinstance(inner, CreateStreamAs):
            type_, info = "CREATE_STREAM_AS", _create_stream_as(inner, context, services)
        elif isinstance(inner, CreateChangelog):
            type_, info = "CREATE_CHANGELOG", _create_changelog(inner, context, services)
        elif isinstance(inner, CreateChangelogAs):
            type_, info = "CREATE_CHANGELOG_AS", _create_changelog_as(inner, context, services)
        elif isinstance(inner, CreateTableAs):
            type_, info = "CREATE_TABLE_AS", _create_table_as(inner, context, services)
        elif isinstance(inner, InsertInto):
            type_, info = "INSERT_INTO", _insert_into(inner, context, services)
        elif isinstance(inner, CreateMaterializedView):
            type_, info = "CREATE_MATERIALIZED_VIEW_AS", _create_view(inner, context, services)
        else:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "DESCRIBE of this statement is not supported",
                hint="It describes CREATE of a relation, with columns or AS SELECT, and INSERT INTO.",
            )
    return result("DESCRIBE", FIELDS, [(type_, json_text(info))])


def _create_stream(inner: CreateStream, context: SessionContext, services: Services) -> Info:
    create_stream.run(inner, context, services, Work(rehearsal=True))
    store = inner.properties.get("store", context.store)
    return {"ddl": _relation(inner.name, lookup.STREAM, str(store), context, services), "statements": [inner.text]}


def _create_stream_as(inner: CreateStreamAs, context: SessionContext, services: Services) -> Info:
    planned = sinks.plan_stream(inner, context, services)
    sink = _relation(inner.name, lookup.STREAM, planned.store.name, context, services)
    return {"sink": sink, "sources": _sources(planned.query, services), "statements": [inner.text]}


def _create_changelog(inner: CreateChangelog, context: SessionContext, services: Services) -> Info:
    create_changelog.run(inner, context, services, Work(rehearsal=True))
    store = inner.properties.get("store", context.store)
    described = _relation(inner.name, lookup.CHANGELOG, str(store), context, services)
    return {"ddl": described, "statements": [inner.text]}


def _create_changelog_as(inner: CreateChangelogAs, context: SessionContext, services: Services) -> Info:
    planned = changelog_sinks.plan_changelog(inner, context, services)
    sink = _relation(inner.name, lookup.CHANGELOG, planned.store.name, context, services)
    return {"sink": sink, "sources": _sources(planned.query, services), "statements": [inner.text]}


def _create_table_as(inner: CreateTableAs, context: SessionContext, services: Services) -> Info:
    planned = table_sinks.plan_table(inner, context, services)
    sink = _relation(inner.name, TABLE, planned.under.store.name, context, services)
    return {"sink": sink, "sources": _sources(planned.query, services), "statements": [inner.text]}


def _insert_into(inner: InsertInto, context: SessionContext, services: Services) -> Info:
    sink, planned = insert_into.plan(inner, context, services)
    store, _ = lookup.store_of(sink, services)
    described = _fqn(services.catalog.names.path(sink), sink.kind, store.name)
    return {"sink": described, "sources": _sources(planned, services), "statements": [inner.text]}


def _create_view(inner: CreateMaterializedView, context: SessionContext, services: Services) -> Info:
    planned = plan_view(inner, context, services)
    sink = _relation(inner.name, lookup.VIEW, None, context, services)
    return {"sink": sink, "sources": _sources(planned.query, services), "statements": [inner.text]}


def _relation(name: ObjectName, kind: str, store: str | None, context: SessionContext, services: Services) -> Info:
    place = name.parts[:-1] if len(name.parts) > 1 else (context.schema,)
    database, schema = services.catalog.names.schema(place, context.database, name.position)
    return _fqn((database.name, schema.name, name.parts[-1]), kind, store)


def _sources(planned: PlannedQuery, services: Services) -> list[Info]:
    """In the order of FROM; a relation that is read twice stands there once."""
    found = {each.relation.id: each for each in planned.inputs}.values()
    return [_fqn(services.catalog.names.path(each.relation), each.relation.kind, each.store.name) for each in found]


def _fqn(path: tuple[str, str, str], kind: str, store: str | None) -> Info:
    return {
        "fqn": ".".join(path),
        "type": kind.replace(" ", "_"),
        "db_name": path[0],
        "schema_name": path[1],
        "name": path[2],
        "store_name": store,
    }
