"""PostgreSQL's names of DuckDB's types, and what a text that is no value of one is told."""

from __future__ import annotations

import re

from mvserver import sqlstates
from mvserver.errors import SqlError

WHOLE_NUMBER = re.compile(r"\s*[-+]?\d+\s*")


def bad_text(type_name: str, value: str) -> SqlError:
    """Of a text that is no value of DuckDB's type."""
    if pg_name(type_name) in ("smallint", "integer", "bigint") and WHOLE_NUMBER.fullmatch(value):
        return SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f'value "{value}" is out of range for type {pg_name(type_name)}'
        )
    if pg_name(type_name) == "numeric" and re.fullmatch(r"\s*[-+]?\d+\.?\d*\s*", value):
        return SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
    interval = pg_name(type_name) == "interval"
    return SqlError(
        sqlstates.INVALID_DATETIME_FORMAT if interval else sqlstates.INVALID_TEXT_REPRESENTATION,
        f'invalid input syntax for type {pg_name(type_name)}: "{value}"',
    )


_PG_NAMES = {
    "INT8": "smallint", "INT16": "smallint", "INT32": "integer", "INT64": "bigint", "INT128": "numeric",
    "DOUBLE": "double precision", "FLOAT": "real", "BOOL": "boolean", "VARCHAR": "text", "UINT32": "oid",
    "TINYINT": "smallint", "SMALLINT": "smallint", "INTEGER": "integer", "BIGINT": "bigint", "HUGEINT": "numeric",
    "BOOLEAN": "boolean", "UINTEGER": "oid", "STRING_LITERAL": "unknown", "INTEGER_LITERAL": "integer",
    "TIMESTAMP": "timestamp without time zone", "TIMESTAMP WITH TIME ZONE": "timestamp with time zone",
    "DECIMAL": "numeric", "BLOB": "bytea", "INT": "integer",
    "TIME": "time without time zone", "TIMESTAMPTZ": "timestamp with time zone",
}  # fmt: skip


def pg_name(name: str) -> str:
    """PostgreSQL's name of a type, without its length."""
    if name.endswith("[]"):
        return f"{pg_name(name[:-2])}[]"
    base = name.strip().split("(", 1)[0].upper()
    return _PG_NAMES.get(base, name.strip().lower())
