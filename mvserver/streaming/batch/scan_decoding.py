"""A scan's records as typed columns: from the value, and for a changelog also from the key.

A changelog's record without a value is no mistake: it deletes the row whose primary key it carries in its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from mvserver.compiler.plans import Scan, ScanColumn
from mvserver.streaming.spark.types import spark_type
from spark_sinks.decode import DecodeColumn, RecordFunction, decode
from spark_sinks.decode import needs_schemas as formats_need_schemas
from spark_sinks.duckdb.record_columns import DELETED
from spark_sinks.schema_registry.base import NO_SCHEMAS, KnownSchemas

Stages = tuple[tuple[str, ...], ...]
"""Spark expressions, each stage over the columns of the one before."""


@dataclass(frozen=True)
class DecodedScan:
    """As :class:`spark_sinks.decode.Decoded`. ``good`` is a record that is a row; ``known`` one that is not rejected,
    which a changelog's deletion is too; ``primary_key`` are references that hold also in a deletion."""

    stages: Stages
    columns: Mapping[str, str]
    good: str
    known: str
    reason: str | None
    primary_key: tuple[str, ...] = ()
    functions: tuple[RecordFunction, ...] = ()


def needs_schemas(scan: Scan) -> bool:
    """Whether records are decoded by schemas of a registry."""
    return formats_need_schemas((scan.value_format, scan.key_format))


def decode_scan(scan: Scan, prefix: str, *, trial: bool, schemas: KnownSchemas = NO_SCHEMAS) -> DecodedScan:
    value_columns = [_column(c) for c in scan.columns if c.name not in scan.key_only]
    decoded = decode(scan.value_format, value_columns, "value", prefix, trial=trial, schemas=schemas)
    columns, functions = dict(decoded.columns), decoded.functions
    if scan.kind != "changelog":
        return DecodedScan(decoded.stages, columns, decoded.good, decoded.good, decoded.reason, functions=functions)
    if scan.derived is not None:  # a change log says itself which rows are gone
        key = tuple(columns[name] for name in scan.primary_key)
        good = f"({decoded.good} AND NOT {DELETED})"
        return DecodedScan(decoded.stages, columns, good, decoded.good, decoded.reason, key)
    if scan.key_format is None:
        key = tuple(columns[name] for name in scan.primary_key)
        return DecodedScan(decoded.stages, columns, decoded.good, decoded.good, decoded.reason, key, functions)
    declared = {c.name: c for c in scan.columns}
    of_key = [_column(declared[name]) for name in scan.primary_key]
    keyed = decode(scan.key_format, of_key, "key", f"{prefix}k", trial=trial, schemas=schemas)
    key_columns = dict(keyed.columns)
    stages = side_by_side(decoded.stages, keyed.stages)
    deleted = "value IS NULL"
    if scan.key_only:
        columns.update({name: key_columns[name] for name in scan.key_only})
        good = f"({decoded.good} AND {keyed.good})"
        known = f"CASE WHEN {deleted} THEN {keyed.good} ELSE {good} END"
        value_reason = f"coalesce({decoded.reason}, {keyed.reason})"
    else:
        good = decoded.good
        known = f"CASE WHEN {deleted} THEN {keyed.good} ELSE {good} END"
        value_reason = f"{decoded.reason}"
    primary_key = tuple(
        key_columns[name]
        if name in scan.key_only
        else f"CASE WHEN {deleted} THEN {key_columns[name]} ELSE {columns[name]} END"
        for name in scan.primary_key
    )
    reason = None
    if decoded.reason is not None and keyed.reason is not None:
        reason = f"CASE WHEN {deleted} THEN {_of_key(keyed.reason)} ELSE {value_reason} END"
    return DecodedScan(stages, columns, good, known, reason, primary_key, (*functions, *keyed.functions))


def _of_key(reason: str) -> str:
    """The words of a decoder of values, about a key."""
    return f"regexp_replace({reason}, '^the value ', 'the key ')"


def _column(column: ScanColumn) -> DecodeColumn:
    return DecodeColumn(column.name, spark_type(column.type), str(column.type), column.not_null, column.spelling)


def side_by_side(stages: Stages, others: Stages) -> Stages:
    """Two lists of stages as one: each depends on its own list only."""
    return tuple((*one, *other) for one, other in zip_longest(stages, others, fillvalue=()))
