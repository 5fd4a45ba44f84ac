"""Records the constant part of PostgreSQL 15's system catalog into ``mvserver/pgcatalog/static``.

Run by hand against a fresh PostgreSQL 15 when the reported server version changes:
``python -m tests.pgcatalog.record_static "host=127.0.0.1 user=postgres dbname=postgres"``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import psycopg

from mvserver.errors import SqlError
from tests.serving.world import World

TARGET = Path(__file__).parents[2] / "mvserver" / "pgcatalog" / "static"

RELATIONS = """
    SELECT n.nspname || E'\\t' || c.relname || E'\\t' || c.relkind::text || E'\\t' || c.oid::text || E'\\t' ||
           string_agg(a.attname || ':' || replace(format_type(a.atttypid, a.atttypmod), ' ', '_')
               || CASE WHEN a.attnotnull THEN '!' ELSE '' END, ' ' ORDER BY a.attnum)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0
    GROUP BY n.nspname, c.relname, c.relkind, c.oid ORDER BY n.nspname DESC, c.relname
"""

TYPES = (
    "'{bool,int2,int4,int8,float4,float8,numeric,text,bytea,date,time,timestamp,timestamptz,interval,uuid,json,jsonb,oid}'"
    "::regtype[]"
)

OPERATORS = """
    SELECT * FROM pg_operator WHERE oprname NOT IN ('@', '@@', '~<=~', '~<~', '~>=~', '~>~')
    AND (oprleft = 0 OR oprleft = ANY (:types)) AND oprright = ANY (:types)
    AND NOT (oprname IN ('~~', '!~~') AND oprright = 'bytea'::regtype)
    AND NOT (oprname IN ('-', '@>', '<@') AND oprleft = 'jsonb'::regtype)
    AND NOT (oprname = '-' AND (oprleft, oprright) = ('time'::regtype, 'time'::regtype))
    AND NOT (oprname = '/' AND oprleft = 'interval'::regtype)
""".replace(":types", TYPES)
"""Those that pull queries have."""

SUPPORT = f"""
    SELECT oid, amprocfamily, amproclefttype, amprocrighttype, amprocnum, amproc::oid FROM pg_amproc
    WHERE amproclefttype = ANY ({TYPES}) AND amprocrighttype = ANY ({TYPES})
"""
"""The support functions of index access methods for these types."""

PROCEDURES_IN_USE = f"""
    SELECT unnest(ARRAY[typinput::oid, typoutput::oid, typreceive::oid, typsend::oid, typmodin::oid, typmodout::oid,
                        typanalyze::oid, typsubscript::oid]) FROM pg_type
    UNION SELECT amhandler::oid FROM pg_am UNION SELECT castfunc FROM pg_cast UNION SELECT rngcanonical FROM pg_range
    UNION SELECT rngsubdiff FROM pg_range UNION SELECT lanplcallfoid FROM pg_language
    UNION SELECT laninline FROM pg_language UNION SELECT lanvalidator FROM pg_language
    UNION SELECT oprcode FROM ({OPERATORS}) AS o UNION SELECT amproc FROM ({SUPPORT}) AS s
    UNION SELECT unnest(ARRAY[prsstart::oid, prstoken::oid, prsend::oid, prsheadline::oid, prslextype::oid])
    FROM pg_ts_parser UNION SELECT unnest(ARRAY[tmplinit::oid, tmpllexize::oid]) FROM pg_ts_template
"""

FUNCTIONS = """
    SELECT oid, proname, prokind::text,
           ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) WITH ORDINALITY AS u (t, n) ORDER BY n)
    FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a', 'w')
    AND prorettype NOT IN ('internal'::regtype, 'cstring'::regtype) AND NOT EXISTS (
        SELECT 1 FROM unnest(proargtypes) AS t WHERE t <> ALL (
            '{bool,int2,int4,int8,float4,float8,numeric,text,bytea,date,time,timestamp,timestamptz,interval,uuid,json,jsonb,oid,'
            'anyelement,anyarray,anycompatible,anycompatiblearray,_text}'::regtype[]) AND t <> '"any"'::regtype)
    ORDER BY oid
