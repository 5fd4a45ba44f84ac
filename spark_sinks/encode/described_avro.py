"""Rows as records of Avro, by a schema that is known."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, DecimalException
from typing import Any

from pyspark.sql.types import DecimalType

from spark_sinks.encode.values import Convert, decimal
from spark_sinks.encode.written import Encode, no_field, no_record, null_value
from spark_sinks.schema_registry.base import RegisteredSchema

_NULL = "null"


def encoder(schema: RegisteredSchema) -> Encode:
    from fastavro import schemaless_writer
    from fastavro.schema import SchemaParseException

    parsed, named = _parsed(schema)
    convert = _Converter(named).of_record(parsed)

    def encode(row: bytes) -> bytes:
        out = io.BytesIO()
        try:
            schemaless_writer(out, parsed, convert(json.loads(row, parse_float=Decimal)))
        except (ValueError, TypeError, LookupError, OverflowError, DecimalException, SchemaParseException) as error:
            raise no_record(str(error)) from error
        return out.getvalue()

    return encode


def required(schema: RegisteredSchema) -> Sequence[str]:
    parsed, _ = _parsed(schema)
    return [field["name"] for field in parsed["fields"] if "default" not in field and not _may_be_null(field["type"])]


def _parsed(schema: RegisteredSchema) -> tuple[Any, Mapping[str, Any]]:
    from fastavro.schema import parse_schema

    named: dict[str, Any] = {}
    for _, text in schema.references:
        parse_schema(json.loads(text), named_schemas=named)
    return parse_schema(json.loads(schema.text), named_schemas=named), named


def _may_be_null(schema: Any) -> bool:
    return schema == _NULL or (isinstance(schema, list) and _NULL in schema)


class _Converter:
    """What makes values of JSON such that fastavro writes them; ``named`` are the types that have names."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named

    def of_record(self, schema: Mapping[str, Any]) -> Convert:
        fields = {field["name"]: field["type"] for field in schema["fields"]}
        by_case = {name.lower(): name for name in fields}

        def convert(value: Mapping[str, Any]) -> dict[str, Any]:
            found = {}
            for name, given in value.items():
                field = name if name in fields else by_case.get(name.lower())
                if field is None:
                    raise no_field(name)
                found[field] = self._value(fields[field], given, name)
            return found

        return convert

    def _value(self, schema: Any, given: Any, field: str) -> Any:
        if given is None:
            if not _may_be_null(schema):
                raise null_value(field, "avro")
            return None
        if isinstance(schema, list):
            return self._value(next(each for each in schema if each != _NULL), given, field)
        if isinstance(schema, str):
            known = self._named.get(schema)
            return _plain(schema, None, given) if known is None else self._value(known, given, field)
        kind, logical = schema["type"], schema.get("logicalType")
        if isinstance(kind, (list, Mapping)) or kind in self._named:
            return self._value(kind, given, field)
        if kind == "record":
            return self.of_record(schema)(given)
        if kind == "array":
            return [self._value(schema["items"], each, field) for each in given]
        if kind == "map":
            return {key: self._value(schema["values"], each, field) for key, each in given.items()}
        if logical == "decimal":
            return decimal(DecimalType(schema["precision"], schema.get("scale", 0)))(given)
        return _plain(kind, logical, given)


def _plain(kind: str, logical: str | None, given: Any) -> Any:
    if logical == "date":
        return dt.date.fromisoformat(given)
    if logical is not None and logical.startswith("time-"):
        return _whole(dt.time.fromisoformat(given), logical)
    if logical is not None and "timestamp-" in logical:
        moment = dt.datetime.fromisoformat(given)
        if logical.endswith("-nanos"):
            return (moment.replace(tzinfo=moment.tzinfo or dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1) * 1000
        return _whole(moment, logical)
    if kind in ("float", "double"):
        return float(given)
    return base64.b64decode(given) if kind in ("bytes", "fixed") else given


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _whole(value: Any, logical: str) -> Any:
    """ValueError where milliseconds are too coarse for it."""
    if logical.endswith("-millis") and value.microsecond % 1000:
        raise ValueError(f"{value} has more digits than {logical}")
    return value
