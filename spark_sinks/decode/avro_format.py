"""Avro with the schemas in a registry: a zero byte, the id of the writer's schema, and the value in Avro's binary form.

Each record is read by the schema that it was written with. Its fields are matched with the declared columns by name, so
that writers may add and remove fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from spark_sinks.base import DeclaredColumn
from spark_sinks.decode.format import Format
from spark_sinks.decode.inferred_columns import NESTING_MAX, check_names, column, refused, struct
from spark_sinks.decode.registered_records import decode_registered
from spark_sinks.encode.avro_form import WHOLE_VALUE, avro_form
from spark_sinks.schema_registry import base
from spark_sinks.schema_registry.base import RegisteredSchema

_PLAIN = {
    "boolean": "BOOLEAN", "int": "INTEGER", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE",
    "string": "VARCHAR", "bytes": "VARBINARY", "fixed": "VARBINARY", "enum": "VARCHAR",
}  # fmt: skip
_LOGICAL = {
    ("int", "date"): "DATE",
    ("int", "time-millis"): "TIME",
    ("long", "time-micros"): "TIME",
    ("fixed", "uuid"): "VARCHAR",
    **{("long", f"timestamp-{unit}"): "TIMESTAMP_LTZ" for unit in ("millis", "micros", "nanos")},
    **{("long", f"local-timestamp-{unit}"): "TIMESTAMP" for unit in ("millis", "micros", "nanos")},
}


def columns_of(schema: RegisteredSchema) -> Sequence[DeclaredColumn]:
    names: dict[str, Any] = {}
    for _, text in schema.references:
        _collect(json.loads(text), "", names)
    whole = json.loads(schema.text)
    _collect(whole, "", names)
    if not isinstance(whole, Mapping) or whole.get("type") != "record":
        if isinstance(whole, Mapping) and whole.get("type") in ("map", "array"):
            raise refused("the schema is that of a map or an array")
        return [DeclaredColumn(WHOLE_VALUE, _type(whole, "", names, WHOLE_VALUE, 0), not_null=not _may_be_null(whole))]
    fields = whole["fields"]
    return check_names([column(f["name"], _type(f["type"], _space(whole, ""), names, f["name"], 0)) for f in fields])


def _may_be_null(schema: Any) -> bool:
    return isinstance(schema, list) and "null" in schema


def _collect(schema: Any, space: str, names: dict[str, Any]) -> None:
    """The named types, by their full names."""
    if isinstance(schema, list):
        for each in schema:
            _collect(each, space, names)
    elif isinstance(schema, Mapping):
        inner = _space(schema, space)
        if schema.get("type") in ("record", "enum", "fixed", "error"):
            names[_full(schema["name"], inner)] = schema
            for field in schema.get("fields", ()):
                _collect(field["type"], inner, names)
        else:
            for part in ("items", "values", "type"):
                if isinstance(schema.get(part), (list, Mapping)):
                    _collect(schema[part], inner, names)


def _space(schema: Mapping[str, Any], space: str) -> str:
    name = str(schema.get("name", ""))
    return name.rpartition(".")[0] if "." in name else str(schema.get("namespace", space))


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _type(schema: Any, space: str, names: Mapping[str, Any], field: str, depth: int) -> str:
    """``field`` is the column that a refusal names."""
    if depth > NESTING_MAX:
        raise refused(f'field "{field}" of the schema has itself in it')
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) != 1:
            raise refused(f'field "{field}" of the schema is a union of several types')
        return _type(others[0], space, names, field, depth + 1)
    if isinstance(schema, str):
        if schema in _PLAIN:
            return _PLAIN[schema]
        found = names.get(_full(schema, space), names.get(schema))
        if found is None:
            raise refused(f'field "{field}" of the schema has no type of SQL: {schema}')
        return _type(found, space, names, field, depth + 1)
    kind, inner = schema.get("type"), _space(schema, space)
    if isinstance(kind, (list, Mapping)):
        return _type(kind, inner, names, field, depth + 1)
    if schema.get("logicalType") == "decimal" and kind in ("bytes", "fixed"):
        return f"DECIMAL({int(schema['precision'])}, {int(schema.get('scale', 0))})"
    if kind == "array":
        return f"ARRAY<{_type(schema['items'], inner, names, field, depth + 1)}>"
    if kind == "map":
        return f"MAP<VARCHAR, {_type(schema['values'], inner, names, field, depth + 1)}>"
    if kind in ("record", "error"):
        return struct([(f["name"], _type(f["type"], inner, names, field, depth + 1)) for f in schema["fields"]])
    logical = _LOGICAL.get((kind, str(schema.get("logicalType"))))
    return logical or _type(kind, inner, names, field, depth + 1)


AVRO = Format(
    "avro", by_schema=decode_registered, registered=base.AVRO, columns=columns_of, written=avro_form, of_keys=True
)
