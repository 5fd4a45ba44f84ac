"""Descriptor sources: a file becomes one, and a relation's property names a schema of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from catalog.acl import Privilege
from catalog.dependencies import DESCRIPTORS
from catalog.model import DescriptorSource, Relation
from mvserver import sqlstates
from mvserver.compiler.plans import RecordSchema
from mvserver.errors import SqlError
from mvserver.routing import privileges
from mvserver.routing.config_folder import read_file
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties
from spark_sinks.base import DeclaredColumn
from spark_sinks.decode import columns_of_descriptor, format_of
from spark_sinks.schema_registry import limits
from spark_sinks.schema_registry.descriptors import Descriptors, descriptors_of, schema_of

VALUE, KEY = DESCRIPTORS
_FILE, _MESSAGES, _CONTENT = "file", "messages", "content"


def read(given: Properties, folder: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The kind of schemas, and the properties that are kept."""
    reader = PropertyReader(given, "a descriptor source")
    name = reader.text(_FILE)
    reader.end((_FILE,))
    if name is None:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, 'a descriptor source needs the property "file"')
    name = name.removeprefix("@")
    found = descriptors_of(name, read_file(folder, name, _FILE, limits.SCHEMA_BYTES_MAX))
    return found.kind, ((_FILE, name), (_MESSAGES, " ".join(found.messages)), (_CONTENT, found.content))


def messages(source: DescriptorSource) -> Sequence[str]:
    return (source.property(_MESSAGES) or "").split()


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
    source = _source(name, services, position)
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
    source = _source(full_name, services, None)
    return columns_of_descriptor(schema_of(_descriptors(source), full_name.partition(".")[2]))


def schema(relation: Relation, key: str, services: Services) -> RecordSchema | None:
    """What all records of the relation have been written by; None where they say so themselves."""
    full_name = relation.property(key)
    if full_name is None:
        return None
    found = schema_of(_descriptors(_source(full_name, services, None)), full_name.partition(".")[2])
    return RecordSchema(full_name, found.schema.kind, found.schema.text, found.schema.references, found.places)


def _source(name: str, services: Services, position: int | None) -> DescriptorSource:
    first = name.partition(".")[0]
    found = services.catalog.descriptor_sources.find(first)
    if found is None:
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f'descriptor source "{first}" does not exist', position=position)
    return found


def _descriptors(source: DescriptorSource) -> Descriptors:
    return Descriptors(source.type, tuple(messages(source)), source.property(_CONTENT) or "")
