"""Rows of Parquet files, which Spark has typed: what is left to check is what the types do not say."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VarcharType

from spark_sinks.decode.carriers import is_nested, one_entry_a_key
from spark_sinks.decode.columns import (
    NUL,
    DecodeColumn,
    Decoded,
    first_reason,
    null_reason,
    parquet_column,
    quoted,
    text,
    wrong_reason,
)
from spark_sinks.decode.format import Format


def decode_parquet(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    """A text that is too long or that no text can hold rejects a row, as does a NULL that must not be."""
    reason = f"{prefix}w"
    tests = []
    for column in columns:
        typed = parquet_column(column.name)
        wrong = _wrong(column.type, typed)
        if wrong is not None:
            given = f"to_json({typed})" if is_nested(column.type) else f"make_valid_utf8({typed})"
            tests.append(f"WHEN {wrong} THEN {wrong_reason(column, given)}")
        if column.not_null:
            tests.append(f"WHEN {typed} IS NULL THEN {null_reason(column)}")
    return Decoded(
        stages=((f"{first_reason(tests)} AS {reason}",),),
        columns=tuple((c.name, _with_one_entry_a_key(c.type, parquet_column(c.name))) for c in columns),
        good=f"({reason} IS NULL)",
        reason=reason,
    )


def _wrong(kind: DataType, value: str, depth: int = 0) -> str | None:
    """A condition that is true where a text in the value is none of its type; None where it has no text."""
    item = f"p{depth}"
    if isinstance(kind, (StringType, VarcharType)):
        long = f" OR char_length({value}) > {kind.length}" if isinstance(kind, VarcharType) else ""
        return f"(contains({value}, {NUL}) OR NOT is_valid_utf8({value}){long})"
    if isinstance(kind, ArrayType):
        inner = _wrong(kind.elementType, item, depth + 1)
        return None if inner is None else f"exists({value}, {item} -> {inner})"
    if isinstance(kind, MapType):
        pairs = ((kind.keyType, f"{item}.key"), (kind.valueType, f"{item}.value"))
        inner = _any_of([_wrong(each, part, depth + 1) for each, part in pairs])
        return None if inner is None else f"exists(map_entries({value}), {item} -> {inner})"
    if isinstance(kind, StructType):
        return _any_of([_wrong(f.dataType, f"{value}.{quoted(f.name)}", depth) for f in kind.fields])
    return None


def _any_of(tests: Sequence[str | None]) -> str | None:
    kept = [f"coalesce({test}, false)" for test in tests if test is not None]
    return f"({' OR '.join(kept)})" if kept else None


def _with_one_entry_a_key(kind: DataType, value: str, depth: int = 0) -> str:
    """Files may hold a map with a key twice; Spark and DuckDB do not."""
    if not _has_map(kind):
        return value
    item = f"m{depth}"
    if isinstance(kind, MapType):
        if not _has_map(kind.valueType):
            return one_entry_a_key(value)
        inner = _with_one_entry_a_key(kind.valueType, f"{item}.value", depth + 1)
        return (
            f"map_from_entries(transform(map_entries({value}), {item} -> struct({item}.key as key, {inner} as value)))"
        )
    if isinstance(kind, ArrayType):
        return f"transform({value}, {item} -> {_with_one_entry_a_key(kind.elementType, item, depth + 1)})"
    fields = kind.fields if isinstance(kind, StructType) else []
    parts = ", ".join(
        f"{text(f.name)}, {_with_one_entry_a_key(f.dataType, f'{value}.{quoted(f.name)}', depth)}" for f in fields
    )
    return f"CASE WHEN {value} IS NOT NULL THEN named_struct({parts}) END"


def _has_map(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_map(f.dataType) for f in kind.fields)
    return isinstance(kind, MapType)


PARQUET = Format("parquet", decode_parquet, typed_by_spark=True)
