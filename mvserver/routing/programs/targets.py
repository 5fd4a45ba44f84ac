"""The topics that a program writes: their formats, and the relation that stands for them in the first dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from catalog.acl import Privilege
from catalog.model import Relation, Schema, Store
from mvserver import limits, sqlstates
from mvserver.compiler.plans import Aggregation, Output
from mvserver.lenses.problems import Place, problem, unsupported
from mvserver.lenses.program import Insert, RowKind
from mvserver.lenses.rows import KEY, VALUE, Rows
from mvserver.lenses.settings import ProgramSettings
from mvserver.lenses.translate import Translated
from mvserver.record_keys import field_of_key
from mvserver.routing import privileges, registered_columns, sinks, stream_declaration, stream_entity
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.programs import declarations, schemas
from mvserver.routing.programs.declarations import Columns, Declaration
from mvserver.routing.programs.schemas import SchemaField, TopicSchema
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Value
from mvserver.sql.types import INTEGER_KINDS, Kind, parse_type
from spark_sinks.decode.avro_format import AVRO

_PRIMITIVES = {"INT": "INTEGER", "LONG": "BIGINT", "STRING": "VARCHAR", "BYTES": "VARBINARY"}
_WIDER = {"LONG": INTEGER_KINDS - {Kind.BIGINT}, "STRING": INTEGER_KINDS}
_STRUCTURED = {"JSON": "json", "AVRO": "avro", "CSV": "csv", "PROTOBUF": "protobuf", "XML": "xml"}
_WRITTEN = tuple(_STRUCTURED.values())  # that a target takes over from its source


@dataclass(frozen=True)
class Target:
    """``made`` is None where the relation is there already."""

    topic: str
    relation: Relation
    made: Declaration | None


def target(
    insert: Insert,
    rows: Rows,
    planned: PlannedQuery,
    settings: ProgramSettings,
    place: tuple[Schema, Store],
    other_name: str,
    context: SessionContext,
    services: Services,
) -> Target:
    """``other_name`` is of the relation where the topic's own is taken."""
    store = place[1]
    privileges.require(store, Privilege.INSERT, context, services)
    sinks.check_sink_store(store, services, keyed=rows.kind is RowKind.TABLE, in_keys=True)
    outputs = {output.name: output for output in planned.plan.outputs}
    formats = (_key_format(insert, rows, outputs, planned), _value_format(insert, rows, outputs, planned))
    registered_columns.require_registry(store, formats)
    sinks.check_written_format(formats[1], services.stores.kind(store.type))
    of_value = [(name, outputs[name].type) for name in rows.value_columns]
    stream_declaration.check_written_columns(formats[1], of_value, None)
    keys = [(name, SchemaField(field_of_key(name), str(outputs[name].type))) for name in rows.key_columns]
    values = [(name, SchemaField(name, str(outputs[name].type))) for name in rows.value_columns]
    if rows.kind is RowKind.TABLE and not keys:
        raise problem(insert.place, sqlstates.INVALID_TABLE_DEFINITION, "nothing is known of the key of the TABLE")
    records = Records(insert.target, rows.kind, (keys, values), formats)
    return target_of(records, insert.place, planned, settings, place, other_name, context, services)


def conversions(insert: Insert, translated: Translated, planned: PlannedQuery) -> Mapping[str, str]:
    """The types that a whole key or value is converted to where STORE names a wider format. The key of a TABLE that is
    no group is not: its rows are told apart by it."""
    outputs = {output.name: output for output in planned.plan.outputs}
    rows = translated.rows
    found: dict[str, str] = {}
    for column, facet, given in ((KEY, rows.key, insert.key_format), (VALUE, rows.value, insert.value_format)):
        if given is None or facet is None or not facet.primitive:
            continue
        stays = column == KEY and rows.kind is RowKind.TABLE and not translated.aggregated
        if outputs[column].type.kind in _WIDER.get(given, ()) and not stays:
            found[column] = _PRIMITIVES[given]
    return found


def objects(translated: Translated, planned: PlannedQuery) -> Mapping[str, tuple[str, ...]]:
    """The fields of a whole key or value that is an object: they are its fields then. No group is one."""
    whole = {KEY: translated.rows.key, VALUE: translated.rows.value}
    return {
        output.name: tuple(name for name, _ in output.type.fields)
        for output in planned.plan.outputs
        if output.type.kind is Kind.STRUCT
        and (facet := whole.get(output.name)) is not None
        and facet.primitive
        and not (output.name == KEY and translated.aggregated)
    }


