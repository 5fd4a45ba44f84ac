"""Columns whose values are in the names of folders, as ``day=2026-01-01/hour=3``: read, and written.

Names and values are escaped as Hive and Spark do it. NULL is a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spark_sinks.decode.carriers import from_text
from spark_sinks.decode.columns import DecodeColumn, Decoded, first_reason, null_reason, text, wrong_reason

NULL_NAME = "__HIVE_DEFAULT_PARTITION__"
_SPECIAL = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


def folder_of(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Of a record with these values, as texts."""
    return "/".join(f"{_escaped(name)}={_written(value)}" for name, value in zip(names, values, strict=True))


def decode_partitions(columns: Sequence[DecodeColumn], path: str, prefix: str) -> Decoded:
    """``path`` is an expression for a file's name with its folders. A record of a file without such a folder, or whose
    folder has no value of the column's type, is rejected."""
    reason = f"{prefix}w"
    found, values, typed, tests = [], [], [], []
    for at, column in enumerate(columns):
        given, value, result = (f"{prefix}{letter}{at}" for letter in "gvt")
        # Case is not looked at, as in Spark.
        pattern = text("(?i)(?:^|/)" + re.escape(_escaped(column.name)) + "=([^/]*)/")
        found.append(f"CASE WHEN {path} RLIKE {pattern} THEN regexp_extract({path}, {pattern}, 1) END AS {given}")
        unescaped = f"try_url_decode(replace({given}, '+', '%2B'))"
        values.append(f"CASE WHEN {given} <> '{NULL_NAME}' THEN {unescaped} END AS {value}")
        typed.append(f"{from_text(column.type, value)} AS {result}")
        absent = text(f'the name of the file has no value of partition column "{column.name}"')
        tests.append(f"WHEN {given} IS NULL THEN {absent}")
        tests.append(
            f"WHEN {given} <> '{NULL_NAME}' AND {result} IS NULL "
            f"THEN {wrong_reason(column, f'coalesce({value}, {given})')}"
        )
        if column.not_null:
            tests.append(f"WHEN {result} IS NULL THEN {null_reason(column)}")
    return Decoded(
        stages=(tuple(found), tuple(values), tuple(typed), (f"{first_reason(tests)} AS {reason}",)),
        columns=tuple((column.name, f"{prefix}t{at}") for at, column in enumerate(columns)),
        good=f"({reason} IS NULL)",
        reason=reason,
    )


def _escaped(part: str) -> str:
    return _SPECIAL.sub(lambda found: f"%{ord(found.group()):02X}", part)


def _written(value: str | None) -> str:
    if value is None:
        return NULL_NAME
    return value.replace("_", "%5F", 1) if value == NULL_NAME else _escaped(value)
