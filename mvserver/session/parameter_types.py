"""The type oids of PREPARE's type list, and the SQL names to which EXECUTE's arguments are cast."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.types import Kind, SqlType, parse_type
from mvserver.types import oids

_OIDS = {
    Kind.BOOLEAN: 16,
    Kind.VARBINARY: 17,
    Kind.BIGINT: 20,
    Kind.TINYINT: 21,
    Kind.SMALLINT: 21,
    Kind.INTEGER: 23,
    Kind.VARCHAR: 25,
    Kind.FLOAT: 700,
    Kind.DOUBLE: 701,
    Kind.DATE: 1082,
    Kind.TIME: 1083,
    Kind.TIMESTAMP: 1114,
    Kind.TIMESTAMP_LTZ: 1184,
    Kind.INTERVAL: 1186,
    Kind.DECIMAL: 1700,
}

_NAMES = {
    16: "boolean", 17: "bytea", 18: "text", 19: "text", 20: "bigint", 21: "smallint", 23: "integer", 25: "text",
    26: "bigint", 114: "text", 700: "real", 701: "double precision", 705: "text", 1042: "text", 1043: "text",
    1082: "date", 1083: "time", 1114: "timestamp", 1184: "timestamptz", 1186: "interval", 1700: "numeric",
    2950: "uuid", 3802: "text",
}  # fmt: skip


_OWN_OIDS = {"uuid": 2950, "json": 114, "jsonb": 3802, "oid": 26}
"""Of types that no column is declared with."""


def oid_of_name(text: str) -> int:
    """Of a type as PREPARE's list has it; an array has no number of dimensions."""
    element = text.strip()
    while element.endswith("]") and element[:-1].rstrip().endswith("["):
        element = element[:-1].rstrip()[:-1].rstrip()
    oid = _OWN_OIDS.get(element.lower()) or _oid_of_type(parse_type(element))
    return oid if element == text.strip() else oids.ARRAY_OF[oid]


def _oid_of_type(declared: SqlType) -> int:
    oid = _OIDS.get(declared.kind)
    if oid is None:
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
