"""Types as PostgreSQL's error messages spell them."""

from __future__ import annotations

from mvserver.sql.types import Kind, SqlType

_NAMES = {
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "tinyint",
    Kind.SMALLINT: "smallint",
    Kind.INTEGER: "integer",
    Kind.BIGINT: "bigint",
    Kind.FLOAT: "real",
    Kind.DOUBLE: "double precision",
    Kind.DECIMAL: "numeric",
    Kind.VARCHAR: "text",
    Kind.VARBINARY: "bytea",
    Kind.DATE: "date",
    Kind.TIME: "time without time zone",
    Kind.TIMESTAMP: "timestamp without time zone",
    Kind.TIMESTAMP_LTZ: "timestamp with time zone",
    Kind.INTERVAL: "interval",
    Kind.NULL: "unknown",
}


def postgres_name(type_: SqlType) -> str:
    if type_.kind is Kind.ARRAY and type_.element is not None:
        return f"{postgres_name(type_.element)}[]"
    if type_.is_nested:
        return str(type_).lower()
    if type_.kind is Kind.VARCHAR and type_.length is not None:
        return "character varying"
    return _NAMES[type_.kind]
