"""What is known of a topic's records: by a stream or changelog over it, or by the store's schema registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.acl import Privilege
from catalog.dependencies import REGISTRY_OF_STORE
from catalog.model import Relation, Store
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.lenses.program import RowKind
from mvserver.lenses.rows import KEY, PRIMITIVE, VALUE, Facet, Rows, column
from mvserver.record_keys import field_of_key
from mvserver.routing import lookup, privileges, registered_columns
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.sql.types import Kind, parse_type
from spark_sinks.decode.avro_format import AVRO
from spark_sinks.decode.formats import FORMATS

_KEPT = ("timestamp.format", "value.delimiter", "value.descriptor.name", "value.schema.validation", "partition.columns")
_HANDLING = "source.deserialization.error.handling"
PROCESSOR = "processor"  # the property of relations and queries that belong to one


@dataclass(frozen=True)
class SchemaField:
    name: str
    type: str
    not_null: bool = False


@dataclass(frozen=True)
class TopicKey:
    format: str
    fields: tuple[SchemaField, ...]

    @property
    def primitive(self) -> bool:
        return _is_whole(self.format, self.fields, KEY)


@dataclass(frozen=True)
class TopicSchema:
    """``key`` is None where nothing is said of it; ``timestamp`` the field of the value that is the event time."""

    value_format: str
    value: tuple[SchemaField, ...]
    key: TopicKey | None
    timestamp: str | None = None
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def primitive(self) -> bool:
        return _is_whole(self.value_format, self.value, VALUE)

    def rows(self, kind: RowKind) -> Rows:
        key = None
        if self.key is not None:
            key = PRIMITIVE if self.key.primitive else Facet(tuple(field.name for field in self.key.fields))
        value = PRIMITIVE if self.primitive else Facet(tuple(field.name for field in self.value))
        not_null = [name for name, field in self.value_columns() if field.not_null]
        not_null += [name for name, _ in self.key_columns()] if kind is RowKind.TABLE else []
        return Rows(kind, key, value, records=True, not_null=frozenset(not_null))

    def key_columns(self) -> Sequence[tuple[str, SchemaField]]:
        if self.key is None:
            return ()
        return [(column(KEY, None if self.key.primitive else field.name), field) for field in self.key.fields]

    def value_columns(self) -> Sequence[tuple[str, SchemaField]]:
        return [(column(VALUE, None if self.primitive else field.name), field) for field in self.value]


def _is_whole(format_: str, fields: Sequence[SchemaField], facet: str) -> bool:
    """Whether a facet is one value: of a format that has nothing else, or of Avro without a record around it."""
    return format_ == "primitive" or (format_ == AVRO.name and [field.name for field in fields] == [facet])


def of_topic(
    store: Store, topic: str, kind: RowKind | None, context: SessionContext, services: Services
) -> TopicSchema | None:
    """None where nothing is known of it. 42501 where the role may read none of its declarations. ``kind`` says which of
    several declarations is asked first."""
    declared = [
        each
        for each in services.catalog.relations.of_store(store.id)
        if each.entity == topic and each.kind in (lookup.STREAM, lookup.CHANGELOG) and each.property(PROCESSOR) is None
    ]
    own = privileges.authority(context, services)
    readable = [each for each in declared if own.holds(each, Privilege.SELECT)]
    if declared and not readable:
        privileges.require(declared[0], Privilege.SELECT, context, services)
    if not readable:
        return _registered(store, topic, services)
    wanted = lookup.CHANGELOG if kind is RowKind.TABLE else lookup.STREAM
    ordered = sorted(readable, key=lambda each: (of_relation(each).key is None, each.kind != wanted, each.created_at))
    privileges.require_all_rows(ordered[0], context.role, services)
    return of_relation(ordered[0])


def of_relation(relation: Relation) -> TopicSchema:
    excluded = relation.columns_of("value.columns.exclude")
    spelled = {each.name: each.spelling or each.name for each in relation.columns}
    value = tuple(
        SchemaField(spelled[each.name], each.type, each.not_null)
        for each in relation.columns
        if each.name not in excluded
    )
    timestamp = relation.property("timestamp")
    kept = [(key, value_) for key in (*_KEPT, _HANDLING) if (value_ := relation.property(key)) is not None]
    return TopicSchema(
        relation.property("value.format") or "json",
        value,
        _key_of(relation, spelled),
        None if timestamp is None or timestamp in excluded else spelled.get(timestamp, timestamp),
        tuple(kept),
    )


def _key_of(relation: Relation, spelled: dict[str, str]) -> TopicKey | None:
    format_ = relation.property("key.format")
    if format_ is None or relation.property("key.descriptor.name") is not None:
        return None
    names = relation.key_columns or relation.columns_of("key.columns")
    if names:
        types = {each.name: each.type for each in relation.columns}
        return TopicKey(format_, tuple(SchemaField(field_of_key(spelled[name]), types[name]) for name in names))
    given = relation.property("key.type")
    if given is None:
        return None
    type_ = parse_type(given)
    if type_.kind is Kind.STRUCT:
        return TopicKey(format_, tuple(SchemaField(name, str(inner)) for name, inner in type_.fields))
    return TopicKey(format_, (SchemaField(KEY, str(type_)),))


def _registered(store: Store, topic: str, services: Services) -> TopicSchema | None:
    """By the newest schemas of the topic's subjects."""
    if store.property(REGISTRY_OF_STORE) is None or not services.stores.kind(store.type).takes_schema_registry:
        return None
    for each in FORMATS:
        if each.registered is None or each.name not in services.stores.kind(store.type).formats:
            continue
        try:
            columns = registered_columns.of_entity(store, topic, each.name, services)
        except SqlError as error:
            if error.sqlstate == sqlstates.UNDEFINED_OBJECT:
                return None
            if error.sqlstate == sqlstates.DATATYPE_MISMATCH:
                continue  # of another kind
            raise
        fields = tuple(SchemaField(c.spelling or c.name, c.type, c.not_null) for c in columns)
        found = registered_columns.key_of_entity(store, topic, None, services)
        key = None
        if found is not None:
            key = TopicKey(found[0], tuple(SchemaField(c.spelling or c.name, c.type) for c in found[1]))
        return TopicSchema(each.name, fields, key)
    return None