"""
"""Built-in functions over types that pull queries have."""

WITH_CONSTANTS = frozenset({
    "date_trunc", "date_part", "extract", "format", "percentile_cont", "percentile_disc", "pg_sleep", "to_char",
    "to_date", "to_timestamp",
})  # fmt: skip
"""Functions that pull queries have where an argument is a constant, or in a clause of its own."""

_STAND_INS = {"anyelement": "text", "anyarray": "integer[]", "anycompatible": "text", "anycompatiblearray": "text[]",
              '"any"': "text"}  # fmt: skip


def supported(connection: psycopg.Connection[tuple[object, ...]]) -> list[int]:
    """The oids of the built-in functions whose call our own planner accepts."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        for oid, name, kind, types in connection.execute(FUNCTIONS):
            arguments = ", ".join(f"CAST(NULL AS {_STAND_INS.get(kind_of, kind_of)})" for kind_of in types)  # type: ignore[attr-defined]
            try:
                world.plan(f"SELECT {name}({arguments}){' OVER ()' if kind == 'w' else ''}")
            except SqlError:
                if name not in WITH_CONSTANTS:
                    continue
            found.append(int(str(oid)))
        world.close()
    return found


ROWS = {
    "pg_type": "SELECT * FROM pg_type WHERE typrelid = 0 AND typelem NOT IN "
    "(SELECT oid FROM pg_type WHERE typrelid > 0)",
    "pg_proc": f"SELECT * FROM pg_proc WHERE oid IN ({PROCEDURES_IN_USE}) OR oid = ANY (:supported) OR proname IN "
    "('enum_in', 'enum_out', 'enum_recv', 'enum_send', 'enum_first', 'enum_last', 'enum_range')",
    "pg_am": "SELECT * FROM pg_am",
    "pg_opclass": "SELECT * FROM pg_opclass",
    "pg_collation": "SELECT * FROM pg_collation WHERE collname IN ('default', 'C', 'POSIX', 'ucs_basic')",
    "pg_language": "SELECT * FROM pg_language WHERE lanname <> 'plpgsql'",
    "pg_range": "SELECT * FROM pg_range",
    "pg_cast": "SELECT * FROM pg_cast",
    "pg_tablespace": "SELECT * FROM pg_tablespace",
    "pg_opfamily": "SELECT * FROM pg_opfamily",
    "pg_operator": OPERATORS,
    "pg_amop": f"SELECT * FROM pg_amop WHERE amopopr IN (SELECT oid FROM ({OPERATORS}) AS o)",
    "pg_amproc": SUPPORT,
    "pg_settings": "SELECT name, unit, category, extra_desc, vartype, min_val, max_val, enumvals FROM pg_settings",
    "pg_ts_parser": "SELECT * FROM pg_ts_parser",
    "pg_ts_template": "SELECT * FROM pg_ts_template",
    "pg_ts_dict": "SELECT * FROM pg_ts_dict",
    "pg_ts_config": "SELECT * FROM pg_ts_config",
    "pg_ts_config_map": "SELECT * FROM pg_ts_config_map",
    "pg_description": "SELECT * FROM pg_description WHERE classoid IN ('pg_ts_parser'::regclass, "
    "'pg_ts_template'::regclass, 'pg_ts_dict'::regclass, 'pg_ts_config'::regclass) OR classoid = 'pg_proc'::regclass "
    f"AND (objoid IN ({PROCEDURES_IN_USE}) OR objoid = ANY (:supported)) "
    "OR classoid IN ('pg_type'::regclass, 'pg_am'::regclass, "
    f"'pg_language'::regclass, 'pg_operator'::regclass) AND objoid IN (SELECT oid FROM ({OPERATORS}) AS o UNION ALL "
    "SELECT oid FROM pg_type WHERE typrelid = 0 UNION ALL SELECT oid FROM "
    "pg_am UNION ALL SELECT oid FROM pg_language WHERE lanname <> 'plpgsql')",
}


def main(conninfo: str) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute("SET bytea_output = 'hex'")
        listed = f"'{{{','.join(map(str, supported(connection)))}}}'"
        lines = [row[0] for row in connection.execute(RELATIONS)]
        (TARGET / "relations.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for name, query in ROWS.items():
            rows = query.replace(":supported", listed)
            order = "ctid" if name == "pg_opclass" else "1, 2, 3"  # psql lists a family's types in PostgreSQL's order
            with connection.cursor().copy(f"COPY ({rows} ORDER BY {order}) TO STDOUT (FORMAT text, HEADER)") as copy:
                data = b"".join(bytes(part) for part in copy)
            (TARGET / f"{name}.tsv").write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1])
