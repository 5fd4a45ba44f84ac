"""PostgreSQL functions that DuckDB lacks or answers differently, as DuckDB macros in the attached database's ``fn``.

Those that users call with their values are rows of ``sql.pull_functions``. Here are the functions that look into the
catalog, and the helpers that rewritten calls name; a helper's name begins with an underscore.

``{system}`` stands for the attached database's name, ``{started}`` for the time of the server's start. Functions that
depend on the session (current_user, the search path) are not here: ``session_functions`` puts their values into the
statement.
"""

from __future__ import annotations

import re

from mvserver import limits
from mvserver.pgcatalog import privilege_functions
from mvserver.pgcatalog.binary_macros import BINARY_MACROS
from mvserver.pgcatalog.checked_macros import CHECKED_MACROS
from mvserver.pgcatalog.edge_macros import EDGE_MACROS
from mvserver.pgcatalog.static_data import INFORMATION_SCHEMA_OID
from mvserver.pgcatalog.text_search import TOKEN_TYPES
from mvserver.sql.pull_functions import table
from mvserver.types import oids

RAISED = "\x01"  # before the text that a macro raises

# A macro's arguments are put into its text as they are: a column ``oid`` of the query would be taken for a column of
# the macro's own sub-query. So macros look things up in these views only, whose columns nobody else has.
LOOKUPS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE VIEW {system}.cat." + text
    for text in (
        "_classes AS SELECT oid AS _k, relname AS _v, relnamespace AS _n FROM {system}.cat.pg_class",
        "_types AS SELECT oid AS _k, typname AS _v, typnamespace AS _n, "
        "CASE WHEN typelem <> 0 AND typcategory = 'A' AND typstorage <> 'p' THEN typelem ELSE 0 END AS _e "
        "FROM {system}.cat.pg_type",
        "_elements AS SELECT oid AS _ek, typname AS _ev, typnamespace AS _en FROM {system}.cat.pg_type",
        "_namespaces AS SELECT oid AS _k, nspname AS _v FROM {system}.cat.pg_namespace",
        "_roles AS SELECT oid AS _k, rolname AS _v FROM {system}.cat.pg_authid",
        "_procedures AS SELECT oid AS _k, proname AS _v, prorettype AS _t FROM {system}.cat.pg_proc",
        "_arguments AS SELECT oid AS _k, generate_subscripts(proargtypes, 1) AS _i, unnest(proargtypes) AS _v, "
        "CASE WHEN proallargtypes IS NULL THEN proargnames END AS _n, provariadic <> 0 AS _m, pronargs AS _l "
        "FROM {system}.cat.pg_proc",
        "_operators AS SELECT oid AS _k, oprname AS _v, oprleft AS _l, oprright AS _r FROM {system}.cat.pg_operator",
        "_configurations AS SELECT oid AS _k, cfgname AS _v FROM {system}.cat.pg_ts_config",
        "_dictionaries AS SELECT oid AS _k, dictname AS _v FROM {system}.cat.pg_ts_dict",
        "_attributes AS SELECT attrelid AS _k, attnum AS _i, attname AS _v FROM {system}.cat.pg_attribute",
        "_descriptions AS SELECT d.objoid AS _k, d.objsubid AS _i, c.relname AS _c, d.description AS _v "
        "FROM {system}.cat.pg_description d JOIN {system}.cat.pg_class c ON c.oid = d.classoid",
        "_shared_descriptions AS SELECT d.objoid AS _k, c.relname AS _c, d.description AS _v "
        "FROM {system}.cat.pg_shdescription d JOIN {system}.cat.pg_class c ON c.oid = d.classoid",
        "_texts AS SELECT oid AS _k, definition AS _v FROM {system}.cat._definitions",
        # DuckDB counts rows and not bytes: eight for each value, in PostgreSQL's pages
        "_stored_sizes AS SELECT s.oid AS _k, CAST(greatest(1, ceil(coalesce(sum(t.estimated_size * t.column_count), 0)"
        " * 8 / 8192)) * 8192 AS BIGINT) AS _v FROM {system}.cat._states s "
        "LEFT JOIN duckdb_tables() t ON t.schema_name = '_state' AND starts_with(t.table_name, s.id) GROUP BY s.oid",
    )
)

_TYPE_NAME = f"""
    CASE t
        WHEN {oids.BOOL} THEN 'boolean' WHEN {oids.CHAR} THEN '"char"' WHEN {oids.INT8} THEN 'bigint'
        WHEN {oids.INT2} THEN 'smallint' WHEN {oids.INT4} THEN 'integer'
        WHEN {oids.FLOAT4} THEN 'real' WHEN {oids.FLOAT8} THEN 'double precision'
        WHEN {oids.BPCHAR} THEN 'character' || CASE WHEN m > 4 THEN '(' || (m - 4) || ')' ELSE '' END
        WHEN {oids.VARCHAR} THEN 'character varying' || CASE WHEN m > 4 THEN '(' || (m - 4) || ')' ELSE '' END
        WHEN {oids.TIME} THEN 'time without time zone' WHEN {oids.TIMETZ} THEN 'time with time zone'
        WHEN {oids.TIMESTAMP} THEN 'timestamp without time zone' WHEN {oids.TIMESTAMPTZ} THEN 'timestamp with time zone'
        WHEN {oids.BIT} THEN 'bit' WHEN {oids.VARBIT} THEN 'bit varying' WHEN {oids.ANY} THEN '"any"'
        WHEN {oids.NUMERIC} THEN 'numeric' || CASE WHEN m > 4
            THEN '(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535) || ')' ELSE '' END
        ELSE (SELECT CASE WHEN _en = {INFORMATION_SCHEMA_OID} THEN 'information_schema.' ELSE '' END || _ev
              FROM {{system}}.cat._elements WHERE _ek = t)
    END
"""


