"""Schemas from a file, for records that have no id of a schema before them.

A file is a compiled set of descriptors (``.desc``), a ``.proto``, or a schema of Avro (``.avsc``).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.schema_registry.base import AVRO, PROTOBUF, RegisteredSchema
from spark_sinks.schema_registry.protobuf import (
    UnusableError,
    descriptor_set,
    require_compiler,
    set_for,
    well_known_files,
)

_COMPILED, _TEXT, _AVRO = (".desc", ".pb", ".binpb", ".protoset"), ".proto", (".avsc", ".json")
_GOOGLES = "google/protobuf/"


@dataclass(frozen=True)
class Descriptors:
    """``content`` is the JSON of Avro's schemas, or a FileDescriptorSet in base64."""

    kind: str  # AVRO or PROTOBUF
    messages: tuple[str, ...]  # full names
    content: str


@dataclass(frozen=True)
class DescribedSchema:
    """As a registry's, with the id 0; ``places`` are where a message stands in the last file, outer ones first."""

    schema: RegisteredSchema
    places: tuple[int, ...] = ()


def descriptors_of(file: str, content: bytes) -> Descriptors:
    """22023 for a file that is none."""
    ending = PurePath(file).suffix.lower()
    try:
        if ending in _AVRO:
            return _avro(content)
        if ending in _COMPILED or ending == _TEXT:
            require_compiler()
            return _protobuf(content, compiled=ending != _TEXT)
    except UnusableError as error:
        raise _unusable(file, str(error)) from error
    raise _unusable(file, f"Its name ends with none of {', '.join((*_COMPILED, _TEXT, *_AVRO))}")


def schema_of(descriptors: Descriptors, message: str) -> DescribedSchema:
    """``message`` is one of the descriptors' own."""
    if descriptors.kind == AVRO:
        known = {_full(each): each for each in json.loads(descriptors.content)}
        before = [(name, json.dumps(each)) for name, each in known.items()]
        before = before[: list(known).index(message)]
        return DescribedSchema(RegisteredSchema(0, AVRO, json.dumps(known[message]), tuple(before)))
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(descriptors.content)).file
    file, places = next((file, places) for file in files for name, places in _messages(file) if name == message)
    whole = base64.b64encode(set_for(file, {each.name: each for each in files}).SerializeToString()).decode()
    return DescribedSchema(RegisteredSchema(0, PROTOBUF, whole), places)


# --- Avro -----------------------------------------------------------------------------------------------------------
def _avro(content: bytes) -> Descriptors:
    """A record, or an array of named types: each may use those before it."""
    from fastavro.schema import parse_schema

    try:
        given = json.loads(content)
        schemas = given if isinstance(given, list) else [given]
        named: dict[str, Any] = {}
        for each in schemas:
            parse_schema(each, named_schemas=named)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise UnusableError(f"{type(error).__name__}: {error}"[:500]) from error
    except Exception as error:
        if not type(error).__module__.startswith("fastavro"):
            raise
        raise UnusableError(f"{error}"[:500]) from error
    if not schemas or not all(isinstance(each, Mapping) and each.get("type") == "record" for each in schemas):
        raise UnusableError("It is no schema of a record, nor an array of such")
    return Descriptors(AVRO, tuple(map(_full, schemas)), json.dumps(schemas))


def _full(schema: Mapping[str, Any]) -> str:
    name, space = str(schema["name"]), schema.get("namespace")
    return name if "." in name or not space else f"{space}.{name}"


# --- Protobuf -------------------------------------------------------------------------------------------------------
def _protobuf(content: bytes, *, compiled: bool) -> Descriptors:
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    if compiled:
        try:
            given = descriptor_pb2.FileDescriptorSet.FromString(content).file
        except DecodeError as error:
            raise UnusableError("It is no FileDescriptorSet, as protoc --descriptor_set_out makes it") from error
    else:
        try:
            given = descriptor_set(RegisteredSchema(0, PROTOBUF, content.decode())).file
        except UnicodeDecodeError as error:
            raise UnusableError("It is not UTF-8") from error
    known = {**{file.name: file for file in well_known_files()}, **{file.name: file for file in given}}
    whole = descriptor_pb2.FileDescriptorSet()
    for file in given:
        for needed in set_for(file, known).file:
            if all(needed.name != there.name for there in whole.file):
                whole.file.append(needed)
    _check(whole)
    names = [name for file in whole.file if not file.name.startswith(_GOOGLES) for name, _ in _messages(file)]
    if not names:
        raise UnusableError("It has no message")
    return Descriptors(PROTOBUF, tuple(names), base64.b64encode(whole.SerializeToString()).decode())


def _check(whole: Any) -> None:
    from google.protobuf import descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    try:
        for file in whole.file:
            pool.Add(file)
            pool.FindFileByName(file.name)
    except (TypeError, KeyError) as error:
        raise UnusableError(f"{error}"[:500]) from error


def _messages(file: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each with its full name and where it stands."""

    def inside(found: Any, space: str, places: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        for place, message in enumerate(found):
            if not message.options.map_entry:
                name = f"{space}{message.name}"
                yield name, (*places, place)
                yield from inside(message.nested_type, f"{name}.", (*places, place))

    return inside(file.message_type, f"{file.package}." if file.package else "", ())


def _unusable(file: str, why: str) -> SqlError:
    return SqlError(
        sqlstates.INVALID_PARAMETER_VALUE,
        f'file "{file}" has no descriptors that can be used',
        detail=f"{why.rstrip('.')}.",
        hint="Compile with protoc --include_imports --descriptor_set_out=file.desc, or give a schema of Avro (.avsc).",
    )
