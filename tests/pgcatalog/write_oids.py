"""Writes the numbers of ``mvserver/types/oids.py`` from the recorded pg_type.

Run by hand after ``record_static.py``, or when a type is added to a list here:
``python -m tests.pgcatalog.write_oids``.
"""

from __future__ import annotations

from pathlib import Path

from mvserver.pgcatalog.static_data import rows_of

TARGET = Path(__file__).parents[2] / "mvserver" / "types" / "oids.py"
BEGIN, END = "# --- written by tests/pgcatalog/write_oids.py ---\n", "# --- end of what is written ---\n"

NAMED = (
    "bool", "bytea", "char", "name", "int8", "int2", "int2vector", "int4", "regproc", "text", "oid", "xid", "cid",
    "oidvector", "json", "xml", "pg_node_tree", "float4", "float8", "unknown", "inet", "aclitem", "bpchar", "varchar",
    "date", "time", "timestamp", "timestamptz", "interval", "timetz", "bit", "varbit", "numeric", "regprocedure",
    "regoper", "regoperator", "regclass", "regtype", "any", "anyarray", "void", "uuid", "pg_lsn", "jsonb",
    "regnamespace", "regrole",
)  # fmt: skip
"""Types that the code names."""

WITH_ARRAY = (
    "bool", "bytea", "char", "name", "int2", "int4", "text", "bpchar", "varchar", "int8", "float4", "float8", "oid",
    "aclitem", "timestamp", "date", "time", "timestamptz", "interval", "numeric", "json", "uuid", "jsonb", "regproc",
    "regclass", "regtype",
)  # fmt: skip
"""Types of which arrays are read and written."""

SIZED = (
    "bool", "int2", "int4", "int8", "float4", "float8", "oid", "date", "time", "timestamp", "timestamptz", "interval",
    "timetz", "uuid", "name", "char",
)  # fmt: skip
"""Types whose size RowDescription and pg_attribute show; the others have -1."""


def written() -> str:
    names, rows = rows_of("pg_type")
    at = {name: place for place, name in enumerate(names)}
    types = {str(row[at["typname"]]): row for row in rows}

    def number(name: str, column: str) -> str:
        return str(types[name][at[column]])

    lines = [f"{name.upper()} = {number(name, 'oid')}" for name in sorted(NAMED, key=lambda n: int(number(n, "oid")))]
    lines += ["", "ARRAY_OF: Mapping[int, int] = {"]
    lines += [f"    {name.upper()}: {number(name, 'typarray')}," for name in WITH_ARRAY]
    lines += ["}", "", "SIZES: Mapping[int, int] = {"]
    lines += [f"    {name.upper()}: {number(name, 'typlen')}," for name in SIZED]
    lines += ["}", "", "TYPE_NAMES: Mapping[int, str] = {"]
    lines += [f'    {name.upper()}: "{name}",' for name in NAMED]
    return "\n".join([*lines, "}", ""])


def main() -> None:
    head, _, rest = TARGET.read_text(encoding="utf-8").partition(BEGIN)
    TARGET.write_text(head + BEGIN + written() + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