_ARGUMENTS = """
    (SELECT coalesce(string_agg(
        CASE WHEN _m AND _i = _l THEN 'VARIADIC ' ELSE '' END || coalesce(nullif(_n[_i], '') || ' ', '') ||
        {system}.fn.format_type(_v, NULL), ', ' ORDER BY _i), '')
     FROM {system}.cat._arguments WHERE _k = o)
"""
"""Without the default values, which no function here has but those with named arguments."""


_SIGNATURE = """
    (SELECT coalesce(string_agg({system}.fn.format_type(_v, NULL), ',' ORDER BY _i), '')
     FROM {system}.cat._arguments WHERE _k = o)
"""


def _out(kind: str, lookup: str) -> str:
    return (
        f"_{kind}_out(o) AS CASE WHEN o = 0 THEN '-' ELSE coalesce("
        f"(SELECT _v FROM {{system}}.cat.{lookup} WHERE _k = o), CAST(o AS VARCHAR)) END"
    )


def _in(kind: str, lookup: str, name: str) -> str:
    return (
        f"_{kind}_in(n) AS coalesce(TRY_CAST(CAST(n AS VARCHAR) AS UINTEGER), "
        f"(SELECT min(_k) FROM {{system}}.cat.{lookup} WHERE _v = {name}))"
    )


def _never(name: str, *signatures: str) -> str:
    return name + ", ".join(f"{signature} AS CAST(NULL AS VARCHAR)" for signature in signatures)


TYPE_MACROS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE MACRO {system}.fn." + text
    for text in (
        f"_type_name(t, m) AS {_TYPE_NAME}",
        """format_type(t, m) AS CASE WHEN t IS NULL THEN NULL WHEN t = 0 THEN '-' ELSE coalesce(
            (SELECT CASE WHEN _e <> 0 THEN {system}.fn._type_name(_e, coalesce(m, -1)) || '[]'
                ELSE {system}.fn._type_name(t, coalesce(m, -1)) END FROM {system}.cat._types WHERE _k = t),
            '???') END""",
    )
)

LATE_LOOKUPS: tuple[str, ...] = (  # over macros
    "CREATE OR REPLACE VIEW {system}.cat._type_names AS SELECT oid AS _q, typname AS _qv, "
    "{system}.fn.format_type(oid, NULL) AS _qf, n._v || '.' || {system}.fn.format_type(oid, NULL) AS _qs "
    "FROM {system}.cat.pg_type LEFT JOIN {system}.cat._namespaces n ON n._k = typnamespace",
)

