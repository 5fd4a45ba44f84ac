"""The constant part of PostgreSQL 15's catalog, as recorded from a real server into ``static/``.

Columns of every pg_catalog and information_schema relation, and the rows of those relations that are the same on every
server (types, access methods, casts ...). An empty relation with the right columns beats a missing one: clients join
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from mvserver.types import oids

_FOLDER = "static"
ROW_FILES = (
    "pg_type", "pg_proc", "pg_am", "pg_opclass", "pg_collation", "pg_language", "pg_range", "pg_cast", "pg_tablespace",
    "pg_opfamily", "pg_operator", "pg_amop", "pg_amproc", "pg_ts_parser", "pg_ts_template", "pg_ts_dict",
    "pg_ts_config", "pg_ts_config_map", "pg_description",
)  # fmt: skip

PG_CATALOG, INFORMATION_SCHEMA = "pg_catalog", "information_schema"
PG_CATALOG_OID, INFORMATION_SCHEMA_OID = 11, 13207

_DUCK_TYPES: dict[str, str] = {
    "oid": "UINTEGER", "regproc": "UINTEGER", "regtype": "UINTEGER", "xid": "UINTEGER", "boolean": "BOOLEAN",
    "smallint": "SMALLINT", "integer": "INTEGER", "bigint": "BIGINT", "real": "FLOAT", "double_precision": "DOUBLE",
    "numeric": "DECIMAL(38, 0)", "timestamp_with_time_zone": "TIMESTAMP WITH TIME ZONE", "interval": "INTERVAL",
    "bytea": "BLOB", "int2vector": "SMALLINT[]", "oidvector": "UINTEGER[]",
    "information_schema.cardinal_number": "INTEGER", "information_schema.time_stamp": "TIMESTAMP WITH TIME ZONE",
}  # fmt: skip

_PG_OIDS: dict[str, int] = {
    "boolean": oids.BOOL, '"char"': oids.CHAR, "name": oids.NAME, "bigint": oids.INT8, "smallint": oids.INT2,
    "int2vector": oids.INT2VECTOR, "integer": oids.INT4, "regproc": oids.REGPROC, "text": oids.TEXT, "oid": oids.OID,
    "xid": oids.XID, "oidvector": oids.OIDVECTOR, "pg_node_tree": oids.PG_NODE_TREE, "real": oids.FLOAT4,
    "double_precision": oids.FLOAT8, "inet": oids.INET, "timestamp_with_time_zone": oids.TIMESTAMPTZ,
    "interval": oids.INTERVAL, "numeric": oids.NUMERIC, "regtype": oids.REGTYPE, "pg_lsn": oids.PG_LSN,
    "bytea": oids.BYTEA, "aclitem": oids.ACLITEM, "anyarray": oids.ANYARRAY,
    "information_schema.cardinal_number": oids.INT4, "information_schema.time_stamp": oids.TIMESTAMPTZ,
    "information_schema.sql_identifier": oids.NAME, "information_schema.character_data": oids.VARCHAR,
    "information_schema.yes_or_no": oids.VARCHAR,
}  # fmt: skip
_ARRAYS = frozenset({
    "smallint", "text", "oid", "name", '"char"', "real", "aclitem", "double_precision", "boolean", "regtype",
})  # fmt: skip


@dataclass(frozen=True)
class StaticColumn:
    name: str
    pg_type: str  # as format_type spells it, blanks as underscores
    not_null: bool

    @property
    def quoted(self) -> str:
        return f'"{self.name}"'

    @property
    def duck_type(self) -> str:
        if self.pg_type == "regtype[]":
            return "VARCHAR[]"  # the names: what clients see of it
        if self.pg_type.endswith("[]"):
            return f"{_DUCK_TYPES.get(self.pg_type[:-2], 'VARCHAR')}[]"
        return _DUCK_TYPES.get(self.pg_type, "VARCHAR")

    @property
    def pg_oid(self) -> int:
        element = self.pg_type.removesuffix("[]")
        if element != self.pg_type and element in _ARRAYS:
            return oids.ARRAY_OF[_PG_OIDS[element]]
        return _PG_OIDS.get(self.pg_type, oids.TEXT)


@dataclass(frozen=True)
class StaticRelation:
    schema: str
    name: str
    kind: str
    oid: int
    columns: tuple[StaticColumn, ...]


@cache
def relations() -> tuple[StaticRelation, ...]:
    result = []
    for line in _read("relations").splitlines():
        schema, name, kind, oid, columns = line.split("\t")
        parsed = []
        for column in columns.split(" "):
            column_name, _, pg_type = column.partition(":")
            parsed.append(StaticColumn(column_name, pg_type.removesuffix("!"), pg_type.endswith("!")))
        result.append(StaticRelation(schema, name, kind, int(oid), tuple(parsed)))
    return tuple(result)


@cache
def relation(schema: str, name: str) -> StaticRelation | None:
    return next((item for item in relations() if item.schema == schema and item.name == name), None)


@cache
def type_names() -> dict[str, int]:
    """pg_type's own names and the SQL spellings to oids: what ::regtype and to_regtype accept."""
    names, rows = rows_of("pg_type")
    oid, typname = names.index("oid"), names.index("typname")
    result = {row[typname] or "": int(row[oid] or 0) for row in rows}
    spellings = {
        "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
        "float8": "double precision", "varchar": "character varying", "bpchar": "character", "timetz":
        "time with time zone", "timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone",
        "time": "time without time zone", "varbit": "bit varying",
    }  # fmt: skip
    for short, long in spellings.items():
        result[long] = result[short]
    result["int"] = result["int4"]
    result["decimal"] = result["numeric"]
    result.update({f"{name}[]": result[f"_{name}"] for name in list(result) if f"_{name}" in result})
    for short, long in spellings.items():
        if f"{short}[]" in result:
            result[f"{long}[]"] = result[f"{short}[]"]
    return result


@cache
def type_spellings() -> dict[int, str]:
    """How SQL spells the type of an oid; format_type without modifiers."""
    return {oid: name for name, oid in type_names().items() if name.removesuffix("[]") not in ("int", "decimal")}


@cache
def procedure_names() -> dict[str, int]:
    names, rows = rows_of("pg_proc")
    oid, proname = names.index("oid"), names.index("proname")
    return {row[proname] or "": int(row[oid] or 0) for row in rows}


@cache
def procedure_columns() -> frozenset[str]:
    """Names of the columns of type regproc."""
    return frozenset(column.name for item in relations() for column in item.columns if column.pg_type == "regproc")


@cache
def rows_of(name: str) -> tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]:
    """Column names and rows, as COPY's text format has them."""
    header, *lines = _read(name).splitlines()
    columns = tuple(header.split("\t"))
    return columns, tuple(tuple(_cell(cell) for cell in line.split("\t")) for line in lines)


def _cell(text: str) -> str | None:
    if text == r"\N":
        return None
    if "\\" not in text:
        return text
    return text.replace("\\t", "\t").replace("\\n", "\n").replace("\\\\", "\\")


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(_FOLDER, f"{name}.tsv").read_text(encoding="utf-8")


@cache
def timezone_abbreviations() -> dict[str, str]:
    """PostgreSQL's default set, in lower case: seconds east of Greenwich, or the zone in which it is used."""
    text = resources.files(__package__).joinpath(_FOLDER, "timezone_abbreviations.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines())
    return {abbreviation.lower(): meant for abbreviation, meant in rows}
