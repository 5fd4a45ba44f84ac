"""Rows as JSON with a schema: the object as it is, and what its properties are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as spark

from spark_sinks.decode.columns import DecodeColumn
from spark_sinks.encode.written import WrittenForm
from spark_sinks.schema_registry.base import JSON_SCHEMA

_PLAIN: dict[type[spark.DataType], dict[str, str]] = {
    spark.BooleanType: {"type": "boolean"},
    **{kind: {"type": "integer"} for kind in (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)},
    spark.DecimalType: {"type": "number"},
    spark.DateType: {"type": "string", "format": "date"},
}


def json_form(name: str, columns: Sequence[DecodeColumn], newest: str | None) -> WrittenForm:
    properties = {column.name: _type(column.type) for column in columns}
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name, "type": "object"}
    return WrittenForm(JSON_SCHEMA, json.dumps({**schema, "properties": properties}), lambda row: row)


def _type(kind: spark.DataType) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _not_null(kind)]}


def _not_null(kind: spark.DataType) -> dict[str, Any]:
    if type(kind) in _PLAIN:
        return dict(_PLAIN[type(kind)])
    if isinstance(kind, (spark.FloatType, spark.DoubleType)):
        return {"type": ["number", "string"]}  # texts are what JSON has no numbers for
    if isinstance(kind, spark.ArrayType):
        return {"type": "array", "items": _type(kind.elementType)}
    if isinstance(kind, spark.MapType):
        return {"type": "object", "additionalProperties": _type(kind.valueType)}
    if isinstance(kind, spark.StructType):
        return {"type": "object", "properties": {field.name: _type(field.dataType) for field in kind.fields}}
    return {"type": "string"}