MACROS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE MACRO {system}.fn." + text
    for text in (
        # --- types and names -----------------------------------------------------------------------------------------
        "_regtype_out(t) AS {system}.fn.format_type(t, NULL)",
        """_regtypes_out(l) AS CASE WHEN l IS NULL THEN NULL ELSE coalesce(
            (SELECT list(coalesce(_qf, CAST(_t AS VARCHAR)) ORDER BY _i)
             FROM (SELECT unnest(l) AS _t, generate_subscripts(l, 1) AS _i)
             LEFT JOIN {system}.cat._type_names ON _q = CAST(_t AS UINTEGER)), CAST([] AS VARCHAR[])) END""",
        _out("regclass", "_classes"),
        _out("regnamespace", "_namespaces"),
        _out("regrole", "_roles"),
        _out("regproc", "_procedures"),
        _out("regoper", "_operators"),
        _out("regconfig", "_configurations"),
        _out("regdictionary", "_dictionaries"),
        """_regoperator_out(o) AS CASE WHEN o = 0 THEN '0' ELSE coalesce((SELECT _v || '(' ||
            CASE WHEN _l = 0 THEN 'NONE' ELSE {system}.fn.format_type(_l, NULL) END || ',' ||
            {system}.fn.format_type(_r, NULL) || ')' FROM {system}.cat._operators WHERE _k = o),
            CAST(o AS VARCHAR)) END""",
        f"""_regprocedure_out(o) AS CASE WHEN o = 0 THEN '-' ELSE coalesce((SELECT _v
            FROM {{system}}.cat._procedures WHERE _k = o) || '(' || {_SIGNATURE} || ')', CAST(o AS VARCHAR)) END""",
        """_regclass_in(n, namespaces) AS coalesce(TRY_CAST(CAST(n AS VARCHAR) AS UINTEGER),
            (SELECT min(c._k) FROM {system}.cat._classes c JOIN {system}.cat._namespaces s ON s._k = c._n
             WHERE replace(CAST(n AS VARCHAR), '"', '') IN (c._v, s._v || '.' || c._v)
               AND (list_contains(namespaces, s._k) OR position('.' IN CAST(n AS VARCHAR)) > 0)))""",
        """_regtype_in(n) AS coalesce(TRY_CAST(CAST(n AS VARCHAR) AS UINTEGER),
            (SELECT min(_q) FROM {system}.cat._type_names
             WHERE replace(replace(lower(CAST(n AS VARCHAR)), 'pg_catalog.', ''), '"', '') IN (_qv, _qf)
                OR replace(CAST(n AS VARCHAR), '"', '') IN (_qv, _qs)))""",
        _in("regnamespace", "_namespaces", "replace(CAST(n AS VARCHAR), '\"', '')"),
        _in("regrole", "_roles", "replace(CAST(n AS VARCHAR), '\"', '')"),
        _in("regproc", "_procedures", "replace(CAST(n AS VARCHAR), 'pg_catalog.', '')"),
        "to_regtype(n) AS {system}.fn._regtype_in(n)",
        "to_regnamespace(n) AS {system}.fn._regnamespace_in(n)",
        "to_regrole(n) AS {system}.fn._regrole_in(n)",
        "to_regproc(n) AS {system}.fn._regproc_in(n)",
        """_is_visible(o, namespaces) AS EXISTS (SELECT 1 FROM {system}.cat._classes
            WHERE _k = o AND list_contains(namespaces, _n))""",
        "pg_type_is_visible(o) AS EXISTS (SELECT 1 FROM {system}.cat._types "
        f"WHERE _k = o AND _n <> {INFORMATION_SCHEMA_OID})",
        *(
            f"pg_{kind}_is_visible(o) AS o IS NOT NULL"
            for kind in (
                "function",
                "operator",
                "opclass",
                "opfamily",
                "collation",
                "conversion",
                "statistics_obj",
                "ts_config",
                "ts_dict",
                "ts_parser",
                "ts_template",
            )
        ),
        # --- definitions ---------------------------------------------------------------------------------------------
        "pg_get_userbyid(o) AS coalesce((SELECT _v FROM {system}.cat._roles WHERE _k = o), "
        "'unknown (OID=' || o || ')')",
        "pg_get_viewdef(o) AS (SELECT _v FROM {system}.cat._texts WHERE _k = CAST(o AS UINTEGER)), "
        "(o, pretty) AS (SELECT _v FROM {system}.cat._texts WHERE _k = CAST(o AS UINTEGER))",
        "pg_get_indexdef(o) AS (SELECT _v FROM {system}.cat._texts WHERE _k = CAST(o AS UINTEGER)), "
        "(o, i, pretty) AS CASE WHEN i = 0 THEN (SELECT _v FROM {system}.cat._texts WHERE _k = CAST(o AS UINTEGER)) "
        "ELSE (SELECT _v FROM {system}.cat._attributes WHERE _k = CAST(o AS UINTEGER) AND _i = i) END",
        "pg_get_expr(tree, o) AS CAST(tree AS VARCHAR), (tree, o, pretty) AS CAST(tree AS VARCHAR)",
        *(
            _never(name, "(o)", "(o, pretty)")
            for name in (
                "pg_get_constraintdef",
                "pg_get_ruledef",
                "pg_get_triggerdef",
                "pg_get_partkeydef",
                "pg_get_partition_constraintdef",
                "pg_get_statisticsobjdef",
                "pg_get_statisticsobjdef_columns",
                "pg_get_functiondef",
                "pg_get_function_sqlbody",
                "pg_get_serial_sequence",
            )
        ),
        "pg_get_function_result(o) AS (SELECT {system}.fn.format_type(_t, NULL) "
        "FROM {system}.cat._procedures WHERE _k = o)",
        *(f"{name}(o) AS {_ARGUMENTS}" for name in ("pg_get_function_arguments", "pg_get_function_identity_arguments")),
        "obj_description(o) AS (SELECT min(_v) FROM {system}.cat._descriptions WHERE _k = o AND _i = 0), "
        "(o, catalog) AS (SELECT min(_v) FROM {system}.cat._descriptions WHERE _k = o AND _i = 0 AND _c = catalog)",
        "shobj_description(o, catalog) AS (SELECT min(_v) FROM {system}.cat._shared_descriptions "
        "WHERE _k = o AND _c = catalog)",
        "col_description(o, i) AS (SELECT min(_v) FROM {system}.cat._descriptions "
        "WHERE _k = o AND _i = i AND _c = 'pg_class')",
        # --- the server ----------------------------------------------------------------------------------------------
        "pg_is_in_recovery() AS false",
        "pg_is_wal_replay_paused() AS false",
        "pg_postmaster_start_time() AS {started}",
        "pg_conf_load_time() AS {started}",
        "txid_current_if_assigned() AS CAST(NULL AS BIGINT)",
        "pg_current_xact_id_if_assigned() AS CAST(NULL AS BIGINT)",
        "pg_encoding_to_char(e) AS CASE e WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' ELSE '' END",
        "pg_char_to_encoding(e) AS CASE upper(e) WHEN 'UTF8' THEN 6 WHEN 'UTF-8' THEN 6 ELSE -1 END",
        "pg_client_encoding() AS 'UTF8'",
        "getdatabaseencoding() AS 'UTF8'",
        "inet_server_addr() AS CAST(NULL AS VARCHAR)",
        "inet_server_port() AS CAST(NULL AS INTEGER)",
        "inet_client_addr() AS CAST(NULL AS VARCHAR)",
        "inet_client_port() AS CAST(NULL AS INTEGER)",
        "pg_tablespace_location(o) AS ''",
        "pg_tablespace_size(o) AS CAST(0 AS BIGINT)",
        # what CHECKPOINT has written, in the file that all databases share
        "pg_database_size(o) AS CASE WHEN o IS NOT NULL THEN CAST(greatest("
        "(SELECT sum(block_size * total_blocks) FROM pragma_database_size() WHERE database_name <> '{system}'), "
        "(SELECT sum(_v) FROM {system}.cat._stored_sizes)) AS BIGINT) END",
        "_stored_bytes(o) AS CASE WHEN o IS NOT NULL THEN coalesce((SELECT _v FROM {system}.cat._stored_sizes "
        "WHERE _k = CAST(o AS UINTEGER)), CAST(0 AS BIGINT)) END",
        *(f"{name}(o) AS {{system}}.fn._stored_bytes(o)" for name in ("pg_table_size", "pg_total_relation_size")),
        "pg_relation_size(o) AS {system}.fn._stored_bytes(o), (o, fork) AS CASE WHEN fork = 'main' "
        "THEN {system}.fn._stored_bytes(o) ELSE CAST(0 AS BIGINT) END",
        "pg_indexes_size(o) AS CAST(0 AS BIGINT)",
        "_halves(n, of) AS CAST(sign(n) AS BIGINT) * CAST((CAST(abs(n) AS HUGEINT) // of + 1) // 2 AS BIGINT)",
        """pg_size_pretty(n) AS CASE WHEN abs(n) < 10240 THEN n || ' bytes'
            WHEN CAST(abs(n) AS HUGEINT) // 512 < 20479 THEN {system}.fn._halves(n, 512) || ' kB'
            WHEN CAST(abs(n) AS HUGEINT) // 524288 < 20479 THEN {system}.fn._halves(n, 524288) || ' MB'
            WHEN CAST(abs(n) AS HUGEINT) // 536870912 < 20479 THEN {system}.fn._halves(n, 536870912) || ' GB'
            WHEN CAST(abs(n) AS HUGEINT) // 549755813888 < 20479 THEN {system}.fn._halves(n, 549755813888) || ' TB'
            WHEN n IS NOT NULL THEN {system}.fn._halves(n, 562949953421312) || ' PB' END""",
        "pg_relation_filenode(o) AS o",
        "pg_relation_is_publishable(o) AS false",
        "pg_relation_is_updatable(o, b) AS 0",
        "pg_column_is_updatable(o, n, b) AS false",
        "pg_stat_get_numscans(o) AS CAST(0 AS BIGINT)",
        "pg_my_temp_schema() AS CAST(0 AS UINTEGER)",
        "pg_is_other_temp_schema(o) AS false",
        "pg_index_column_has_property(o, n, p) AS p IN ('asc', 'nulls_last', 'orderable')",
        "pg_indexam_has_property(o, p) AS true",
        "pg_sequence_last_value(o) AS CAST(NULL AS BIGINT)",
        "pg_advisory_unlock_all() AS NULL",
        "_enum_name(t) AS regexp_extract(t, 'enum [0-9]+ +(.*?)''[,)]', 1) "
        "|| CASE WHEN t LIKE '%[]' THEN '[]' ELSE '' END",
        "_duck_type_name(t) AS CASE t WHEN 'VARCHAR' THEN 'text' WHEN 'DOUBLE' THEN 'double precision' "
        "WHEN 'FLOAT' THEN 'real' WHEN 'BLOB' THEN 'bytea' WHEN 'TIMESTAMP' THEN 'timestamp without time zone' "
        "WHEN 'TIME' THEN 'time without time zone' WHEN 'UINTEGER' THEN 'oid' WHEN 'HUGEINT' THEN 'numeric' "
        "WHEN 'TINYINT' THEN 'smallint' WHEN '\"NULL\"' THEN 'unknown' "
        "ELSE CASE WHEN t LIKE 'DECIMAL%' THEN 'numeric' ELSE lower(t) END END",
        "pg_typeof(v) AS CASE WHEN typeof(v) LIKE 'ENUM(%' THEN {system}.fn._enum_name(typeof(v)) "
        "ELSE {system}.fn._duck_type_name(rtrim(typeof(v), '[]')) "
        "|| CASE WHEN typeof(v) LIKE '%[]' THEN '[]' ELSE '' END END",
        # --- privileges on what is everybody's; the others are in privilege_functions --------------------------------
        *(
            f"has_{kind}_privilege(o, p) AS o IS NOT NULL, (r, o, p) AS o IS NOT NULL"
            for kind in ("sequence", "function", "language", "type", "tablespace", "foreign_data_wrapper")
        ),
        # --- text ----------------------------------------------------------------------------------------------------
        "_encode_hex(b) AS lower(hex(b))",
        "_encode_base64(b) AS regexp_replace(to_base64(b), '(.{76})', '\\1' || chr(10), 'g')",
        # --- numbers and dates ---------------------------------------------------------------------------------------
        f"""_repeat(s, n) AS list_transform([{{'s': s, 'n': n}}], lambda _each: repeat(_each['s'], CASE
            WHEN _each['n'] > {limits.REPEATED_TEXT_BYTES_MAX} // greatest(strlen(_each['s']), 1)
            THEN error('requested length too large') ELSE _each['n'] END))[1]""",
        f"""_text_length(n) AS list_transform([n], lambda _each: CASE WHEN _each > {limits.REPEATED_TEXT_BYTES_MAX}
            THEN error('requested length too large') ELSE _each END)[1]""",
        f"""_replace(s, a, b) AS list_transform([{{'s': s, 'a': a, 'b': b}}], lambda _each:
            CASE WHEN (strlen(_each['s']) + 1) * strlen(_each['b']) > {limits.REPLACED_TEXT_BYTES_MAX}
            THEN error('requested length too large') ELSE replace(_each['s'], _each['a'], _each['b']) END)[1]""",
        f"""_regexp_replace(s, p, b) AS list_transform([{{'s': s, 'b': b}}], lambda _each:
            CASE WHEN (strlen(_each['s']) + 1) * strlen(_each['b']) > {limits.REPLACED_TEXT_BYTES_MAX}
            THEN error('requested length too large') ELSE regexp_replace(_each['s'], p, _each['b']) END)[1],
            (s, p, b, o) AS list_transform([{{'s': s, 'b': b}}], lambda _each:
            CASE WHEN (strlen(_each['s']) + 1) * strlen(_each['b']) > {limits.REPLACED_TEXT_BYTES_MAX}
            THEN error('requested length too large') ELSE regexp_replace(_each['s'], p, _each['b'], o) END)[1]""",
        """_series_end(a, b, s, most) AS CASE WHEN s = 0 THEN error('interval cannot be 0')
            WHEN s <> 0 AND (CAST(b AS HUGEINT) - CAST(a AS HUGEINT)) // s >= most
            THEN error('requested length too large') ELSE b END""",
        """_time_series_end(a, b, s, most) AS CASE WHEN s = INTERVAL 0 SECONDS THEN error('interval cannot be 0')
            WHEN epoch(s) <> 0 AND (epoch(b) - epoch(a)) / epoch(s) >= most
            THEN error('requested length too large') ELSE b END""",
        "_not_negative(x) AS CASE WHEN x < 0 THEN error('cannot take square root of a negative number') ELSE x END",
        """_positive(x) AS CASE WHEN x < 0 THEN error('cannot take logarithm of a negative number')
            WHEN x = 0 THEN error('cannot take logarithm of zero') ELSE x END""",
        "_extract_epoch(v) AS epoch(v)",
        "_extract_second(v) AS date_part('microseconds', v) / CAST(1000000.0 AS DOUBLE)",
        "_extract_milliseconds(v) AS date_part('microseconds', v) / CAST(1000.0 AS DOUBLE)",
        # to_char's parts (dialect.functions.to_char)
        "_zero_padded(n, width) AS printf('%0' || width || 'd', CAST(n AS BIGINT))",
        "_sign_padded(n, width) AS {system}.fn._zero_padded(n, CAST(width + CAST(n < 0 AS INTEGER) AS INTEGER))",
        "_grouped_year(y) AS printf('%d,%03d', CAST(y // 1000 AS BIGINT), CAST(y % 1000 AS BIGINT))",
        """_ordinal_suffix(n) AS CASE WHEN n % 100 BETWEEN 11 AND 13 THEN 'th' WHEN n % 10 = 1 THEN 'st'
            WHEN n % 10 = 2 THEN 'nd' WHEN n % 10 = 3 THEN 'rd' ELSE 'th' END""",
        "_second_of_day(v) AS date_part('hour', v) * 3600 + date_part('minute', v) * 60 + date_part('second', v)",
        "_zone_hours(s) AS CASE WHEN s < 0 THEN '-' ELSE '+' END || lpad(CAST(abs(s) // 3600 AS VARCHAR), 2, '0')",
        "_zone_minutes(s) AS lpad(CAST(abs(s) // 60 % 60 AS VARCHAR), 2, '0')",
        """_zone_offset(s) AS {system}.fn._zone_hours(s)
            || CASE WHEN abs(s) // 60 % 60 = 0 THEN '' ELSE ':' || {system}.fn._zone_minutes(s) END""",
        "_picture_whole(x) AS split_part(CAST(abs(x) AS VARCHAR), '.', 1)",
        """_picture_shown(t, zeros, fraction) AS CASE WHEN t = '0' AND fraction AND zeros = 0 THEN ''
            WHEN length(t) < zeros THEN lpad(t, CAST(zeros AS INTEGER), '0') ELSE t END""",
        """_picture_digits(x, n, zeros, fraction) AS
            CASE WHEN length({system}.fn._picture_whole(x)) > n AND {system}.fn._picture_whole(x) <> '0'
                THEN repeat('#', n)
            ELSE lpad({system}.fn._picture_shown({system}.fn._picture_whole(x), zeros, fraction), CAST(n AS INTEGER),
                ' ') END""",
        "_picture_groups(d, groups, shown) AS replace(regexp_replace(d, groups, shown), ' ,', '  ')",
        """_picture_fraction(f, kept, fill) AS CASE WHEN fill THEN f
            ELSE left(f, kept) || rtrim(substr(f, kept + 1), '0') END""",
        """_picture_body(x, d, places, kept, point, fill) AS CASE
            WHEN x = 0 AND trim(d) = '' AND kept = 0 AND NOT fill THEN '0' ELSE d END || CASE WHEN NOT point THEN ''
            WHEN contains(d, '#') THEN '.' || repeat('#', places) WHEN places = 0 THEN '.'
            ELSE '.' || {system}.fn._picture_fraction(split_part(CAST(abs(x) AS VARCHAR), '.', 2), kept, fill) END""",
        """_picture_signed(b, minus, plus, fill) AS CASE WHEN fill
            THEN lpad(CASE WHEN minus = '' THEN plus ELSE minus END || ltrim(b, ' '),
                CAST(length(b) + 1 AS INTEGER), ' ')
            ELSE CASE WHEN minus = '' THEN trim(plus) ELSE minus END || ltrim(b, ' ') END""",
        """_picture_sign(b, negative, fill, sign) AS CASE sign
            WHEN 'S' THEN {system}.fn._picture_signed(b, CASE WHEN negative THEN '-' ELSE '' END, '+', fill)
            WHEN 'S last' THEN CASE WHEN fill THEN b ELSE ltrim(b, ' ') END || CASE WHEN negative THEN '-' ELSE '+' END
            WHEN 'MI last' THEN CASE WHEN fill THEN b ELSE ltrim(b, ' ') END
                || CASE WHEN negative THEN '-' WHEN fill THEN ' ' ELSE '' END
            WHEN 'MI first' THEN CASE WHEN negative THEN '-' WHEN fill THEN ' ' ELSE '' END
                || CASE WHEN fill THEN b ELSE ltrim(b, ' ') END
            WHEN 'PR last' THEN {system}.fn._picture_signed(b, CASE WHEN negative THEN '<' ELSE '' END, ' ', fill)
                || CASE WHEN negative THEN '>' WHEN fill THEN ' ' ELSE '' END
            ELSE {system}.fn._picture_signed(b, CASE WHEN negative THEN '-' ELSE '' END, ' ', fill) END""",
        """_picture(x, d, places, kept, point, fill, sign) AS {system}.fn._picture_sign(
            {system}.fn._picture_body(x, d, places, kept, point, fill), x < 0, fill, sign)""",
        # what a typed rewriting (dialect.typing) will replace once it knows the types
        "_to_char(v, f) AS CAST(v AS VARCHAR) || CAST(f AS VARCHAR)",
        "_contains_all(a, b) AS a IS NOT NULL AND b IS NOT NULL",
        # values as PostgreSQL writes and reads them (dialect.typing)
        """_scientific(s) AS CASE WHEN contains(s, 'e')
            THEN replace(regexp_replace(regexp_replace(s, 'e([0-9])', 'e+\\1'), '[.]0e', 'e'), '.e', 'e')
            ELSE regexp_replace(rtrim(replace(regexp_replace(s, '[.]0$', ''), '.', ''), '0'), '^([0-9])([0-9]+)$',
                '\\1.\\2') || 'e+' || lpad(CAST(length(split_part(s, '.', 1)) - 1 AS VARCHAR), 2, '0') END""",
        """_float_out(x, bound) AS CASE WHEN isnan(x) THEN 'NaN' WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity'
                ELSE '-Infinity' END
            WHEN abs(x) >= bound THEN CASE WHEN x < 0 THEN '-' ELSE '' END
                || {system}.fn._scientific(CAST(abs(x) AS VARCHAR))
            WHEN contains(CAST(x AS VARCHAR), 'e') THEN {system}.fn._scientific(CAST(x AS VARCHAR))
            ELSE regexp_replace(CAST(x AS VARCHAR), '[.]0$', '') END""",
        "_float8_out(x) AS {system}.fn._float_out(x, 1e15)",
        "_float4_out(x) AS {system}.fn._float_out(x, 1e6)",
        "_fraction_out(x) AS regexp_replace(CAST(x AS VARCHAR), '^(-?)[.]', '\\10.')",
        "_bool_out(b) AS CASE WHEN b THEN 't' WHEN NOT b THEN 'f' END",
        "_interval_out(i) AS regexp_replace(regexp_replace(replace(CAST(i AS VARCHAR), 'month', 'mon'), "
        "'-1 (year|mon|day)( |$)', '-1 \\1s\\2', 'g'), '(-[0-9]+ (?:year|mon|day)s) ([0-9])', '\\1 +\\2', 'g')",
        # before our time zones differ from UTC by seconds, too
        """_zone_seconds(t) AS CASE WHEN date_part('timezone', t) % 60 <> 0
            THEN ':' || lpad(CAST(abs(date_part('timezone', t)) % 60 AS VARCHAR), 2, '0') ELSE '' END""",
        "_before_christ_out(s, rest) AS regexp_replace(s, '^(.*) [(]BC[)](.*)$', '\\1\\2' || rest || ' BC')",
        """_time_out(t) AS CASE WHEN t < DATE '0001-01-01'
            THEN {system}.fn._before_christ_out(CAST(t AS VARCHAR), '') ELSE CAST(t AS VARCHAR) END""",
        """_instant_out(t) AS CASE WHEN t >= DATE '1973-01-01' THEN CAST(t AS VARCHAR) WHEN t < DATE '0001-01-01'
            THEN {system}.fn._before_christ_out(CAST(t AS VARCHAR), {system}.fn._zone_seconds(t))
            ELSE CAST(t AS VARCHAR) || {system}.fn._zone_seconds(t) END""",
        "_clock_of(t) AS CASE WHEN isfinite(t) THEN CAST(t AS TIME) END",
        # to so many microseconds, halves away from 0, which is midnight, no time at all, or the year 2000
        """_rounded(n, scale) AS CASE WHEN n >= 0 THEN (n + scale // 2) // scale * scale
            ELSE -((scale // 2 - n) // scale * scale) END""",
        """_time_rounded(t, scale) AS CASE WHEN epoch_us(t) + scale // 2 >= 86400000000 THEN TIME '24:00:00'
            ELSE TIME '00:00:00' + to_microseconds({system}.fn._rounded(epoch_us(t), scale)) END""",
        """_timestamp_rounded(t, scale) AS CASE WHEN isfinite(t) THEN
            make_timestamp({system}.fn._rounded(epoch_us(t) - 946684800000000, scale) + 946684800000000) ELSE t END""",
        """_timestamptz_rounded(t, scale) AS CASE WHEN isfinite(t) THEN make_timestamptz(
            {system}.fn._rounded(epoch_us(t) - 946684800000000, scale) + 946684800000000) ELSE t END""",
        """_interval_rounded(i, scale) AS to_months(CAST(date_part('year', i) * 12 + date_part('month', i) AS INTEGER))
            + to_days(CAST(date_part('day', i) AS INTEGER)) + to_microseconds({system}.fn._rounded(CAST(
                date_part('hour', i) * 3600000000 + date_part('minute', i) * 60000000 + date_part('microsecond', i)
            AS BIGINT), scale))""",
        "_bytea_out(b) AS '\\x' || lower(hex(b))",
        "_json_collected(l) AS to_json(l)",
        """_json_rows_text(l) AS CASE WHEN l IS NOT NULL THEN '[' || array_to_string(list_transform(l,
            lambda e, i: CASE WHEN i = 1 THEN '' WHEN e IS NULL THEN ', ' ELSE ', ' || chr(10) || ' ' END
                || coalesce(e, 'null')), '') || ']' END""",
        """_json_items_text(l) AS CASE WHEN l IS NOT NULL
            THEN '[' || array_to_string(list_transform(l, lambda e: coalesce(e, 'null')), ', ') || ']' END""",
        """_json_member(k, v) AS CASE
            WHEN k IS NULL THEN {'k': error('null value not allowed for object key'), 'v': NULL}
            ELSE {'k': CAST(to_json(k) AS VARCHAR), 'v': coalesce(CAST(v AS VARCHAR), 'null')} END""",
        """_json_object_agg_out(l) AS CASE WHEN l IS NOT NULL THEN CAST('{ '
            || array_to_string(list_transform(l, lambda e: e['k'] || ' : ' || e['v']), ', ') || ' }' AS JSON) END""",
        """_json_object_of(l) AS CASE WHEN l IS NOT NULL THEN CAST('{'
            || array_to_string(list_transform(l, lambda e: e['k'] || ':' || e['v']), ',') || '}' AS JSON) END""",
        """_bytea_in(s) AS CASE WHEN starts_with(s, '\\x') AND length(s) % 2 = 1
                THEN error('invalid hexadecimal data: odd number of digits')
            WHEN starts_with(s, '\\x') THEN unhex(substr(s, 3))
            WHEN contains(s, '\\') THEN error('invalid input syntax for type bytea: "' || s || '"')
            ELSE encode(s) END""",
        """_integer_in(s, kind) AS CASE WHEN regexp_full_match(s, '\\s*[-+]?[0-9]+\\s*') THEN trim(s)
            WHEN s IS NOT NULL THEN error('invalid input syntax for type ' || kind || ': "' || s || '"') END""",
        """_boolean_in(s) AS CASE
            WHEN lower(trim(s)) IN ('t', 'tr', 'tru', 'true', 'y', 'ye', 'yes', 'on', '1') THEN true
            WHEN lower(trim(s)) IN ('f', 'fa', 'fal', 'fals', 'false', 'n', 'no', 'of', 'off', '0') THEN false
            WHEN s IS NOT NULL THEN error('invalid input syntax for type boolean: "' || s || '"') END""",
        *(
            f"""_{name}_in(s) AS CASE WHEN isinf(TRY_CAST(s AS {kind})) AND regexp_matches(s, '[0-9]')
                THEN error('"' || s || '" is out of range for type {shown}') ELSE s END"""
            for name, kind, shown in (("float8", "DOUBLE", "double precision"), ("float4", "FLOAT", "real"))
        ),
        # DuckDB reads NaN, Infinity and a comma behind the last item
        r"""_json_in(s) AS CASE WHEN regexp_matches(s, '(?i)nan|inf|,\s*[\]}]') AND regexp_matches(
                regexp_replace(s, '"(?:[^"\\]|\\.)*"', '""', 'g'), '(?i)nan|inf|,\s*[\]}]')
            THEN error('Malformed JSON: a word or a comma that it has no place for') ELSE s END""",
        """_array_item(t) AS CASE WHEN t IS NULL THEN 'NULL'
            WHEN t = '' OR upper(t) = 'NULL' OR regexp_matches(t, '[{}",\\\\\\s]')
                THEN '"' || replace(replace(t, '\\', '\\\\'), '"', '\\"') || '"' ELSE t END""",
        """_record_item(t) AS CASE WHEN t IS NULL THEN '' WHEN t = '' OR regexp_matches(t, '[(),"\\\\\\s]')
            THEN '"' || replace(replace(t, '\\', '\\\\'), '"', '""') || '"' ELSE t END""",
        "_row_out(l) AS '(' || list_aggr(l, 'string_agg', ',') || ')'",
        "_record_text(opening, l, closing) AS opening || array_to_string(l, ',') || closing",
        """_array_out(a) AS '{' || array_to_string(list_transform(a,
            lambda e: {system}.fn._array_item(CAST(e AS VARCHAR))), ',') || '}'""",
        """_float8_array_out(a) AS '{' || array_to_string(list_transform(a,
            lambda e: coalesce({system}.fn._float8_out(e), 'NULL')), ',') || '}'""",
        *(
            f"""_{name}_array_out(a) AS '{{' || array_to_string(list_transform(a, lambda e:
                coalesce({{system}}.fn._array_item({{system}}.fn._{name}_out(e)), 'NULL')), ',') || '}}'"""
            for name in ("time", "instant", "bytea", "interval", "float4", "fraction")
        ),
        """_bool_array_out(a) AS '{' || array_to_string(list_transform(a,
            lambda e: coalesce({system}.fn._bool_out(e), 'NULL')), ',') || '}'""",
        # --- JSON ----------------------------------------------------------------------------------------------------
        "_json_items(j) AS CASE WHEN json_type(j) = 'ARRAY' THEN CAST(j AS JSON[]) ELSE CAST([] AS JSON[]) END",
        """_json_has_text(j, t) AS list_contains(list_transform(list_filter({system}.fn._json_items(j),
            lambda e: json_type(e) = 'VARCHAR'), lambda e: e ->> '$'), t)""",
        """_json_has_number(j, n) AS list_contains(list_transform(list_filter({system}.fn._json_items(j),
            lambda e: json_type(e) IN ('BIGINT', 'UBIGINT', 'DOUBLE', 'HUGEINT', 'UHUGEINT')),
            lambda e: CAST(e ->> '$' AS DOUBLE)), n)""",
        """_json_has_token(j, t) AS list_contains(list_transform({system}.fn._json_items(j),
            lambda e: CAST(e AS VARCHAR)), t)""",
        """_json_has(j, k) AS CASE WHEN j IS NOT NULL AND k IS NOT NULL THEN CASE json_type(j)
            WHEN 'OBJECT' THEN list_contains(json_keys(j), k)
            WHEN 'ARRAY' THEN {system}.fn._json_has_text(j, k) WHEN 'VARCHAR' THEN (j ->> '$') = k
            ELSE false END END""",
    )
)