@dataclass(frozen=True)
class Records:
    """What is written to a topic: columns and formats are those of the key and of the value."""

    topic: str
    kind: RowKind
    columns: tuple[Columns, Columns]
    formats: tuple[str | None, str]


def target_of(
    records: Records,
    at: Place,
    planned: PlannedQuery,
    settings: ProgramSettings,
    place: tuple[Schema, Store],
    other_name: str,
    context: SessionContext,
    services: Services,
) -> Target:
    """The topic with a relation for it, if it can have these records."""
    (schema, store), topic, kind = place, records.topic, records.kind
    exists = services.stores.client(store).entity_exists(topic)
    if not exists and not settings.creates(topic):
        raise problem(
            at,
            sqlstates.UNDEFINED_OBJECT,
            f'topic "{topic}" does not exist',
            "SET defaults.topic.autocreate = true makes missing targets.",
        )
    known = schemas.of_topic(store, topic, kind, context, services) if exists else None
    if known is not None:
        _check_fits(at, topic, known, records.formats, records.columns)
    properties = _topic_properties(topic, exists, kind, planned, settings, store, services)
    for name in (topic, other_name) if _is_name(topic) else (other_name,):
        found = services.catalog.relations.find(schema.id, name)
        made = declarations.target(
            name, topic, kind, records.columns, records.formats, properties, place, context, services
        )
        if found is None:
            made = _named(made, settings.of_topic(topic).names, records.formats)
            services.schema_registries.check_written(store, made.relation)
            return Target(topic, made.relation, made)
        if is_same(found, made.relation):
            privileges.require_write(found, store, None, context, services)
            return Target(topic, found, None)
    raise problem(
        at,
        sqlstates.DUPLICATE_TABLE,
        f'relations "{topic}" and "{other_name}" already exist, and stand for other records',
        "Drop one of them, or give the processor another name.",
    )


def _named(made: Declaration, names: Mapping[str, str], formats: tuple[str | None, str]) -> Declaration:
    """With the names of the records of Avro that it has."""
    of_avro = {part for part, format_ in zip(("key", "value"), formats, strict=True) if format_ == AVRO.name}
    kept = [(key, name) for key, name in names.items() if key.partition(".")[0] in of_avro]
    return replace(made, relation=replace(made.relation, properties=(*made.relation.properties, *kept)))


def _is_name(topic: str) -> bool:
    return len(topic.encode()) <= limits.IDENTIFIER_BYTES_MAX


def is_same(found: Relation, wanted: Relation) -> bool:
    """Whether the relation that is there declares the topic as the program writes it."""
    keys = ("value.format", "key.format", "value.columns.exclude", "key.columns")
    return (
        (found.kind, found.store_id, found.entity, found.key_columns)
        == (wanted.kind, wanted.store_id, wanted.entity, wanted.key_columns)
        and [(c.name, c.type) for c in found.columns] == [(c.name, c.type) for c in wanted.columns]
        and all(found.property(key) == wanted.property(key) for key in keys)
    )


# --- formats --------------------------------------------------------------------------------------------------------
def _key_format(insert: Insert, rows: Rows, outputs: Mapping[str, Output], planned: PlannedQuery) -> str | None:
    given, place = insert.key_format, insert.place
    if rows.key is None:
        if given is not None:
            raise unsupported(
                place,
                f"STORE KEY AS {given} needs a key that is known",
                "Project it: field AS _key. Else its bytes are kept.",
            )
        return None
    if rows.key.primitive:
        kind = outputs[KEY].type.kind
        if kind not in stream_declaration.PRIMITIVES and (given != "AVRO" or outputs[KEY].type.is_nested):
            hint = f"CAST it: such keys are {stream_declaration.PRIMITIVE_TYPES}."
            raise unsupported(place, f"a key of type {outputs[KEY].type} cannot be written alone", hint)
        return _primitive(given, "KEY", outputs[KEY], place)
    if given in _PRIMITIVES:
        fields = ", ".join(rows.key.fields)
        raise problem(
            place,
            sqlstates.DATATYPE_MISMATCH,
            f"the key has fields ({fields}) and is not {given}",
            "STORE KEY AS JSON, AVRO, CSV, PROTOBUF or XML.",
        )
    return _STRUCTURED[given] if given is not None else _as_in_source(planned, "key.format")


