"""Records with the id of their schema before them: one function of Spark makes typed columns of each, or a reason.

The function is Java (``mvserver/streaming/spark/java/Records.java``), and carries the declared columns and the schemas
that are known. A record of another schema is one that asks for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StringType, StructType, VarcharType

from spark_sinks.decode.carriers import spelled, spelling_of
from spark_sinks.decode.columns import DecodeColumn, Decoded, RecordFunction
from spark_sinks.schema_registry.base import KnownSchemas

HEADER_BYTES = 5
NO_ID = "the value does not begin with the id of a schema"
_NAME = "mv_records_"
_DIGEST_BYTES = 16


def decode_registered(columns: Sequence[DecodeColumn], value: str, prefix: str, schemas: KnownSchemas) -> Decoded:
    """``value`` refers to a binary column."""
    made, function = f"{prefix}d", _function(columns, schemas)
    return Decoded(
        stages=((f"{function.name}({value}) AS {made}",),),
        columns=tuple((c.name, f"{made}.c{i}") for i, c in enumerate(columns)),
        good=f"({made}.reason IS NULL)",
        reason=f"{made}.reason",
        functions=(function,),
    )


def _function(columns: Sequence[DecodeColumn], schemas: KnownSchemas) -> RecordFunction:
    declared = json.dumps(declared_fields(columns))
    known = json.dumps(
        {
            "schemas": [
                {"id": s.id, "kind": s.kind, "text": s.text, "references": s.references, "error": s.error}
                for s in schemas.schemas
            ],
            "absent": schemas.absent,
        }
    )
    digest = hashlib.blake2b(f"{declared}\0{known}".encode(), digest_size=_DIGEST_BYTES).hexdigest()
    parts = [f"c{i}:{spelled(c.type)}" for i, c in enumerate(columns)]
    return RecordFunction(f"{_NAME}{digest}", declared, known, f"struct<{','.join([*parts, 'reason:string'])}>")


def declared_fields(columns: Sequence[DecodeColumn]) -> list[dict[str, Any]]:
    """The columns as functions in Java are told of them."""
    return [_field(c.name, c.spelling, c.type, c.label, c.not_null) for c in columns]


def _field(name: str, spelling: str | None, kind: DataType, label: str = "", not_null: bool = False) -> dict[str, Any]:
    return {"name": name, "spelling": spelling, "label": label, "not_null": not_null, "type": _type(kind)}


def _type(kind: DataType) -> dict[str, Any]:
    if isinstance(kind, VarcharType):
        return {"kind": "string", "size": kind.length}
    if isinstance(kind, StringType):
        return {"kind": "string"}
    if isinstance(kind, DecimalType):
        return {"kind": "decimal", "size": kind.precision, "scale": kind.scale}
    if isinstance(kind, ArrayType):
        return {"kind": "array", "element": _type(kind.elementType)}
    if isinstance(kind, MapType):
        return {"kind": "map", "key": _type(kind.keyType), "element": _type(kind.valueType)}
    if isinstance(kind, StructType):
        return {"kind": "struct", "fields": [_field(f.name, spelling_of(f), f.dataType) for f in kind.fields]}
    return {"kind": kind.simpleString().partition("(")[0]}