TABLE_MACROS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE MACRO {system}.fn." + text
    for text in (
        "pg_get_keywords() AS TABLE SELECT keyword_name AS word, CASE keyword_category WHEN 'reserved' THEN 'R' "
        "WHEN 'unreserved' THEN 'U' WHEN 'column_name' THEN 'C' ELSE 'T' END AS catcode, true AS barelabel, "
        "keyword_category AS catdesc, 'can be bare label' AS baredesc FROM duckdb_keywords()",
        "pg_options_to_table(o) AS TABLE SELECT split_part(x, '=', 1) AS option_name, "
        "split_part(x, '=', 2) AS option_value FROM unnest(o) u(x)",
        privilege_functions.ACLEXPLODE,
        TOKEN_TYPES,
        "pg_partition_tree(o) AS TABLE SELECT o AS relid, CAST(NULL AS UINTEGER) AS parentrelid, true AS isleaf, "
        "0 AS level WHERE false",
        "pg_partition_ancestors(o) AS TABLE SELECT o AS relid WHERE false",
        "pg_listening_channels() AS TABLE SELECT '' AS pg_listening_channels WHERE false",
        "_json_each(j) AS TABLE SELECT k AS key, json_extract(j, '/' || replace(replace(k, '~', '~0'), '/', '~1')) "
        "AS value FROM (SELECT unnest(json_keys(j)) AS k)",
    )
)