def _value_format(insert: Insert, rows: Rows, outputs: Mapping[str, Output], planned: PlannedQuery) -> str:
    given, place = insert.value_format, insert.place
    if rows.value.primitive:
        kind = outputs[VALUE].type
        if kind.kind not in stream_declaration.PRIMITIVES and (given != "AVRO" or kind.is_nested):
            raise unsupported(
                place,
                f"a value of type {kind} cannot be written alone",
                f"CAST it, or give it a name: AS field. Such values are {stream_declaration.PRIMITIVE_TYPES}.",
            )
        return _primitive(given, "VALUE", outputs[VALUE], place)
    if given in _PRIMITIVES:
        raise problem(
            place,
            sqlstates.DATATYPE_MISMATCH,
            f"the value has fields and is not {given}",
            "Project one value: AS _value.",
        )
    return _STRUCTURED[given] if given is not None else _as_in_source(planned, "value.format")


def _as_in_source(planned: PlannedQuery, property_: str) -> str:
    """The format of the records of the one topic that is read, if it has fields. A group's key is no key of theirs."""
    source = planned.source.property(property_) or "json"
    of_group = property_ == "key.format" and isinstance(planned.plan, Aggregation)
    return source if source in _WRITTEN and not planned.plan.scan.derived and not of_group else "json"


def _primitive(given: str | None, facet: str, output: Output, place: Place) -> str:
    if given is None:
        return "primitive"
    if given == "AVRO":
        return "avro"  # whose only field is the whole of it, by its name
    wanted = _PRIMITIVES.get(given)
    if wanted is None:
        raise unsupported(
            place,
            f"STORE {facet} AS {given} of one value is not supported",
            f"One value is INT, LONG, STRING, BYTES or AVRO. A field has a name: AS _{facet.lower()}.field.",
        )
    if output.type.kind is not parse_type(wanted).kind:
        raise problem(
            place,
            sqlstates.DATATYPE_MISMATCH,
            f"STORE {facet} AS {given} does not fit a {facet.lower()} of type {output.type}",
            f"CAST it to {given}.",
        )
    return "primitive"


def _check_fits(
    place: Place, topic: str, known: TopicSchema, formats: tuple[str | None, str], columns: tuple[Columns, Columns]
) -> None:
    """42804 where the topic is declared with other records than the program writes."""
    differences = []
    if known.value_format != formats[1]:
        differences.append(f"its values are {known.value_format}, and {formats[1]} would be written")
    if known.key is not None and formats[0] is not None and known.key.format != formats[0]:
        differences.append(f"its keys are {known.key.format}, and {formats[0]} would be written")
    there = {column: field.type for column, field in known.value_columns()}
    written = {column: field.type for column, field in columns[1]}
    if formats[0] is not None and known.key is not None:
        there |= {column: field.type for column, field in known.key_columns()}
        written |= {column: field.type for column, field in columns[0]}
    for name in (*there, *(each for each in written if each not in there)):
        one, other = there.get(name), written.get(name)
        if other is None:
            differences.append(f'field "{name}" is not written')
        elif one is None:
            differences.append(f'it has no field "{name}"')
        elif one != other:
            differences.append(f'field "{name}" is {one}, and {other} would be written')
    if differences:
        raise problem(
            place,
            sqlstates.DATATYPE_MISMATCH,
            f'topic "{topic}" has other records: {"; ".join(differences[:5])}',
            "Project, CAST and STORE as the topic has them, or write to another topic.",
        )


# --- what a topic is made with --------------------------------------------------------------------------------------
def _topic_properties(
    topic: str,
    exists: bool,
    kind: RowKind,
    planned: PlannedQuery,
    settings: ProgramSettings,
    store: Store,
    services: Services,
) -> dict[str, str]:
    """Nothing of a topic that is there. A missing one is as the settings say, else as the first source."""
    if exists:
        return {}
    store_kind, wanted = services.stores.kind(store.type), settings.of_topic(topic)
    given: dict[str, Value] = {}
    required = [each for each in store_kind.entity_properties if each.required]
    if required and planned.store.id == store.id:
        given |= stream_entity.shown(planned.store, planned.entity, required, services)
    if wanted.partitions is not None:
        given["topic.partitions"] = wanted.partitions
    if wanted.replication is not None:
        given["topic.replicas"] = wanted.replication
    given |= {f"kafka.topic.{key}": value for key, value in wanted.config.items()}
    properties = {key: str(value) for key, value in given.items()}
    if kind is RowKind.TABLE:
        properties = {**{key: str(value) for key, value in store_kind.changelog_properties.items()}, **properties}
    return properties
