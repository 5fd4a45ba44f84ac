"""Protobuf with the schemas in a registry: a zero byte, the schema's id, the message's place in it, and the message.

Fields are matched with the declared columns by their names in the writer's schema. One that has no presence is its
type's default where a record leaves it out, as everywhere in Protobuf; any other is NULL then.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from spark_sinks.base import DeclaredColumn
from spark_sinks.decode.format import Format
from spark_sinks.decode.inferred_columns import NESTING_MAX, check_names, column, refused, struct
from spark_sinks.decode.registered_records import decode_registered
from spark_sinks.encode.protobuf_form import protobuf_form
from spark_sinks.schema_registry import base
from spark_sinks.schema_registry.base import RegisteredSchema
from spark_sinks.schema_registry.protobuf import UnusableError, descriptor_set, require_compiler

_REPEATED = 3
_MESSAGES = (10, 11)  # groups, messages
_PLAIN = {
    1: "DOUBLE", 2: "FLOAT", 3: "BIGINT", 4: "DECIMAL(20, 0)", 5: "INTEGER", 6: "DECIMAL(20, 0)", 7: "BIGINT",
    8: "BOOLEAN", 9: "VARCHAR", 12: "VARBINARY", 13: "BIGINT", 14: "VARCHAR", 15: "INTEGER", 16: "BIGINT",
    17: "INTEGER", 18: "BIGINT",
}  # fmt: skip
"""By the numbers of the types in descriptors."""
_WELL_KNOWN = {
    ".google.protobuf.Timestamp": "TIMESTAMP_LTZ", ".google.protobuf.DoubleValue": "DOUBLE",
    ".google.protobuf.FloatValue": "FLOAT", ".google.protobuf.Int64Value": "BIGINT",
    ".google.protobuf.UInt64Value": "DECIMAL(20, 0)", ".google.protobuf.Int32Value": "INTEGER",
    ".google.protobuf.UInt32Value": "BIGINT", ".google.protobuf.BoolValue": "BOOLEAN",
    ".google.protobuf.StringValue": "VARCHAR", ".google.protobuf.BytesValue": "VARBINARY",
}  # fmt: skip


def columns_of(schema: RegisteredSchema) -> Sequence[DeclaredColumn]:
    """Of the first message of the schema."""
    try:
        files = descriptor_set(schema).file
    except UnusableError as error:
        raise refused(f"the schema cannot be used: {error}") from error
    if not files[-1].message_type:
        raise refused("the schema has no message")
    return _columns(files, files[-1].message_type[0])


def columns_of_message(descriptors: str, places: Sequence[int]) -> Sequence[DeclaredColumn]:
    """Of the message at these places of the last file of a FileDescriptorSet in base64."""
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(descriptors)).file
    message = files[-1].message_type[places[0]]
    for place in places[1:]:
        message = message.nested_type[place]
    return _columns(files, message)


def _columns(files: Any, message: Any) -> Sequence[DeclaredColumn]:
    messages: dict[str, Any] = {}
    for file in files:
        _collect(file.message_type, f".{file.package}" if file.package else "", messages)
    fields = message.field
    return check_names([column(field.name, _type(field, messages, field.name, 0)) for field in fields])


def _collect(found: Any, space: str, messages: dict[str, Any]) -> None:
    for message in found:
        messages[f"{space}.{message.name}"] = message
        _collect(message.nested_type, f"{space}.{message.name}", messages)


def _type(field: Any, messages: Mapping[str, Any], name: str, depth: int) -> str:
    """``name`` is that of the column."""
    if depth > NESTING_MAX:
        raise refused(f'field "{name}" of the schema has itself in it')
    single = _single(field, messages, name, depth)
    if field.label != _REPEATED:
        return single
    return single if single.startswith("MAP<") and _is_map(field, messages) else f"ARRAY<{single}>"


def _is_map(field: Any, messages: Mapping[str, Any]) -> bool:
    return field.type in _MESSAGES and bool(messages[field.type_name].options.map_entry)


def _single(field: Any, messages: Mapping[str, Any], name: str, depth: int) -> str:
    if field.type not in _MESSAGES:
        return _PLAIN[field.type]
    if field.type_name in _WELL_KNOWN:
        return _WELL_KNOWN[field.type_name]
    parts = messages[field.type_name].field
    if _is_map(field, messages):
        key, value = (_type(part, messages, name, depth + 1) for part in parts)
        return f"MAP<{key}, {value}>"
    return struct([(part.name, _type(part, messages, name, depth + 1)) for part in parts])


PROTOBUF = Format(
    "protobuf",
    by_schema=decode_registered,
    registered=base.PROTOBUF,
    columns=columns_of,
    written=protobuf_form,
    of_keys=True,
    required=require_compiler,
)
