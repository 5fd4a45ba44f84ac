"""JSON with its schema in a registry: a zero byte, the id of the schema, and the object as text.

Records are read as those of the format JSON. The schema says what the columns are where a statement does not; a record
is not compared with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from spark_sinks.base import DeclaredColumn
from spark_sinks.decode.columns import DecodeColumn, Decoded
from spark_sinks.decode.format import Decoder, Format
from spark_sinks.decode.inferred_columns import NESTING_MAX, check_names, column, refused, struct
from spark_sinks.decode.json_format import JSON
from spark_sinks.decode.registered_records import HEADER_BYTES, NO_ID
from spark_sinks.encode.json_form import json_form
from spark_sinks.schema_registry import base
from spark_sinks.schema_registry.base import RegisteredSchema

_PLAIN = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
_FORMATS = {"date-time": "TIMESTAMP_LTZ", "date": "DATE"}


def _behind_the_id(decoder: Decoder) -> Decoder:
    def decode(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
        body, reason = f"{prefix}b", f"{prefix}y"
        begins = f"octet_length({value}) >= {HEADER_BYTES} AND substring({value}, 1, 1) = X'00'"
        inner = decoder(columns, body, prefix)
        stages = [(f"CASE WHEN {begins} THEN substring({value}, {HEADER_BYTES + 1}) END AS {body}",), *inner.stages]
        if inner.reason is None:
            return Decoded(tuple(stages), inner.columns, inner.good, None)
        missing = f"WHEN {value} IS NOT NULL AND {body} IS NULL THEN '{NO_ID}'"
        stages.append((f"CASE {missing} ELSE {inner.reason} END AS {reason}",))
        return Decoded(tuple(stages), inner.columns, inner.good, reason)

    return decode


def columns_of(schema: RegisteredSchema) -> Sequence[DeclaredColumn]:
    whole = json.loads(schema.text)
    if not isinstance(whole, Mapping) or not isinstance(whole.get("properties"), Mapping):
        raise refused("the schema is not that of an object with properties")
    return check_names([column(name, _type(part, name, 0)) for name, part in whole["properties"].items()])


def _type(schema: Any, field: str, depth: int) -> str:
    if depth > NESTING_MAX or not isinstance(schema, Mapping):
        raise refused(f'property "{field}" of the schema has no type of SQL')
    given = schema.get("type")
    kinds = [kind for kind in (given if isinstance(given, list) else [given]) if kind != "null"]
    for key in ("oneOf", "anyOf"):
        if given is None and isinstance(schema.get(key), list):
            others = [each for each in schema[key] if each != {"type": "null"}]
            return _type(others[0] if len(others) == 1 else None, field, depth + 1)
    kind = kinds[0] if len(kinds) == 1 else None
    if kind == "string":
        return _FORMATS.get(str(schema.get("format")), "VARCHAR")
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "array":
        return f"ARRAY<{_type(schema.get('items'), field, depth + 1)}>"
    if kind == "object" and isinstance(schema.get("properties"), Mapping):
        return struct([(name, _type(part, field, depth + 1)) for name, part in schema["properties"].items()])
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"MAP<VARCHAR, {_type(schema['additionalProperties'], field, depth + 1)}>"
    raise refused(f'property "{field}" of the schema has no type of SQL')


_DECODER, _TRIAL = JSON.decoder, JSON.trial
assert _DECODER is not None and _TRIAL is not None  # noqa: S101, PT018 - JSON has both
JSON_SCHEMA = Format(
    "json_schema",
    _behind_the_id(_DECODER),
    _behind_the_id(_TRIAL),
    registered=base.JSON_SCHEMA,
    columns=columns_of,
    written=json_form,
    of_keys=True,
)
