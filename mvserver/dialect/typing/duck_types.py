"""DuckDB's types as PostgreSQL's, and the cast that makes a column fit the wire where the two differ."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from mvserver.dialect.functions import enums
from mvserver.pgcatalog import pgtypes
from mvserver.pgcatalog.pgtypes import PgType
from mvserver.sql.types import Kind
from mvserver.types import oids

_SIMPLE: dict[str, int] = {
    **{kind.row.duckdb_printed: kind.row.oid for kind in Kind if kind.row.duckdb_printed and kind.row.oid},
    "UUID": oids.UUID, "JSON": oids.JSON, "UINTEGER": oids.OID,
}  # fmt: skip

_PRINTED: dict[str, str] = {
    kind.row.duckdb: kind.row.printed
    for kind in Kind
    if kind.row.duckdb and kind.row.printed and kind.row.duckdb != kind.row.printed
}
_WORD = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|\w+""")

_CASTS: dict[str, tuple[PgType, str]] = {
    "TINYINT": (PgType(oids.INT2), "SMALLINT"),
    "UTINYINT": (PgType(oids.INT2), "SMALLINT"),
    "USMALLINT": (PgType(oids.INT4), "INTEGER"),
    "UBIGINT": (PgType(oids.NUMERIC), "DECIMAL(38, 0)"),
    "HUGEINT": (PgType(oids.NUMERIC), "DECIMAL(38, 0)"),
    "UHUGEINT": (PgType(oids.NUMERIC), "DECIMAL(38, 0)"),
    "BIGNUM": (PgType(oids.TEXT), "VARCHAR"),
    "TIME WITH TIME ZONE": (PgType(oids.TEXT), "VARCHAR"),
    "TIMESTAMP_S": (PgType(oids.TIMESTAMP), "TIMESTAMP"),
    "TIMESTAMP_MS": (PgType(oids.TIMESTAMP), "TIMESTAMP"),
    "TIMESTAMP_NS": (PgType(oids.TIMESTAMP), "TIMESTAMP"),
    "BIT": (PgType(oids.TEXT), "VARCHAR"),
    '"NULL"': (PgType(oids.TEXT), "VARCHAR"),
    "UNKNOWN": (PgType(oids.TEXT), "VARCHAR"),
}

_DECIMAL = re.compile(r"^DECIMAL\((\d+),\s*(\d+)\)$")
_LIST = re.compile(r"^(?P<element>.*)\[\d*\]$", re.S)

_NO_DOCUMENT = re.compile(
    r"(?<!\w)(TUPLE|UNION|VARIANT|ENUM|U?HUGEINT|U(TINY|SMALL|BIG)?INT(EGER)?|BIGNUM|BIT|UUID|JSON|INTERVAL|TIMESTAMP_\w+|"
    r"TIME WITH TIME ZONE|UNKNOWN)(?!\w)"
)
_OWN_FORMS = re.compile(r"(?<!\w)(FLOAT|DOUBLE|DECIMAL|BLOB|DATE|TIME|TIMESTAMP)(?!\w)")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')

PARAMETER_CASTS: dict[int, str] = {
    **{oid: name for name, oid in _SIMPLE.items() if name not in _CASTS},
    oids.VARCHAR: "VARCHAR", oids.BPCHAR: "VARCHAR", oids.NAME: "VARCHAR", oids.CHAR: "VARCHAR", oids.JSONB: "JSON",
}  # fmt: skip


_INSIDE: dict[int, int] = {
    **dict.fromkeys(
        (oids.VARCHAR, oids.BPCHAR, oids.NAME, oids.CHAR, oids.PG_NODE_TREE, oids.INET, oids.PG_LSN), oids.TEXT
    ),
    **dict.fromkeys((oids.ARRAY_OF[oids.NAME], oids.ARRAY_OF[oids.CHAR], oids.ARRAY_OF[oids.ACLITEM]),
                    oids.ARRAY_OF[oids.TEXT]),
    oids.JSONB: oids.JSON, oids.XID: oids.OID,
    oids.INT2VECTOR: oids.ARRAY_OF[oids.INT2], oids.OIDVECTOR: oids.ARRAY_OF[oids.OID],
}  # fmt: skip
"""What has a type of its own to a client, and inside a query another one's values."""


@dataclass(frozen=True)
class OutputType:
    """``cast`` is the DuckDB type that the column must be cast to first, None where it is right as it is."""

    pg: PgType
    cast: str | None = None

    def shown_as(self, declared: PgType) -> OutputType:
        """As of the type that its column is declared with, where that has the same values; else as it is."""
        same = declared.oid == self.pg.oid or _INSIDE.get(declared.oid) == self.pg.oid
        return replace(self, pg=declared) if same else self


