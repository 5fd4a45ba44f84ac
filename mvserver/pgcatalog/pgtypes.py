"""PostgreSQL's type oids, sizes and modifiers for our types: what RowDescription and pg_attribute show."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.types import Kind, SqlType

BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT4, TEXT, OID = 16, 17, 18, 19, 20, 21, 23, 25, 26
JSON, FLOAT4, FLOAT8, BPCHAR, VARCHAR, DATE, TIME = 114, 700, 701, 1042, 1043, 1082, 1083
TIMESTAMP, TIMESTAMPTZ, INTERVAL, TIMETZ, NUMERIC, UUID, UNKNOWN, JSONB = 1114, 1184, 1186, 1266, 1700, 2950, 705, 3802

OWN_FIRST = 16_384  # of users' types: an even oid is an enum, the odd one after it the array of it


def is_own_array(oid: int) -> bool:
    return oid >= OWN_FIRST and oid % 2 == 1


ARRAY_OF: dict[int, int] = {
    BOOL: 1000, BYTEA: 1001, CHAR: 1002, NAME: 1003, INT2: 1005, INT4: 1007, TEXT: 1009, INT8: 1016, FLOAT4: 1021,
    FLOAT8: 1022, OID: 1028, TIMESTAMP: 1115, DATE: 1182, TIME: 1183, TIMESTAMPTZ: 1185, INTERVAL: 1187, NUMERIC: 1231,
    UUID: 2951, JSON: 199, JSONB: 3807, VARCHAR: 1015, BPCHAR: 1014, TIMETZ: 1270,
}  # fmt: skip
ELEMENT_OF = {array: element for element, array in ARRAY_OF.items()}

SIZES: dict[int, int] = {
    BOOL: 1, INT2: 2, INT4: 4, INT8: 8, FLOAT4: 4, FLOAT8: 8, OID: 4, DATE: 4, TIME: 8, TIMESTAMP: 8, TIMESTAMPTZ: 8,
    INTERVAL: 16, TIMETZ: 12, UUID: 16, NAME: 64, CHAR: 1,
}  # fmt: skip

_KINDS: dict[Kind, int] = {
    Kind.BOOLEAN: BOOL, Kind.TINYINT: INT2, Kind.SMALLINT: INT2, Kind.INTEGER: INT4, Kind.BIGINT: INT8,
    Kind.FLOAT: FLOAT4, Kind.DOUBLE: FLOAT8, Kind.VARCHAR: TEXT, Kind.VARBINARY: BYTEA, Kind.DATE: DATE,
    Kind.TIME: TIME, Kind.TIMESTAMP: TIMESTAMP, Kind.TIMESTAMP_LTZ: TIMESTAMPTZ, Kind.INTERVAL: INTERVAL,
    Kind.DECIMAL: NUMERIC, Kind.MAP: JSON, Kind.STRUCT: JSON, Kind.NULL: TEXT,
}  # fmt: skip


@dataclass(frozen=True)
class PgType:
    oid: int
    typmod: int = -1

    @property
    def size(self) -> int:
        return 4 if self.oid >= OWN_FIRST and not is_own_array(self.oid) else SIZES.get(self.oid, -1)


def numeric(precision: int, scale: int) -> PgType:
    return PgType(NUMERIC, ((precision << 16) | scale) + 4)


def array_of(element: PgType) -> PgType:
    """The array type; what has none (arrays of arrays of JSON and the like) is shown as JSON."""
    if element.oid in ELEMENT_OF or is_own_array(element.oid):
        return element  # PostgreSQL's arrays of arrays have the same type
    if element.oid >= OWN_FIRST:
        return PgType(element.oid + 1)
    return PgType(ARRAY_OF[element.oid], element.typmod) if element.oid in ARRAY_OF else PgType(JSON)


def of_sql_type(declared: SqlType) -> PgType:
    if declared.kind is Kind.DECIMAL and declared.precision is not None and declared.scale is not None:
        return numeric(declared.precision, declared.scale)
    if declared.kind is Kind.ARRAY and declared.element is not None:
        return array_of(of_sql_type(declared.element))
    return PgType(_KINDS[declared.kind])
