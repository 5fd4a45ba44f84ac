"""Rows as Protobuf: a message with a field for each column, each of which a record may leave out.

A field keeps the number that it has in the newest schema of its subject; a new one gets the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import types as spark

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.decode.columns import DecodeColumn
from spark_sinks.encode.values import Convert, single
from spark_sinks.encode.written import WrittenForm, refused
from spark_sinks.schema_registry.base import PROTOBUF, RegisteredSchema
from spark_sinks.schema_registry.protobuf import UnusableError, descriptor_set

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIMESTAMP = "google.protobuf.Timestamp"
_FIRST_MESSAGE = b"\0"
_PLAIN: dict[type[spark.DataType], str] = {
    spark.BooleanType: "bool", spark.ByteType: "int32", spark.ShortType: "int32", spark.IntegerType: "int32",
    spark.LongType: "int64", spark.FloatType: "float", spark.DoubleType: "double", spark.StringType: "string",
    spark.VarcharType: "string", spark.BinaryType: "bytes",
}  # fmt: skip
_MAP_KEYS = ("int32", "int64", "bool", "string")


def protobuf_form(name: str, columns: Sequence[DecodeColumn], newest: str | None) -> WrittenForm:
    known, message = _newest(newest)
    message = message or re.sub(r"[^A-Za-z0-9_]", "_", f"M_{name}")
    numbers: dict[str, int] = {}
    for column in columns:
        numbers[column.name] = known.get(column.name) or max((0, *known.values(), *numbers.values())) + 1
    body, convert = _message(message, [(c.name, c.type, numbers[c.name]) for c in columns], None)
    imports = 'import "google/protobuf/timestamp.proto";\n' if _TIMESTAMP in body else ""
    text = f'syntax = "proto3";\n{imports}{body}\n'
    made = _class(text, message)

    def encode(row: bytes) -> bytes:
        from google.protobuf import json_format

        found = json_format.ParseDict(convert(json.loads(row)), made())
        return _FIRST_MESSAGE + bytes(found.SerializeToString())

    return WrittenForm(PROTOBUF, text, encode)


def _newest(text: str | None) -> tuple[Mapping[str, int], str | None]:
    """The numbers of the first message's fields, and its name; nothing of a schema that is not to be read alone."""
    if text is None:
        return {}, None
    try:
        file = descriptor_set(RegisteredSchema(0, PROTOBUF, text)).file[-1]
    except UnusableError:
        return {}, None
    if not file.message_type or file.package:
        return {}, None
    return {field.name: field.number for field in file.message_type[0].field}, str(file.message_type[0].name)


def _class(text: str, message: str) -> Any:
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_set(RegisteredSchema(0, PROTOBUF, text)).file
    except UnusableError as error:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, "the columns cannot be written as Protobuf", detail=f"{error}."
        ) from error
    for file in files:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(message))


def _message(name: str, fields: Sequence[tuple[str, spark.DataType, int]], column: str | None) -> tuple[str, Convert]:
    """``column`` is that of a message inside of one."""
    lines, converts = [], {}
    for field, kind, number in fields:
        of = column or field
        if _NAME.fullmatch(field) is None:
            raise refused(of, f'"{field}" is no name of Protobuf')
        type_, inner, converts[field] = _field(field, kind, of)
        lines += [*inner, f"{type_} {field} = {number};"]

    def convert(value: Mapping[str, Any]) -> dict[str, Any]:
        return {key: make(value[key]) for key, make in converts.items() if value.get(key) is not None}

    return f"message {name} {{\n" + "\n".join(lines) + "\n}", convert


def _field(field: str, kind: spark.DataType, column: str) -> tuple[str, list[str], Convert]:
    """Its type with its label, the messages that it needs, and what makes its value."""
    if isinstance(kind, spark.ArrayType):
        type_, inner, convert = _single(field, kind.elementType, column)
        return f"repeated {type_}", inner, lambda value: [convert(_there(each, column)) for each in value]
    if isinstance(kind, spark.MapType):
        key, _, _ = _single(field, kind.keyType, column)
        if key not in _MAP_KEYS:
            raise refused(column, "Protobuf has no maps with such keys")
        type_, inner, convert = _single(field, kind.valueType, column)
        return (
            f"map<{key}, {type_}>",
            inner,
            lambda value: {name: convert(_there(each, column)) for name, each in value.items()},
        )
    type_, inner, convert = _single(field, kind, column)
    return f"optional {type_}", inner, convert


def _single(field: str, kind: spark.DataType, column: str) -> tuple[str, list[str], Convert]:
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)], [], single if isinstance(kind, spark.FloatType) else lambda value: value
    if isinstance(kind, (spark.TimestampType, spark.TimestampNTZType)):
        zone = "" if isinstance(kind, spark.TimestampType) else "Z"
        return _TIMESTAMP, [], lambda value: f"{value}{zone}".replace(" ", "T")
    if isinstance(kind, spark.StructType):
        name = f"{field[:1].upper()}{field[1:]}_"
        parts = [(part.name, part.dataType, number) for number, part in enumerate(kind.fields, 1)]
        body, convert = _message(name, parts, column)
        return name, [body], convert
    raise refused(column, "Protobuf has no such type")


def _there(value: Any, column: str) -> Any:
    if value is None:
        raise SqlError(
            sqlstates.DATA_EXCEPTION, f'column "{column}" has a NULL in an array or a map, which Protobuf cannot have'
        )
    return value
