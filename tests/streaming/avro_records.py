"""Avro records by fastavro, the oracle of the decoder, with the id of their schema before them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
from pyspark.sql import SparkSession

from mvserver.sql.types import parse_type
from mvserver.streaming.batch.evaluate import _normal
from mvserver.streaming.spark.record_functions import register
from mvserver.streaming.spark.types import spark_type
from spark_sinks.decode import DecodeColumn, decode
from spark_sinks.schema_registry.base import AVRO, KnownSchemas, RegisteredSchema


def record(schema: Any, value: Any, id_: int = 1) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + id_.to_bytes(4, "big") + out.getvalue()


def known(*schemas: Any, absent: Sequence[int] = ()) -> KnownSchemas:
    """With the ids 1, 2 ..."""
    found = tuple(RegisteredSchema(i, AVRO, json.dumps(schema)) for i, schema in enumerate(schemas, 1))
    return KnownSchemas(1, found, tuple(absent))


def of_fields(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def columns(*declared: str) -> list[DecodeColumn]:
    """Each as ``name TYPE [NOT NULL]``."""
    found = []
    for text in declared:
        name, _, type_ = text.partition(" ")
        kind = parse_type(type_.removesuffix(" NOT NULL"))
        found.append(DecodeColumn(name, spark_type(kind), str(kind), type_.endswith(" NOT NULL")))
    return found


def decoded(
    spark: SparkSession,
    declared: Sequence[str],
    schemas: KnownSchemas,
    values: Sequence[bytes | None],
    format_: str = "avro",
) -> list[tuple[Any, ...]]:
    """A row for each record: the columns, and the reason of a rejection behind them."""
    made = decode(format_, columns(*declared), "value", "r_", schemas=schemas)
    register(spark, made.functions)
    frame = spark.createDataFrame([(i, v) for i, v in enumerate(values)], "i int, value binary").orderBy("i")
    for stage in made.stages:
        frame = frame.selectExpr("*", *stage)
    named = [f"{reference} AS o{i}" for i, (_, reference) in enumerate(made.columns)]
    table = _normal(frame.selectExpr(*named, f"{made.reason} AS reason").toArrow())
    return [tuple(row.values()) for row in table.to_pylist()]