def output_type(duck: str) -> OutputType:
    """By the type's name as DuckDB prints it, or as it is written here."""
    duck = _WORD.sub(lambda word: _PRINTED.get(word[0], word[0]), duck)  # also within nested types
    if duck in _CASTS:
        pg, cast = _CASTS[duck]
        return OutputType(pg, cast)
    if duck in _SIMPLE:
        return OutputType(PgType(_SIMPLE[duck]))
    decimal = _DECIMAL.match(duck)
    if decimal:
        return OutputType(pgtypes.numeric(int(decimal[1]), int(decimal[2])))
    enum = enums.known(duck)
    if enum is not None:
        return OutputType(PgType(enum.oid), "VARCHAR")
    if duck.startswith("ENUM(") and not duck.endswith("]"):
        return OutputType(PgType(oids.TEXT), "VARCHAR")
    if duck.startswith(("STRUCT(", "MAP(", "UNION(", "VARIANT")) and not duck.endswith("]"):
        return OutputType(PgType(oids.JSON), None if _is_written_here(duck) else "JSON")
    array = _LIST.match(duck)
    if array:
        return _array(array["element"])
    return OutputType(PgType(oids.TEXT), "VARCHAR")


def is_fraction(duck: str) -> bool:
    """Whether it is a numeric without digits before its point, of which DuckDB's texts have none: ``.50``."""
    decimal = _DECIMAL.match(duck)
    return decimal is not None and decimal[1] == decimal[2]


def fields_of(duck: str) -> Sequence[tuple[str, str]]:
    """Names and types of what a STRUCT, a TUPLE (without names) or a MAP (``key``, ``value``) is made of."""
    inner = duck[duck.index("(") + 1 : -1]
    ends, depth = [], 0
    for mark in _MARK.finditer(inner):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if mark[0] == "," and not depth:
            ends.append(mark.start())
    parts = [inner[a + 1 : b].strip() for a, b in itertools.pairwise([-1, *ends, len(inner)])]
    if duck.startswith("MAP("):
        return list(zip(("key", "value"), parts, strict=True))
    return [_field(part) for part in parts] if duck.startswith("STRUCT(") else [("", part) for part in parts]


_MARK = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|[(),]""")
_FIELD = re.compile(r"""(?:"((?:[^"]|"")*)"|(\S+)) (.*)""", re.S)


def _field(part: str) -> tuple[str, str]:
    found = _FIELD.fullmatch(part)
    assert found is not None, part  # noqa: S101 - as DuckDB prints it
    return (found[2] if found[1] is None else found[1].replace('""', '"')), found[3]


def _is_written_here(duck: str) -> bool:
    """Whether a nested value is to be written by ``types.json``, as PostgreSQL writes all that is in it. DuckDB's own
    documents are quicker, but have words for NaN that are no JSON, more digits of a FLOAT than it has, fewer of a
    numeric, and bytes and times in forms of its own."""
    types = _QUOTED.sub("", duck)
    return _OWN_FORMS.search(types) is not None and _NO_DOCUMENT.search(types) is None


def _array(element: str) -> OutputType:
    inner = output_type(element)
    whole = pgtypes.array_of(inner.pg)
    if whole.oid == oids.JSON:
        return OutputType(PgType(oids.JSON), "JSON")
    return OutputType(whole, f"{inner.cast}[]" if inner.cast else None)


def parameter_oid(duck: str) -> int:
    """What Describe says of a parameter whose type DuckDB inferred; text where it did not."""
    found = output_type(duck).pg.oid
    return oids.TEXT if found == oids.UNKNOWN else found


def parameter_cast(oid: int) -> str | None:
    """The DuckDB type by which a parameter with a client's oid is bound; None for an unknown one."""
    if oid == oids.NUMERIC:
        return "DECIMAL(38, 10)"
    if oid in oids.ELEMENT_OF:
        element = parameter_cast(oids.ELEMENT_OF[oid])
        return f"{element}[]" if element else None
    return PARAMETER_CASTS.get(oid)


_ARROW: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(), "VARCHAR": pa.string(), "BLOB": pa.binary(), "DATE": pa.date32(), "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"), "UINTEGER": pa.uint32(), "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}  # fmt: skip


def arrow_type(duck: str) -> pa.DataType | None:
    """For types whose Python values make the same Arrow array as DuckDB would; None for the others."""
    decimal = _DECIMAL.match(duck)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _ARROW.get(duck)
