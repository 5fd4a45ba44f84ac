"""Records as Spark reads them: an Arrow table of the raw columns, each record with its shard and its place.

Spark's executors, wherever they are, get the table by Spark itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_sinks.base import METADATA
from spark_sinks.kinesis.shard_reading import Entry
from spark_sinks.oversize import mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARD, PLACE = "shard", "place"
_METADATA = pa.struct(
    [
        ("stream", pa.string()),
        ("partition_key", pa.string()),
        ("shard_id", pa.string()),
        ("sequence_number", pa.string()),
        ("subsequence_number", pa.int64()),
        ("timestamp", pa.int64()),
    ]
)
RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("position", pa.string()),
        ("record_time", pa.timestamp("us", "UTC")),
        (METADATA, _METADATA),
        (SHARD, pa.string()),
        (PLACE, pa.int64()),
    ]
)


def frame_of(spark: SparkSession, stream: str, entries: Sequence[Entry], record_bytes_max: int) -> DataFrame:
    return spark.createDataFrame(table_of(stream, entries, record_bytes_max))


def table_of(stream: str, entries: Sequence[Entry], record_bytes_max: int) -> pa.Table:
    """``place`` counts the records of the table, in the order of the entries."""
    rows = [(entry, part) for entry in entries for part in entry.parts]
    shards = [entry.shard for entry, _ in rows]
    numbers = [str(entry.record.sequence) for entry, _ in rows]
    parts = [part.number for _, part in rows]
    arrived = [entry.record.arrived_ms for entry, _ in rows]
    keys = [part.partition_key for _, part in rows]
    metadata = pa.StructArray.from_arrays(
        [
            pa.array([stream] * len(rows), pa.string()),
            pa.array(keys, pa.string()),
            pa.array(shards, pa.string()),
            pa.array(numbers, pa.string()),
            pa.array(parts, pa.int64()),
            pa.array(arrived, pa.int64()),
        ],
        fields=list(_METADATA),
    )
    columns = [
        pa.array([key.encode() for key in keys], pa.binary()),
        pa.array([_bounded(part.data, record_bytes_max) for _, part in rows], pa.binary()),
        pa.array([place_of(entry, part.number) for entry, part in rows], pa.string()),
        pa.array([moment * 1000 for moment in arrived], pa.int64()).cast(pa.timestamp("us", "UTC")),
        metadata,
        pa.array(shards, pa.string()),
        pa.array(range(len(rows)), pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=RAW)


def place_of(entry: Entry, number: int | None) -> str:
    """For people, and as a rejected record's identity."""
    place = f"{entry.shard}:{entry.record.sequence}"
    return place if number is None else f"{place}:{number}"


def _bounded(data: bytes, most: int) -> bytes:
    return data if len(data) <= most else mark(data, len(data), most)
