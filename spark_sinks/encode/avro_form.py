"""Rows as Avro: every field may be null, so that a later schema may leave it out and an earlier one may lack it.

One value that is the whole of a record, or of a key, has a name for that, and a schema without a record around it.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import fastavro
from pyspark.sql import types as spark

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.decode.carriers import is_nested
from spark_sinks.decode.columns import DecodeColumn
from spark_sinks.encode.values import Convert, decimal, plain
from spark_sinks.encode.written import FullName, WrittenForm, null_value, refused
from spark_sinks.schema_registry.base import AVRO

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: dict[type[spark.DataType], str] = {
    spark.BooleanType: "boolean", spark.ByteType: "int", spark.ShortType: "int", spark.IntegerType: "int",
    spark.LongType: "long", spark.FloatType: "float", spark.DoubleType: "double", spark.StringType: "string",
    spark.VarcharType: "string", spark.BinaryType: "bytes",
}  # fmt: skip
_LOGICAL: dict[type[spark.DataType], dict[str, str]] = {
    spark.DateType: {"type": "int", "logicalType": "date"},
    spark.TimeType: {"type": "long", "logicalType": "time-micros"},
    spark.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    spark.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}


WHOLE_VALUE, WHOLE_KEY = "_value", "_key"


def avro_form(name: str, columns: Sequence[DecodeColumn], newest: str | None) -> WrittenForm:
    if len(columns) == 1 and columns[0].name in (WHOLE_VALUE, WHOLE_KEY) and not is_nested(columns[0].type):
        return _alone(columns[0], name)
    schema: dict[str, Any] = {"type": "record", **_named(name, newest), "fields": []}
    converts: dict[str, Convert] = {}
    for column in columns:
        if _NAME.fullmatch(column.name) is None:
            raise refused(column.name, "it is no name of Avro")
        type_, converts[column.name] = _type(column.type, column.name, f"{schema['name']}_{column.name}")
        schema["fields"].append({"name": column.name, "type": ["null", type_], "default": None})
    parsed = fastavro.parse_schema(schema)

    def encode(row: bytes) -> bytes:
        given = json.loads(row, parse_float=Decimal)
        found = {
            key: None if (value := given.get(key)) is None else convert(value) for key, convert in converts.items()
        }
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, found)
        return out.getvalue()

    return WrittenForm(AVRO, json.dumps(schema), encode)


def _alone(column: DecodeColumn, name: str) -> WrittenForm:
    schema, convert = _type(column.type, column.name, _named(name, None)["name"])
    parsed = fastavro.parse_schema(schema)

    def encode(row: bytes) -> bytes:
        value = json.loads(row, parse_float=Decimal)[column.name]
        if value is None:
            raise null_value(column.name, "avro")
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, convert(value))
        return out.getvalue()

    return WrittenForm(AVRO, json.dumps(schema), encode)


def _named(name: str, newest: str | None) -> dict[str, str]:
    """Schemas of one subject have one name: another one would not be compatible."""
    known = None
    if newest is not None:
        with contextlib.suppress(ValueError):  # of another kind: the registry says that they do not fit
            known = json.loads(newest)
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    wanted = {"name": plain if _NAME.fullmatch(plain) else f"_{plain}"}
    if isinstance(name, FullName) and name.namespace is not None:
        wanted["namespace"] = name.namespace
    if not isinstance(known, Mapping) or known.get("type") != "record":
        return wanted
    found = {key: str(known[key]) for key in ("name", "namespace") if key in known}
    if isinstance(name, FullName) and found != wanted:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'records of the subject are called "{_full(found)}", and not "{_full(wanted)}"',
            hint="Another name would not be compatible: leave it out, or write to another topic.",
        )
    return found


def _full(name: Mapping[str, str]) -> str:
    return ".".join(name[key] for key in ("namespace", "name") if key in name)


def _type(kind: spark.DataType, column: str, name: str) -> tuple[Any, Convert]:
    """The type of Avro, and what makes its value of one of JSON. ``name`` is that of a record, if it is one."""
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)], plain(kind)
    if type(kind) in _LOGICAL:
        return _LOGICAL[type(kind)], plain(kind)
    if isinstance(kind, spark.DecimalType):
        of = {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return of, decimal(kind)
    if isinstance(kind, spark.ArrayType):
        element, convert = _type(kind.elementType, column, name)
        return (
            {"type": "array", "items": ["null", element]},
            lambda value: [None if each is None else convert(each) for each in value],
        )
    if isinstance(kind, spark.MapType) and isinstance(kind.keyType, (spark.StringType, spark.VarcharType)):
        element, convert = _type(kind.valueType, column, name)
        return (
            {"type": "map", "values": ["null", element]},
            lambda value: {key: None if each is None else convert(each) for key, each in value.items()},
        )
    if isinstance(kind, spark.StructType):
        return _record(kind, column, name)
    raise refused(column, "Avro has no such type")


def _record(kind: spark.StructType, column: str, name: str) -> tuple[Any, Convert]:
    fields, converts = [], {}
    for field in kind.fields:
        if _NAME.fullmatch(field.name) is None:
            raise refused(column, f'its field "{field.name}" is no name of Avro')
        type_, converts[field.name] = _type(field.dataType, column, f"{name}_{field.name}")
        fields.append({"name": field.name, "type": ["null", type_], "default": None})

    def convert(value: Mapping[str, Any]) -> dict[str, Any]:
        return {key: None if (part := value.get(key)) is None else inner(part) for key, inner in converts.items()}

    return {"type": "record", "name": name, "fields": fields}, convert
