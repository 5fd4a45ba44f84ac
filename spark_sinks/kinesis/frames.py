"""Records as Spark reads them: an Arrow table of the raw columns, each record with its shard and its place.

A record that says that its row is gone has no value there, and itself as key.

Spark's executors, wherever they are, get the table by Spark itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_sinks.base import METADATA
from spark_sinks.kinesis.properties import DELETED
from spark_sinks.kinesis.shard_reading import Entry
from spark_sinks.oversize import mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARD, PLACE = "shard", "place"
_GONE = f'"{DELETED}"'.encode()
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
    shards: list[str] = []
    sequences: list[str] = []
    numbers: list[int | None] = []
    arrived: list[int] = []
    partition_keys: list[str] = []
    keys: list[bytes] = []
    values: list[bytes | None] = []
    places: list[str] = []
    for entry in entries:
        record, shard = entry.record, entry.shard
        sequence = str(record.sequence)
        for part in entry.parts:
            shards.append(shard)
            sequences.append(sequence)
            numbers.append(part.number)
            arrived.append(record.arrived_ms)
            partition_keys.append(part.partition_key)
            gone = len(part.data) <= record_bytes_max and is_deletion(part.data)
            keys.append(part.data if gone else part.partition_key.encode())
            values.append(None if gone else _bounded(part.data, record_bytes_max))
            places.append(f"{shard}:{sequence}" if part.number is None else place_of(entry, part.number))
    shard_ids = pa.array(shards, pa.string())
    moments_ms = pa.array(arrived, pa.int64())
    streams = pa.repeat(pa.scalar(stream, pa.string()), len(places))
    metadata = pa.StructArray.from_arrays(
        [
            streams,
            pa.array(partition_keys, pa.string()),
            shard_ids,
            pa.array(sequences, pa.string()),
            pa.array(numbers, pa.int64()),
            moments_ms,
        ],
        fields=list(_METADATA),
    )
    columns = [
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array(places, pa.string()),
        moments_ms.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
        metadata,
        shard_ids,
        pa.array(range(len(places)), pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=RAW)


def is_deletion(data: bytes) -> bool:
    """A row of a changelog that is gone: an object of its key that says so."""
    if _GONE not in data:
        return False
    try:
        found = json.loads(data)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get(DELETED) is True


def place_of(entry: Entry, number: int | None) -> str:
    """For people, and as a rejected record's identity."""
    place = f"{entry.shard}:{entry.record.sequence}"
    return place if number is None else f"{place}:{number}"


def _bounded(data: bytes, most: int) -> bytes:
    return data if len(data) <= most else mark(data, len(data), most)
