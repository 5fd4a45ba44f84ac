"""Our types as DuckDB spells them."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.quoting import quoted
from mvserver.sql.types import Kind, SqlType


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
    if type_.kind.row.duckdb is not None:
        return type_.kind.row.duckdb
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED, f"type {type_} cannot be a column of a view", hint="Cast it to VARCHAR."
    )
