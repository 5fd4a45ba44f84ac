"""Rows as messages of Protobuf, by a descriptor that is known."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.encode.values import single
from spark_sinks.encode.written import Encode, no_field, no_record, null_value
from spark_sinks.schema_registry.descriptors import DescribedSchema

_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = "google.protobuf."
_FLOAT_VALUE = "google.protobuf.FloatValue"


def encoder(schema: DescribedSchema) -> Encode:
    from google.protobuf import json_format, message, message_factory

    descriptor = _descriptor(schema)
    made = message_factory.GetMessageClass(descriptor)

    def encode(row: bytes) -> bytes:
        fields = _fields(descriptor, json.loads(row))
        try:
            return bytes(json_format.ParseDict(fields, made()).SerializeToString())
        except (json_format.ParseError, message.EncodeError) as error:
            raise no_record(str(error)) from error

    return encode


def required(schema: DescribedSchema) -> Sequence[str]:
    return [field.name for field in _descriptor(schema).fields if field.is_required]


def _descriptor(schema: DescribedSchema) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(schema.schema.text)).file
    for file in files:
        pool.Add(file)
    names, inner = [], files[-1].message_type
    for place in schema.places:
        names.append(inner[place].name)
        inner = inner[place].nested_type
    package = [files[-1].package] if files[-1].package else []
    return pool.FindMessageTypeByName(".".join([*package, *names]))


def _fields(descriptor: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    """By the names of the message's fields, which a column's may differ from in case."""
    found = {}
    for name, given in value.items():
        field = _field_of(descriptor, name)
        if given is not None:
            found[field.name] = _value(field, given)
        elif not field.has_presence and not field.is_repeated:
            raise null_value(name, "protobuf")  # it would be read as its type's default
    return found


def _field_of(descriptor: Any, name: str) -> Any:
    exact = descriptor.fields_by_name.get(name)
    if exact is not None:
        return exact
    for field in descriptor.fields:
        if field.name.lower() == name.lower():
            return field
    raise no_field(name)


def _value(field: Any, given: Any) -> Any:
    if not field.is_repeated:
        return _single(field, given)
    if isinstance(given, Mapping):
        of_value = field.message_type.fields_by_name["value"]
        return {key: _single(of_value, _there(each, field)) for key, each in given.items()}
    return [_single(field, _there(each, field)) for each in given]


def _single(field: Any, given: Any) -> Any:
    kind = field.message_type
    if kind is None:
        return single(given) if field.cpp_type == field.CPPTYPE_FLOAT else given
    if kind.full_name == _TIMESTAMP:
        return str(given).replace(" ", "T")
    if kind.full_name == _FLOAT_VALUE:
        return single(given)
    return given if kind.full_name.startswith(_WRAPPERS) else _fields(kind, given)


def _there(value: Any, field: Any) -> Any:
    if value is None:
        raise SqlError(
            sqlstates.NULL_VALUE_NOT_ALLOWED,
            f'field "{field.name}" has a NULL in an array or a map, which Protobuf cannot have',
        )
    return value