FUNCTION_MACROS: tuple[str, ...] = tuple(
    f"CREATE OR REPLACE MACRO {{system}}.fn.{function.name}{function.macro}"
    for function in table().values()
    if function.macro
)
"""Those of the table of pull queries' functions."""

RAISING = "CREATE OR REPLACE MACRO {system}.fn._raise(m) AS [NULL][CAST('" + RAISED + "' || m AS BIGINT)]"
"""DuckDB's own ``error`` is volatile, and what calls it cannot be a key of a window or of a DISTINCT aggregate.

A text that is no number raises, too, and the element of a list of NULL has any type, as ``error`` has. It is no
``CASE``, whose conditions DuckDB evaluates while it plans. ``error`` with a blank behind it stays DuckDB's own."""

_ERROR = re.compile(r"\berror\(")

STATEMENTS: tuple[str, ...] = (
    RAISING,
    *(
        _ERROR.sub("{system}.fn._raise(", statement)
        for statement in (
            *LOOKUPS,
            *privilege_functions.LOOKUPS,
            *TYPE_MACROS,
            *LATE_LOOKUPS,
            *MACROS,
            *EDGE_MACROS,
            *BINARY_MACROS,
            *FUNCTION_MACROS,
            *CHECKED_MACROS,
            *privilege_functions.MACROS,
            *privilege_functions.ACL_MACROS,
            *TABLE_MACROS,
        )
    ),
)
"""All of them, in the order in which they can be made."""
