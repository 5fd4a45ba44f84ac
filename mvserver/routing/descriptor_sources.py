"""Descriptor sources: a file becomes one, and a relation's property names a schema of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from catalog.acl import Privilege
from catalog.dependencies import DESCRIPTORS
from catalog.model import DescriptorSource, Relation, Store
from mvserver import sqlstates
from mvserver.compiler.coercion import common_type
from mvserver.compiler.plans import RecordSchema
from mvserver.described_schemas import CONTENT, MESSAGES, described, has_field, messages, schema_named, source_named
from mvserver.errors import SqlError
from mvserver.routing import privileges
from mvserver.routing.config_folder import read_file
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties
from mvserver.sql.types import SqlType, parse_type
from spark_sinks.base import DeclaredColumn
from spark_sinks.decode import columns_of_descriptor, format_of
from spark_sinks.encode.described import required_fields
from spark_sinks.schema_registry import limits
from spark_sinks.schema_registry.descriptors import descriptors_of

VALUE, KEY = DESCRIPTORS
_FILE = "file"


def read(given: Properties, folder: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The kind of schemas, and the properties that are kept."""
    reader = PropertyReader(given, "a descriptor source")
    name = reader.text(_FILE)
    reader.end((_FILE,))
    if name is None:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, 'a descriptor source needs the property "file"')
    name = name.removeprefix("@")
    found = descriptors_of(name, read_file(folder, name, _FILE, limits.SCHEMA_BYTES_MAX))
    return found.kind, ((_FILE, name), (MESSAGES, " ".join(found.messages)), (CONTENT, found.content))


def refuse_dropping(source: DescriptorSource, using: Sequence[Relation]) -> None:
    """2BP01 where relations have schemas of it."""
    if using:
        raise SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f"cannot drop descriptor source {source.name} because other objects depend on it",
            detail="\n".join(f"{each.kind} {each.name} depends on descriptor source {source.name}" for each in using),
            hint="Drop these first.",
        )


def checked(
    name: str, format_: str | None, key: str, given: Properties, context: SessionContext, services: Services
) -> str:
    """The full name, ``source.message``. 42704 where there is no such schema, 42804 where the format is another."""
    position = given.position(key)
    source = source_named(name.partition(".")[0], services.catalog, position)
    privileges.require(source, Privilege.USAGE, context, services, position)
    if format_ is None or format_of(format_).registered != source.type:
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f'descriptor source "{source.name}" has schemas of kind {source.type}',
            hint=f"Say '{key.partition('.')[0]}.format' = {source.type}.",
            position=position,
        )
    known = messages(source)
    _, _, wanted = name.partition(".")
    if not wanted and len(known) == 1:
        wanted = known[0]
    if wanted not in known:
        raise SqlError(
            sqlstates.UNDEFINED_OBJECT,
            f'descriptor "{wanted}" does not exist in descriptor source "{source.name}"'
            if wanted
            else f'descriptor source "{source.name}" has several descriptors',
            hint=f"Descriptors are {', '.join(known[:20])}.",
            position=position,
        )
    return f"{source.name}.{wanted}"


def columns(full_name: str, services: Services) -> Sequence[DeclaredColumn]:
    """0A000 for what no column can hold."""
    return columns_of_descriptor(schema_named(full_name, services.catalog))


def schema(relation: Relation, key: str, services: Services) -> RecordSchema | None:
    """What all records of the relation have been written by; None where they say so themselves."""
    found = described(relation, key, services.catalog)
    if found is None:
        return None
    return RecordSchema(
        str(relation.property(key)), found.schema.kind, found.schema.text, found.schema.references, found.places
    )


def check_written(sink: Relation, store: Store, services: Services) -> None:
    """Of a relation that queries write to by descriptors: 42703 where a column has no field or a field that must be
    there no column, 42804 where the types differ."""
    types = {column.name: parse_type(column.type) for column in sink.columns}
    excluded, key = sink.columns_of("value.columns.exclude"), sink.key_columns or sink.columns_of("key.columns")
    of_parts = ((VALUE, [name for name in types if name not in excluded]), (KEY, list(key)))
    identity = services.stores.kind(store.type).written_identity
    for property_, names in of_parts:
        full_name = sink.property(property_)
        if full_name is not None:
            written = {name: types[name] for name in names}
            if property_ == VALUE and identity is not None and has_field(sink, identity, services.catalog):
                written[identity] = parse_type("VARCHAR")
            _check_fields(full_name, written, services)


def _check_fields(full_name: str, types: Mapping[str, SqlType], services: Services) -> None:
    found = schema_named(full_name, services.catalog)
    fields = {column.name: parse_type(column.type) for column in columns_of_descriptor(found)}
    for name, type_ in types.items():
        field = fields.get(name.lower())
        if field is None:
            raise SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f'descriptor "{full_name}" has no field "{name}"',
                hint=f"Its fields are {', '.join(fields)}.",
            )
        if not _takes(field, type_):
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'column "{name}" of type {type_} does not fit its field in descriptor "{full_name}"',
                detail=f"The field is of type {field}.",
                hint="CAST the column to that type.",
            )
    written = {name.lower() for name in types}
    for name in required_fields(found):
        if name.lower() not in written:
            raise SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f'no column is written to field "{name}" of descriptor "{full_name}", which each record must have',
            )


def _takes(field: SqlType, column: SqlType) -> bool:
    """Whether each value of the column is one of the field."""
    if column.is_numeric and field.is_numeric:
        return common_type((field, column)) == field and (field.is_exact or not column.is_exact)
    if column.kind is not field.kind:
        return False
    parts = {name.lower(): type_ for name, type_ in field.fields}
    if not all(name.lower() in parts and _takes(parts[name.lower()], type_) for name, type_ in column.fields):
        return False
    pairs = ((field.element, column.element), (field.key, column.key))
    return all(of is None or given is None or _takes(of, given) for of, given in pairs)
