"""Records the constant part of PostgreSQL 15's system catalog into ``mvserver/pgcatalog/static``.

Run by hand against a fresh PostgreSQL 15 when the reported server version changes:
``python tests/pgcatalog/record_static.py "host=127.0.0.1 user=postgres dbname=postgres"``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg

TARGET = Path(__file__).parents[2] / "mvserver" / "pgcatalog" / "static"

RELATIONS = """
    SELECT n.nspname || E'\\t' || c.relname || E'\\t' || c.relkind::text || E'\\t' || c.oid::text || E'\\t' ||
           string_agg(a.attname || ':' || replace(format_type(a.atttypid, a.atttypmod), ' ', '_')
               || CASE WHEN a.attnotnull THEN '!' ELSE '' END, ' ' ORDER BY a.attnum)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0
    GROUP BY n.nspname, c.relname, c.relkind, c.oid ORDER BY n.nspname DESC, c.relname
"""

OPERATORS = """
    SELECT * FROM pg_operator WHERE oprname NOT IN ('@', '@@', '~<=~', '~<~', '~>=~', '~>~')
    AND (oprleft = 0 OR oprleft = ANY (:types)) AND oprright = ANY (:types)
    AND NOT (oprname IN ('~~', '!~~') AND oprright = 'bytea'::regtype)
    AND NOT (oprname IN ('-', '@>', '<@') AND oprleft = 'jsonb'::regtype)
    AND NOT (oprname = '-' AND (oprleft, oprright) = ('time'::regtype, 'time'::regtype))
    AND NOT (oprname = '/' AND oprleft = 'interval'::regtype)
""".replace(
    ":types",
    "'{bool,int2,int4,int8,float4,float8,numeric,text,bytea,date,time,timestamp,timestamptz,interval,uuid,json,jsonb,oid}'"
    "::regtype[]",
)
"""Those that pull queries have."""

PROCEDURES_IN_USE = f"""
    SELECT unnest(ARRAY[typinput::oid, typoutput::oid, typreceive::oid, typsend::oid, typmodin::oid, typmodout::oid,
                        typanalyze::oid, typsubscript::oid]) FROM pg_type
    UNION SELECT amhandler::oid FROM pg_am UNION SELECT castfunc FROM pg_cast UNION SELECT rngcanonical FROM pg_range
    UNION SELECT rngsubdiff FROM pg_range UNION SELECT lanplcallfoid FROM pg_language
    UNION SELECT laninline FROM pg_language UNION SELECT lanvalidator FROM pg_language
    UNION SELECT oprcode FROM ({OPERATORS}) AS o
"""

ROWS = {
    "pg_type": "SELECT * FROM pg_type WHERE typrelid = 0 AND typelem NOT IN "
    "(SELECT oid FROM pg_type WHERE typrelid > 0)",
    "pg_proc": f"SELECT * FROM pg_proc WHERE oid IN ({PROCEDURES_IN_USE})",
    "pg_am": "SELECT * FROM pg_am",
    "pg_opclass": "SELECT * FROM pg_opclass",
    "pg_collation": "SELECT * FROM pg_collation WHERE collname IN ('default', 'C', 'POSIX', 'ucs_basic')",
    "pg_language": "SELECT * FROM pg_language WHERE lanname <> 'plpgsql'",
    "pg_range": "SELECT * FROM pg_range",
    "pg_cast": "SELECT * FROM pg_cast",
    "pg_tablespace": "SELECT * FROM pg_tablespace",
    "pg_opfamily": "SELECT * FROM pg_opfamily",
    "pg_operator": OPERATORS,
    "pg_description": "SELECT * FROM pg_description WHERE classoid IN ('pg_type'::regclass, 'pg_am'::regclass, "
    f"'pg_language'::regclass, 'pg_operator'::regclass) AND objoid IN (SELECT oid FROM ({OPERATORS}) AS o UNION ALL "
    "SELECT oid FROM pg_type WHERE typrelid = 0 UNION ALL SELECT oid FROM "
    "pg_am UNION ALL SELECT oid FROM pg_language WHERE lanname <> 'plpgsql')",
}


def main(conninfo: str) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute("SET bytea_output = 'hex'")
        lines = [row[0] for row in connection.execute(RELATIONS)]
        (TARGET / "relations.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for name, query in ROWS.items():
            with connection.cursor().copy(f"COPY ({query} ORDER BY 1, 2) TO STDOUT (FORMAT text, HEADER)") as copy:
                data = b"".join(bytes(part) for part in copy)
            (TARGET / f"{name}.tsv").write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1])
