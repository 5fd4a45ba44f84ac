"""The target of CREATE STREAM AS SELECT and INSERT INTO, validated whole before anything exists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from catalog.acl import Privilege
from catalog.model import Relation, Schema, Store
from mvserver import sqlstates
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.plans import Aggregation, Groups
from mvserver.compiler.tables import TABLE
from mvserver.described_schemas import has_field
from mvserver.errors import SqlError
from mvserver.routing import continuous, descriptor_sources, lookup, privileges, stream_declaration, stream_entity
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.stream_declaration import StreamDeclaration
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties
from mvserver.sql.statements.relations import CreateStreamAs, InsertInto
from mvserver.sql.types import INTEGER_KINDS, Kind, SqlType, parse_type
from spark_sinks.store_kind import StoreKind

_INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)


@dataclass(frozen=True)
class PlannedStream:
    """A stream to be made by CREATE STREAM AS SELECT."""

    schema: Schema
    name: str
    query: PlannedQuery
    store: Store
    entity: str
    value_format: str
    declaration: StreamDeclaration


def plan_stream(statement: CreateStreamAs, context: SessionContext, services: Services) -> PlannedStream:
    schema, name = lookup.new_relation(statement.name, context, services)
    services.catalog.relations.check_new(schema.id, name)
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.LATEST, written=True)
    _refuse_aggregation(
        planned, "CREATE CHANGELOG ... AS writes such a result, CREATE MATERIALIZED VIEW ... AS keeps it."
    )
    outputs = [(output.name, output.type) for output in planned.plan.outputs]
    declaration = stream_declaration.read(statement.properties, outputs, services.stores.kinds())
    store = chosen_store(declaration.store, planned, context, services)
    check_sink_store(store, services)
    stream_declaration.check_key_columns(declaration, services.stores.kind(store.type), statement.properties)
    source_format = planned.source.property("value.format") or "json"
    value_format = declaration.value_format or source_format
    kind = services.stores.kind(store.type)
    check_written_format(value_format, kind, described=declaration.value_descriptor is not None)
    declaration = with_descriptor(declaration, value_format, statement.properties, context, services)
    if declaration.value_delimiter is None and value_format == source_format:
        declaration = replace(declaration, value_delimiter=planned.source.property("value.delimiter"))
    of_value = declaration.in_value(outputs)
    stream_declaration.check_written_columns(
        value_format, of_value, declaration.value_delimiter, checked=declaration.value_checked
    )
    stream_declaration.check_value(declaration, value_format, of_value, kind, statement.properties)
    check_names(planned, kind)
    entity = declaration.entity or name.lower()
    continuous.refuse_loop(planned, store, entity, services)
    declaration = from_source(declaration, planned, store, entity, services)
    return PlannedStream(schema, name, planned, store, entity, value_format, declaration)


def with_descriptor(
    declaration: StreamDeclaration,
    value_format: str,
    given: Properties,
    context: SessionContext,
    services: Services,
) -> StreamDeclaration:
    """With the full name of the descriptor by which values are written, if it names one."""
    name = declaration.value_descriptor
    if name is None:
        return declaration
    full = descriptor_sources.checked(name, value_format, descriptor_sources.VALUE, given, context, services)
    return replace(declaration, value_descriptor=full)


def chosen_store(given: str | None, planned: PlannedQuery, context: SessionContext, services: Services) -> Store:
    """The statement's, else the session's, else that of the left-most source. The role may write to it."""
    chosen = given or context.store
    if chosen is None:
        store = planned.store
        privileges.require(store, Privilege.USAGE, context, services)
    else:
        store = lookup.store(chosen, Privilege.USAGE, context, services)
    privileges.require(store, Privilege.INSERT, context, services)
    return store


def plan_insert(sink: Relation, statement: InsertInto, context: SessionContext, services: Services) -> PlannedQuery:
    """Into a stream, or a table without a key, that is there; its store and the right to write to it are checked
    already."""
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.LATEST, written=True)
    check_insert(sink, planned, services)
    store, entity = lookup.store_of(sink, services)
    continuous.refuse_loop(planned, store, entity, services)
    return planned


def check_insert(sink: Relation, planned: PlannedQuery, services: Services) -> None:
    """Whether the rows of a query fit a stream, or a table without a key."""
    _refuse_aggregation(planned, f"This {sink.kind} takes rows that are only added.")
    check_columns(sink, planned)
    check_names(planned, services.stores.kind(lookup.store_of(sink, services)[0].type))


def insert_target(statement: InsertInto, context: SessionContext, services: Services) -> Relation:
    """The relation that INSERT INTO writes to: one that a query may write to, in a format that it writes."""
    sink = lookup.relation(statement.name, context, services)
    if sink.kind in (lookup.VIEW, lookup.PLAIN_VIEW):
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f'cannot insert into {sink.kind} "{sink.name}"',
            hint="The rows of a materialized view come from its own query; name a stream, a changelog or a table.",
            position=statement.name.position,
        )
    store, _ = lookup.store_of(sink, services)
    privileges.require_write(sink, store, statement.name.position, context, services)
    if sink.kind == TABLE:
        return sink
    descriptor_sources.check_written(sink, store, services)
    check_sink_store(store, services, keyed=sink.kind == lookup.CHANGELOG)
    value_format = sink.property("value.format") or "json"
    described, kind = sink.property(descriptor_sources.VALUE) is not None, services.stores.kind(store.type)
    check_written_format(value_format, kind, described=described and (kind.has_keys or not sink.key_columns))
    excluded = sink.columns_of("value.columns.exclude")
    of_value = [(column.name, parse_type(column.type)) for column in sink.columns if column.name not in excluded]
    stream_declaration.check_written_columns(value_format, of_value, sink.property("value.delimiter"))
    return sink


def at_least_once(
    planned: PlannedQuery, relation: Relation, sink: Store, context: SessionContext, services: Services
) -> None:
    """Said at creation, since it cannot be seen later."""
    if tell_repeated(relation, sink, context, services):
        return
    kind = services.stores.kind(planned.store.type)
    if not kind.exactly_once:
        context.notice(
            "records are written at least once",
            detail=f"The source is in a store of type {kind.name}: after a failure, records may be written again.",
        )


def tell_repeated(relation: Relation, sink: Store, context: SessionContext, services: Services) -> bool:
    """Whether it is the store that is written to, where a record may be there twice."""
    written = services.stores.kind(sink.type)
    if written.sink_exactly_once:
        return False
    identity = written.written_identity
    if identity is not None and not has_field(relation, identity, services.catalog):
        context.notice(
            f'records of {relation.kind} "{relation.name}" do not tell which are written again',
            detail=f'The descriptor has no field "{identity}".',
            hint="With such a field of type string each record has an identity.",
        )
    context.notice(
        "records are written at least once",
        detail=f"They go to a store of type {written.name}: after a failure, records may be written again.",
    )
    return True


def _refuse_aggregation(planned: PlannedQuery, hint: str) -> None:
    grouped = isinstance(planned.plan, Aggregation) or isinstance(planned.plan.scan.derived, Groups)
    if over_changelog(planned.plan) and not grouped:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            "the result of a query over a changelog is a changelog, not a stream",
            detail="Its rows are replaced and deleted as records come in; a stream's are only added.",
            hint=hint,
        )
    if grouped:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            "the result of GROUP BY or of an aggregate is a changelog, not a stream",
            detail="Its rows are replaced as records come in; a stream's are only added.",
            hint=hint,
        )


def check_names(planned: PlannedQuery, kind: StoreKind[Any]) -> None:
    for output in planned.plan.outputs:
        if output.name in (kind.written_identity, kind.deletion_field):
            raise SqlError(
                sqlstates.RESERVED_NAME,
                f'column "{output.name}" cannot be written to a store of type {kind.name}',
                detail="Records that are written there have a field of this name, which is the server's.",
                hint="Give the column another name with AS.",
            )


def check_written_format(value_format: str, kind: StoreKind[Any], *, described: bool = False) -> None:
    """``described``: the relation names the descriptor of its records."""
    formats = kind.described_formats if described else kind.written_formats
    stream_declaration.check_format(value_format, formats, f"{kind.name} that a query writes to")


def check_sink_store(store: Store, services: Services, *, keyed: bool = False, in_keys: bool = False) -> None:
    """``keyed``: a changelog is written. Its deletions are records with a key alone, or without ``in_keys`` also values
    that say so."""

    def takes(kind: StoreKind[Any]) -> bool:
        deletes = kind.has_keys or (kind.deletion_field is not None and not in_keys)
        return bool(kind.written_formats) and (deletes or not keyed)

    kind, kinds = services.stores.kind(store.type), services.stores.kinds()
    if takes(kind):
        return
    sinks = " or ".join(each.name for each in kinds if takes(each))
    what = "a changelog" if kind.written_formats else "a query's result"
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"writing {what} to a store of type {store.type} is not supported",
        hint=f"Name a store of type {sinks} with the property 'store', or keep the result in a materialized view.",
    )


def from_source(
    declaration: StreamDeclaration, planned: PlannedQuery, store: Store, entity: str, services: Services
) -> StreamDeclaration:
    """What is missing to make the entity comes from the source, where both are of one kind."""
    kind = services.stores.kind(store.type)
    missing = stream_entity.missing(declaration, kind)
    exists = services.stores.client(store).entity_exists(entity) if missing else True
    if not exists and planned.store.type == store.type:
        found = stream_entity.shown(planned.store, planned.entity, missing, services)
        declaration = declaration.with_defaults(found, kind)
    if declaration.timestamp_format is None:
        declaration = replace(declaration, timestamp_format=planned.source.property("timestamp.format"))
    return declaration


def check_columns(sink: Relation, planned: PlannedQuery) -> None:
    """By position, as in PostgreSQL; the names must agree too, since a record carries them."""
    outputs = planned.plan.outputs
    if len(outputs) > len(sink.columns):
        raise SqlError(sqlstates.SYNTAX_ERROR, "INSERT has more expressions than target columns")
    if len(outputs) < len(sink.columns):
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            "INSERT has more target columns than expressions",
            detail=f'Column "{sink.columns[len(outputs)].name}" gets no value.',
        )
    for output, column in zip(outputs, sink.columns, strict=True):
        if output.name != column.name:
            raise SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f'column "{output.name}" of the query does not fit column "{column.name}" of {sink.kind} "{sink.name}"',
                hint=f'Name it with AS "{column.name}"; the order of the columns is the {sink.kind}\'s.',
            )
        if not _fits(output.type, parse_type(column.type)):
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'column "{column.name}" is of type {column.type} but expression is of type {output.type}',
                hint="You will need to rewrite or cast the expression.",
            )


def _fits(given: SqlType, wanted: SqlType) -> bool:
    """Whether every value of ``given``, written as JSON, is read back as a value of ``wanted``."""
    if given == wanted:
        return True
    if given.kind in INTEGER_KINDS and wanted.kind in INTEGER_KINDS:
        return _INTEGERS.index(given.kind) <= _INTEGERS.index(wanted.kind)
    if given.kind is Kind.VARCHAR and wanted.kind is Kind.VARCHAR:
        return wanted.length is None or (given.length is not None and given.length <= wanted.length)
    if given.kind is Kind.DECIMAL and wanted.kind is Kind.DECIMAL:
        whole = (given.precision or 0) - (given.scale or 0) <= (wanted.precision or 0) - (wanted.scale or 0)
        return whole and (given.scale or 0) <= (wanted.scale or 0)
    return given.kind is Kind.FLOAT and wanted.kind is Kind.DOUBLE
