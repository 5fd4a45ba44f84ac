"""Columns of relations over a table, from the columns that the table has: their types in the server's own words."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver.types import oids
from spark_sinks.base import DeclaredColumn
from spark_sinks.postgresql.tables import SourceColumn, SourceTable, decimal_of

_TYPES = {
    oids.BOOL: "BOOLEAN",
    oids.BYTEA: "VARBINARY",
    oids.INT8: "BIGINT",
    oids.INT2: "SMALLINT",
    oids.INT4: "INTEGER",
    oids.OID: "BIGINT",
    oids.FLOAT4: "FLOAT",
    oids.FLOAT8: "DOUBLE",
    oids.DATE: "DATE",
    oids.TIME: "TIME",
    oids.TIMESTAMP: "TIMESTAMP",
    oids.TIMESTAMPTZ: "TIMESTAMP_LTZ",
}


def type_of(column: SourceColumn) -> str:
    """VARCHAR is for all that has no type of its own here: texts, JSON, arrays, enums, and numbers without a bound."""
    if column.base_type_oid == oids.NUMERIC and (digits := decimal_of(column.modifier)) is not None:
        return "DECIMAL({}, {})".format(*digits)
    return _TYPES.get(column.base_type_oid, "VARCHAR")


def changelog_columns(table: SourceTable) -> Sequence[DeclaredColumn]:
    return [
        DeclaredColumn(c.name, type_of(c), not_null=c.not_null or c.name in table.key, key=c.name in table.key)
        for c in table.published
    ]


def stream_columns(table: SourceTable) -> Sequence[DeclaredColumn]:
    """One record a change, as Debezium writes it."""
    row = "STRUCT<" + ", ".join(f"{_quoted(c.name)} {type_of(c)}" for c in table.published) + ">"
    source = "STRUCT<db VARCHAR, schema VARCHAR, table VARCHAR, lsn VARCHAR, txid BIGINT, ts_ms BIGINT, "
    return [
        DeclaredColumn("op", "VARCHAR", not_null=True),
        DeclaredColumn("before", row),
        DeclaredColumn("after", row),
        DeclaredColumn("source", source + "snapshot BOOLEAN>"),
        DeclaredColumn("ts_ms", "BIGINT"),
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
