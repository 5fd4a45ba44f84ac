"""PostgreSQL's type oids: the one place where their numbers stand, and the names that errors give the types.

The numbers are written from the recorded pg_type of PostgreSQL 15; a test compares them. ``SIZES`` are bytes,
``TYPE_NAMES`` are pg_type's own names.
"""

from __future__ import annotations

from collections.abc import Mapping

# --- written by tests/pgcatalog/write_oids.py ---
BOOL = 16
BYTEA = 17
CHAR = 18
NAME = 19
INT8 = 20
INT2 = 21
INT2VECTOR = 22
INT4 = 23
REGPROC = 24
TEXT = 25
OID = 26
XID = 28
CID = 29
OIDVECTOR = 30
JSON = 114
XML = 142
PG_NODE_TREE = 194
FLOAT4 = 700
FLOAT8 = 701
UNKNOWN = 705
INET = 869
ACLITEM = 1033
BPCHAR = 1042
VARCHAR = 1043
DATE = 1082
TIME = 1083
TIMESTAMP = 1114
TIMESTAMPTZ = 1184
INTERVAL = 1186
TIMETZ = 1266
BIT = 1560
VARBIT = 1562
NUMERIC = 1700
REGPROCEDURE = 2202
REGOPER = 2203
REGOPERATOR = 2204
REGCLASS = 2205
REGTYPE = 2206
ANY = 2276
ANYARRAY = 2277
VOID = 2278
UUID = 2950
PG_LSN = 3220
JSONB = 3802
REGNAMESPACE = 4089
REGROLE = 4096

ARRAY_OF: Mapping[int, int] = {
    BOOL: 1000,
    BYTEA: 1001,
    CHAR: 1002,
    NAME: 1003,
    INT2: 1005,
    INT4: 1007,
    TEXT: 1009,
    BPCHAR: 1014,
    VARCHAR: 1015,
    INT8: 1016,
    FLOAT4: 1021,
    FLOAT8: 1022,
    OID: 1028,
    ACLITEM: 1034,
    TIMESTAMP: 1115,
    DATE: 1182,
    TIME: 1183,
    TIMESTAMPTZ: 1185,
    INTERVAL: 1187,
    NUMERIC: 1231,
    JSON: 199,
    UUID: 2951,
    JSONB: 3807,
    REGPROC: 1008,
    REGCLASS: 2210,
    REGTYPE: 2211,
}

SIZES: Mapping[int, int] = {
    BOOL: 1,
    INT2: 2,
    INT4: 4,
    INT8: 8,
    FLOAT4: 4,
    FLOAT8: 8,
    OID: 4,
    DATE: 4,
    TIME: 8,
    TIMESTAMP: 8,
    TIMESTAMPTZ: 8,
    INTERVAL: 16,
    TIMETZ: 12,
    UUID: 16,
    NAME: 64,
    CHAR: 1,
}

TYPE_NAMES: Mapping[int, str] = {
    BOOL: "bool",
    BYTEA: "bytea",
    CHAR: "char",
    NAME: "name",
    INT8: "int8",
    INT2: "int2",
    INT2VECTOR: "int2vector",
    INT4: "int4",
    REGPROC: "regproc",
    TEXT: "text",
    OID: "oid",
    XID: "xid",
    CID: "cid",
    OIDVECTOR: "oidvector",
    JSON: "json",
    XML: "xml",
    PG_NODE_TREE: "pg_node_tree",
    FLOAT4: "float4",
    FLOAT8: "float8",
    UNKNOWN: "unknown",
    INET: "inet",
    ACLITEM: "aclitem",
    BPCHAR: "bpchar",
    VARCHAR: "varchar",
    DATE: "date",
    TIME: "time",
    TIMESTAMP: "timestamp",
    TIMESTAMPTZ: "timestamptz",
    INTERVAL: "interval",
    TIMETZ: "timetz",
    BIT: "bit",
    VARBIT: "varbit",
    NUMERIC: "numeric",
    REGPROCEDURE: "regprocedure",
    REGOPER: "regoper",
    REGOPERATOR: "regoperator",
    REGCLASS: "regclass",
    REGTYPE: "regtype",
    ANY: "any",
    ANYARRAY: "anyarray",
    VOID: "void",
    UUID: "uuid",
    PG_LSN: "pg_lsn",
    JSONB: "jsonb",
    REGNAMESPACE: "regnamespace",
    REGROLE: "regrole",
}
# --- end of what is written ---

ELEMENT_OF: Mapping[int, int] = {array: element for element, array in ARRAY_OF.items()}

OWN_FIRST = 16_384
"""Types that users make begin here: an even oid is an enum, the odd one after it the array of it."""

NAMES: Mapping[int, str] = {
    BOOL: "boolean", BYTEA: "bytea", INT2: "smallint", INT4: "integer", INT8: "bigint", OID: "oid", FLOAT4: "real",
    FLOAT8: "double precision", NUMERIC: "numeric", DATE: "date", TIME: "time", TIMESTAMP: "timestamp",
    TIMESTAMPTZ: "timestamp with time zone", INTERVAL: "interval", UUID: "uuid", JSON: "json", JSONB: "jsonb",
}  # fmt: skip


def is_own_array(oid: int) -> bool:
    return oid >= OWN_FIRST and oid % 2 == 1


def element_of(oid: int) -> int | None:
    """The element type of an array type, None for other types."""
    return oid - 1 if is_own_array(oid) else ELEMENT_OF.get(oid)


def type_name(oid: int) -> str:
    """As PostgreSQL's errors spell a type."""
    if oid in ELEMENT_OF:
        return f"{type_name(ELEMENT_OF[oid])}[]"
    return NAMES.get(oid, "text")
