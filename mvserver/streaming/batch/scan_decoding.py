"""A scan's records as typed columns: from the value, and for a changelog also from the key.

A changelog's record without a value is no mistake: it deletes the row whose primary key it carries in its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from mvserver.compiler.plans import RecordSchema, Scan, ScanColumn
from mvserver.record_keys import field_of_key
from mvserver.streaming.spark.types import spark_type
from spark_sinks.decode import (
    CheckFunction,
    DecodeColumn,
    Decoded,
    RecordFunction,
    decode,
    decode_checked,
    decode_described,
)
from spark_sinks.decode import needs_schemas as formats_need_schemas
from spark_sinks.decode.partitions import decode_partitions
from spark_sinks.duckdb.record_columns import DELETED
from spark_sinks.schema_registry.base import NO_SCHEMAS, KnownSchemas, RegisteredSchema
from spark_sinks.schema_registry.descriptors import DescribedSchema

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
    functions: tuple[RecordFunction | CheckFunction, ...] = ()


def needs_schemas(scan: Scan) -> bool:
    """Whether records are decoded by schemas of a registry."""
    return scan.value_checked or formats_need_schemas(
        format_
        for format_, schema in ((scan.value_format, scan.value_schema), (scan.key_format, scan.key_schema))
        if schema is None
    )


def decode_scan(scan: Scan, prefix: str, *, trial: bool, schemas: KnownSchemas = NO_SCHEMAS) -> DecodedScan:
    value_columns = [_column(c) for c in scan.value_columns if c.name not in scan.key_only]
    if scan.value_schema is not None:
        decoded = decode_described(value_columns, "value", prefix, _described(scan.value_schema))
    elif scan.value_checked:
        decoded = decode_checked(value_columns, "value", prefix, schemas, trial=trial)
    else:
        decoded = decode(
            scan.value_format, value_columns, "value", prefix,
            trial=trial, schemas=schemas, delimiter=scan.value_delimiter,
        )  # fmt: skip
    if scan.partition_columns:
        in_folders = [_column(c) for c in scan.columns if c.name in scan.partition_columns]
        decoded = _beside(decoded, decode_partitions(in_folders, "position", f"{prefix}p"))
    columns, functions = dict(decoded.columns), decoded.functions
    if scan.kind != "changelog":
        if scan.key_format is not None and scan.key_only:
            return _with_key(scan, decoded, prefix, trial=trial, schemas=schemas)
        return DecodedScan(decoded.stages, columns, decoded.good, decoded.good, decoded.reason, functions=functions)
    if scan.derived is not None:  # a change log says itself which rows are gone
        key = tuple(columns[name] for name in scan.primary_key)
        good = f"({decoded.good} AND NOT {DELETED})"
        return DecodedScan(decoded.stages, columns, good, decoded.good, decoded.reason, key)
    if scan.key_format is None:
        key = tuple(columns[name] for name in scan.primary_key)
        return DecodedScan(decoded.stages, columns, decoded.good, decoded.good, decoded.reason, key, functions)
    declared = {c.name: c for c in scan.columns}
    keyed = _decode_key(scan, [declared[name] for name in scan.primary_key], prefix, trial=trial, schemas=schemas)
    key_columns = dict(keyed.columns)
    stages = side_by_side(decoded.stages, keyed.stages)
    deleted = "value IS NULL"
    if scan.key_only:
        columns.update({name: key_columns[name] for name in scan.key_only})
        good = f"({decoded.good} AND {keyed.good})"
        known = f"CASE WHEN {deleted} THEN {keyed.good} ELSE {good} END"
        value_reason = f"coalesce({decoded.reason}, {_of_key(f'{keyed.reason}')})"
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


def _decode_key(
    scan: Scan, columns: Sequence[ScanColumn], prefix: str, *, trial: bool, schemas: KnownSchemas
) -> Decoded:
    assert scan.key_format is not None  # noqa: S101 - asked by who calls
    fields = {field_of_key(column.name): column.name for column in columns}
    of_key = [_column(replace(column, name=field_of_key(column.name))) for column in columns]
    if scan.key_schema is not None:
        keyed = decode_described(of_key, "key", f"{prefix}k", _described(scan.key_schema))
    else:
        keyed = decode(scan.key_format, of_key, "key", f"{prefix}k", trial=trial, schemas=schemas)
    return replace(keyed, columns=tuple((fields[name], text) for name, text in keyed.columns))


def _with_key(scan: Scan, values: Decoded, prefix: str, *, trial: bool, schemas: KnownSchemas) -> DecodedScan:
    """A stream whose rows have columns of the key. A record without a key is a row in which they are NULL."""
    in_key = [column for column in scan.columns if column.name in scan.key_only]
    keyed = _decode_key(scan, in_key, prefix, trial=trial, schemas=schemas)
    good = f"({values.good} AND (key IS NULL OR {keyed.good}))"
    reason = None
    if values.reason is not None and keyed.reason is not None:
        of_key = f"CASE WHEN key IS NOT NULL THEN {_of_key(keyed.reason)} END"
        reason = f"coalesce({values.reason}, {of_key})"
    columns = {**dict(values.columns), **dict(keyed.columns)}
    stages = side_by_side(values.stages, keyed.stages)
    return DecodedScan(stages, columns, good, good, reason, functions=(*values.functions, *keyed.functions))


def _described(schema: RecordSchema) -> DescribedSchema:
    known = RegisteredSchema(0, schema.kind, schema.text, schema.references)
    return DescribedSchema(known, schema.places)


def _beside(values: Decoded, folders: Decoded) -> Decoded:
    """A record's value and what the folders of its file say. A trial has no reason, and keeps none."""
    return replace(
        values,
        stages=side_by_side(values.stages, folders.stages),
        columns=(*values.columns, *folders.columns),
        good=f"({values.good} AND {folders.good})",
        reason=None if values.reason is None else f"coalesce({values.reason}, {folders.reason})",
    )


def _of_key(reason: str) -> str:
    """The words of a decoder of values, about a key."""
    return f"regexp_replace({reason}, '^the value ', 'the key ')"


def _column(column: ScanColumn) -> DecodeColumn:
    return DecodeColumn(column.name, spark_type(column.type), str(column.type), column.not_null, column.spelling)


def side_by_side(stages: Stages, others: Stages) -> Stages:
    """Two lists of stages as one: each depends on its own list only."""
    return tuple((*one, *other) for one, other in zip_longest(stages, others, fillvalue=()))
