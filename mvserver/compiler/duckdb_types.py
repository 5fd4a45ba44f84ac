"""Our types as DuckDB spells them."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.quoting import quoted
from mvserver.sql.types import Kind, SqlType

_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.TINYINT: "TINYINT",
    Kind.SMALLINT: "SMALLINT",
    Kind.INTEGER: "INTEGER",
    Kind.BIGINT: "BIGINT",
    Kind.FLOAT: "REAL",
    Kind.DOUBLE: "DOUBLE",
    Kind.VARCHAR: "VARCHAR",
    Kind.VARBINARY: "BLOB",
    Kind.DATE: "DATE",
    Kind.TIME: "TIME",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMP_LTZ: "TIMESTAMPTZ",
    Kind.NULL: "VARCHAR",
}


def duckdb_type(type_: SqlType) -> str:
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({type_.precision},{type_.scale})"
    if type_.kind is Kind.ARRAY and type_.element:
        return f"{duckdb_type(type_.element)}[]"
    if type_.kind is Kind.MAP and type_.element and type_.key:
        return f"MAP({duckdb_type(type_.key)}, {duckdb_type(type_.element)})"
    if type_.kind is Kind.STRUCT:
        inner = ", ".join(f"{quoted(name)} {duckdb_type(field)}" for name, field in type_.fields)
        return f"STRUCT({inner})"
    if type_.kind in _TYPES:
        return _TYPES[type_.kind]
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED, f"type {type_} cannot be a column of a view", hint="Cast it to VARCHAR."
    )
