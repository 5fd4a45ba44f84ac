"""The type oids of PREPARE's type list, and the SQL names to which EXECUTE's arguments are cast."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.types import Kind, SqlType, parse_type
from mvserver.types import oids

_NAMES = {
    oids.BOOL: "boolean", oids.BYTEA: "bytea", oids.CHAR: "text", oids.NAME: "text", oids.INT8: "bigint",
    oids.INT2: "smallint", oids.INT4: "integer", oids.TEXT: "text", oids.OID: "bigint", oids.JSON: "text",
    oids.FLOAT4: "real", oids.FLOAT8: "double precision", oids.UNKNOWN: "text", oids.BPCHAR: "text",
    oids.VARCHAR: "text", oids.DATE: "date", oids.TIME: "time", oids.TIMESTAMP: "timestamp",
    oids.TIMESTAMPTZ: "timestamptz", oids.INTERVAL: "interval", oids.NUMERIC: "numeric", oids.UUID: "uuid",
    oids.JSONB: "text",
}  # fmt: skip


_OWN_OIDS = {"uuid": oids.UUID, "json": oids.JSON, "jsonb": oids.JSONB, "oid": oids.OID}
"""Of types that no column is declared with."""


def oid_of_name(text: str) -> int:
    """Of a type as PREPARE's list has it; an array has no number of dimensions."""
    element = text.strip()
    while element.endswith("]") and element[:-1].rstrip().endswith("["):
        element = element[:-1].rstrip()[:-1].rstrip()
    oid = _OWN_OIDS.get(element.lower()) or _oid_of_type(parse_type(element))
    return oid if element == text.strip() else oids.ARRAY_OF[oid]


def _oid_of_type(declared: SqlType) -> int:
    oid = declared.kind.row.oid
    if oid is None or declared.is_nested or declared.kind is Kind.NULL:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"parameters of type {declared} are not supported",
            hint="Use a scalar type or an array of one.",
        )
    return oid


def type_of_oid(oid: int) -> str:
    element = oids.element_of(oid)
    name = _NAMES.get(oid) if element is None else f"{type_of_oid(element)}[]"
    if name is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"EXECUTE does not support a parameter of the type with oid {oid}",
            hint="Use the extended protocol's parameters.",
        )
    return name
