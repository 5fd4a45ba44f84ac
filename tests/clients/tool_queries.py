"""What graphical tools ask of a server when they connect and browse, in their order."""

from __future__ import annotations

DBEAVER_CONNECT = (
    "SET extra_float_digits = 3",
    "SET application_name = 'DBeaver 24.2.0 - Main <postgres>'",
    "SELECT current_schema(),session_user",
    "SELECT version()",
    "SHOW search_path",
    "select * from pg_catalog.pg_settings where name='standard_conforming_strings'",
    "select string_agg(word, ',') from pg_catalog.pg_get_keywords() where word <> ALL "
    "( '{a,abs,absolute,action,ada,add,admin,after,all}'::text[])",
    "SELECT * FROM pg_catalog.pg_enum WHERE 1<>1 LIMIT 1",
    "SELECT reltype FROM pg_catalog.pg_class WHERE 1<>1 LIMIT 1",
    "SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description "
    "FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem "
    "LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid "
    "LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid "
    "WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') "
    "AND (et.typcategory IS NULL OR et.typcategory <> 'C')",
)
DBEAVER_DATABASES = (
    "SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE 1=1 AND datallowconn AND NOT datistemplate "
    "ORDER BY db.datname"
)
DBEAVER_SCHEMAS = (
    "SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d "
    "ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass ORDER BY nspname"
)
DBEAVER_RELATIONS = (
    "SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,  "
    "pg_catalog.pg_get_partkeydef(c.oid) as partition_key FROM pg_catalog.pg_class c "
    "LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 "
    "AND d.classoid='pg_class'::regclass WHERE c.relnamespace=$1 AND c.relkind not in ('i','I','c')"
)
DBEAVER_COLUMNS = (
    "SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid "
    "FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid) "
    "LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum) "
    "LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid) "
    "LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum "
    "and dep.classid = dep.refclassid WHERE NOT a.attisdropped AND a.attnum > 0 AND c.oid=$1 ORDER BY a.attnum"
)
DBEAVER_CONSTRAINTS = (
    "SELECT c.oid,c.*,t.relname as tabrelname,rt.relnamespace as refnamespace,d.description, null as consrc_copy "
    "FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid "
    "LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid LEFT OUTER JOIN pg_catalog.pg_description d "
    "ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass WHERE c.conrelid=$1 ORDER BY c.oid"
)
DBEAVER_INDEXES = (
    "SELECT i.*,i.indkey as keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname as tabrelname,"
    "dsc.description,pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,"
    "pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,"
    "pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size,"
    "pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans FROM pg_catalog.pg_index i "
    "INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid "
    "LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid "
    "WHERE i.indrelid=$1 ORDER BY tabrelname, c.relname"
)
DBEAVER_REST = (
    "SELECT a.oid,a.*,pd.description FROM pg_catalog.pg_roles a "
    "left join pg_catalog.pg_shdescription pd on a.oid = pd.objoid ORDER BY a.rolname",
    "SELECT l.oid,l.* FROM pg_catalog.pg_language l ORDER BY l.oid",
    "SELECT e.oid,cfg.tbls,n.nspname as schema_name,e.* FROM pg_catalog.pg_extension e "
    "join pg_namespace n on n.oid =e.extnamespace left join (select ARRAY_AGG(ns.nspname || '.' || cls.relname) tbls, "
    "oid_ext from (select unnest(e1.extconfig) oid , e1.oid oid_ext from pg_catalog.pg_extension e1 ) c "
    "join pg_class cls on cls.oid = c.oid join pg_namespace ns on ns.oid = cls.relnamespace group by oid_ext ) cfg "
    "on cfg.oid_ext = e.oid ORDER BY e.oid",
    "SELECT p.oid as poid,p.*,pg_catalog.pg_get_expr(p.proargdefaults, 0) as arg_defaults,d.description "
    "FROM pg_catalog.pg_proc p LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=p.oid "
    "AND d.objsubid = 0 WHERE p.pronamespace=2200 ORDER BY p.proname",
)
DBEAVER_SIZES = (
    "select c.oid,pg_catalog.pg_total_relation_size(c.oid) as total_rel_size,pg_catalog.pg_relation_size(c.oid) "
    "as rel_size FROM pg_class c WHERE c.relnamespace=$1"
)

METABASE_CONNECT = (
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    "SHOW TRANSACTION ISOLATION LEVEL",
    "SET SESSION TIMEZONE TO 'UTC'",
    "SELECT version()",
    "SELECT nspname AS TABLE_SCHEM, NULL AS TABLE_CATALOG FROM pg_catalog.pg_namespace WHERE nspname <> 'pg_toast' "
    "AND (nspname !~ '^pg_temp_' OR nspname = (pg_catalog.current_schemas(true))[1]) AND (nspname !~ '^pg_toast_temp_' "
    "OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_')) ORDER BY TABLE_SCHEM",
)
_NAME = """'"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"'"""
METABASE_PRIVILEGES = f"""
with table_privileges as (
  select NULL as role, t.schemaname as schema, t.objectname as table,
    pg_catalog.has_any_column_privilege(current_user, {_NAME}, 'update') as update,
    pg_catalog.has_any_column_privilege(current_user, {_NAME}, 'select') as select,
    pg_catalog.has_any_column_privilege(current_user, {_NAME}, 'insert') as insert,
    pg_catalog.has_table_privilege(current_user, {_NAME}, 'delete') as delete
  from (
    select schemaname, tablename as objectname from pg_catalog.pg_tables
    union
    select schemaname, viewname as objectname from pg_catalog.pg_views
    union
    select schemaname, matviewname as objectname from pg_catalog.pg_matviews
  ) t
  where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema'
    and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'USAGE')
)
select t.* from table_privileges t
"""
METABASE_TABLES = """
SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN 'r' THEN 'TABLE'
  WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW'
  ELSE NULL END AS "type", "d"."description" AS "description", NULLIF("stat"."n_live_tup", 0) AS "estimated_row_count"
FROM "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid"
LEFT JOIN "pg_catalog"."pg_description" AS "d" ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0)
  AND ("d"."classoid" = 'pg_class'::regclass)
LEFT JOIN "pg_stat_user_tables" AS "stat" ON ("n"."nspname" = "stat"."schemaname")
  AND ("c"."relname" = "stat"."relname")
WHERE ("c"."relnamespace" = "n"."oid") AND ("n"."nspname" !~ '^pg_') AND ("n"."nspname" <> 'information_schema')
  AND c.relkind in ('r', 'p', 'v', 'f', 'm') AND ("n"."nspname" IN ('public'))
ORDER BY "type" ASC, "schema" ASC, "name" ASC
"""
METABASE_FIELDS = """
SELECT "pa"."attname" AS "name", CASE WHEN "ptn"."nspname" IN ('public', 'pg_catalog') THEN FORMAT('%s', "pt"."typname")
  ELSE FORMAT('"%s"."%s"', "ptn"."nspname", "pt"."typname") END AS "database-type",
  "pa"."attnum" - 1 AS "database-position", "pn"."nspname" AS "table-schema", "pc"."relname" AS "table-name",
  FALSE AS "pk?", NULL AS "field-comment", FALSE AS "database-required", FALSE AS "database-is-auto-increment"
FROM "pg_catalog"."pg_class" AS "pc" INNER JOIN "pg_catalog"."pg_namespace" AS "pn" ON "pn"."oid" = "pc"."relnamespace"
INNER JOIN "pg_catalog"."pg_attribute" AS "pa" ON "pa"."attrelid" = "pc"."oid"
INNER JOIN "pg_catalog"."pg_type" AS "pt" ON "pt"."oid" = "pa"."atttypid"
INNER JOIN "pg_catalog"."pg_namespace" AS "ptn" ON "ptn"."oid" = "pt"."typnamespace"
WHERE ("pc"."relkind" = 'm') AND ("pa"."attnum" >= 1) AND ("pn"."nspname" IN ('public'))
  AND ("pc"."relname" IN ('visits'))
ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC
"""
METABASE_CHART = """-- Metabase:: userID: 1 queryType: MBQL queryHash: 1f5c
SELECT CAST(DATE_TRUNC('month', "public"."typed"."moment") AS date) AS "moment", COUNT(*) AS "count",
  SUM("public"."typed"."amount") AS "sum", COUNT(DISTINCT "public"."typed"."name") AS "names"
FROM "public"."typed"
WHERE "public"."typed"."moment" >= timestamp with time zone '2024-01-01 00:00:00.000Z'
  AND (LOWER("public"."typed"."name") LIKE '%m%')
GROUP BY CAST(DATE_TRUNC('month', "public"."typed"."moment") AS date)
ORDER BY CAST(DATE_TRUNC('month', "public"."typed"."moment") AS date) ASC
LIMIT 1048575"""

_PATH = """quote_ident(table_schema) IN (
          SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          )"""
GRAFANA_TABLES = f"""
SELECT CASE WHEN {_PATH} THEN quote_ident(table_name)
      ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
    FROM information_schema.tables
    WHERE quote_ident(table_schema) NOT IN ('information_schema','pg_catalog','_timescaledb_cache',
      '_timescaledb_catalog','_timescaledb_internal','_timescaledb_config','timescaledb_information',
      'timescaledb_experimental')
    ORDER BY CASE WHEN {_PATH} THEN 0 ELSE 1 END, 1
"""
GRAFANA_COLUMNS = f"""
SELECT quote_ident(column_name) AS "column", data_type AS "type"
    FROM information_schema.columns
    WHERE CASE WHEN array_length(parse_ident('clicks'),1) = 2
      THEN quote_ident(table_schema) = (parse_ident('clicks'))[1]
        AND quote_ident(table_name) = (parse_ident('clicks'))[2]
      ELSE quote_ident(table_name) = 'clicks' AND {_PATH}
    END
"""
GRAFANA_CONNECT = (
    "SELECT 1",
    "SELECT current_setting('server_version_num')::int/100 as version",
    "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'",
)
GRAFANA_SERIES = """
SELECT floor(extract(epoch from moment)/60)*60 AS "time", name AS metric, avg(real8) AS "value"
FROM typed WHERE moment BETWEEN '2024-01-01T00:00:00Z' AND '2024-02-01T00:00:00Z' GROUP BY 1, 2 ORDER BY 1, 2
"""

NPGSQL_TYPES = """
SELECT ns.nspname, a.typname, a.oid, a.typrelid, a.typbasetype,
CASE WHEN pg_proc.proname='array_recv' THEN 'a' ELSE a.typtype END AS type,
CASE
  WHEN pg_proc.proname='array_recv' THEN a.typelem
  WHEN a.typtype='r' THEN rngsubtype
  ELSE 0
END AS elem,
CASE
  WHEN pg_proc.proname IN ('array_recv','oidvectorrecv') THEN 3    /* Arrays last */
  WHEN a.typtype='r' THEN 2                                        /* Ranges before */
  WHEN a.typtype='d' THEN 1                                        /* Domains before */
  ELSE 0                                                           /* Base types first */
END AS ord
FROM pg_type AS a
JOIN pg_namespace AS ns ON (ns.oid = a.typnamespace)
JOIN pg_proc ON pg_proc.oid = a.typreceive
LEFT OUTER JOIN pg_class AS cls ON (cls.oid = a.typrelid)
LEFT OUTER JOIN pg_type AS b ON (b.oid = a.typelem)
LEFT OUTER JOIN pg_class AS elemcls ON (elemcls.oid = b.typrelid)
LEFT OUTER JOIN pg_range ON (pg_range.rngtypid = a.oid)
WHERE
  a.typtype IN ('b', 'r', 'e', 'd') OR
  (a.typtype = 'c' AND cls.relkind='c') OR
  (pg_proc.proname='array_recv' AND (
    b.typtype IN ('b', 'r', 'e', 'd') OR
    (b.typtype = 'p' AND b.typname IN ('record', 'void')) OR
    (b.typtype = 'c' AND elemcls.relkind='c')
  )) OR
  (a.typtype = 'p' AND a.typname IN ('record', 'void'))
ORDER BY ord
"""
NPGSQL_REST = (
    "SELECT typ.oid, att.attname, att.atttypid FROM pg_type AS typ "
    "JOIN pg_namespace AS ns ON (ns.oid = typ.typnamespace) JOIN pg_class AS cls ON (cls.oid = typ.typrelid) "
    "JOIN pg_attribute AS att ON (att.attrelid = typ.typrelid) "
    "WHERE (typ.typtype = 'c' AND cls.relkind='c') AND attnum > 0 AND NOT attisdropped ORDER BY typ.oid, att.attnum",
    "SELECT pg_type.oid, enumlabel FROM pg_enum JOIN pg_type ON pg_type.oid=enumtypid ORDER BY oid, enumsortorder",
    "select character_set_name from INFORMATION_SCHEMA.character_sets",
)
POWER_BI_TABLES = (
    "select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE\nfrom INFORMATION_SCHEMA.tables\n"
    "where TABLE_SCHEMA not in ('information_schema', 'pg_catalog')\norder by TABLE_SCHEMA, TABLE_NAME"
)
POWER_BI_COLUMNS = (
    "select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, case when (data_type like '%unsigned%') then "
    "DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE\nfrom INFORMATION_SCHEMA.columns\n"
    "where TABLE_SCHEMA = 'public' and TABLE_NAME = 'clicks'\norder by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
)
POWER_BI_KEYS = """
select i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME as INDEX_NAME, ii.COLUMN_NAME, ii.ORDINAL_POSITION,
  case when i.CONSTRAINT_TYPE = 'PRIMARY KEY' then 'Y' else 'N' end as PRIMARY_KEY
from INFORMATION_SCHEMA.table_constraints i inner join INFORMATION_SCHEMA.key_column_usage ii
  on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME
  and i.TABLE_SCHEMA = ii.TABLE_SCHEMA and i.TABLE_NAME = ii.TABLE_NAME
where i.TABLE_SCHEMA = 'public' and i.TABLE_NAME = 'visits' and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE')
order by i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME, ii.TABLE_SCHEMA, ii.TABLE_NAME, ii.ORDINAL_POSITION
"""
POWER_BI_DATA = (
    'select "_"."url", "_"."a0" from ( select "rows"."url" as "url", sum(cast("rows"."visits" as decimal)) as "a0" '
    'from ( select "_"."url", "_"."visits" from "public"."visits" "_" '
    'where "_"."url" <> \'./cart\' or "_"."url" is null ) "rows" group by "url" ) "_" '
    'where not "_"."a0" is null order by "_"."url" limit 1000001'
)

TABLEAU_RELATIONS = (
    "select relname, nspname, relkind from pg_catalog.pg_class c, pg_catalog.pg_namespace n "
    "where relkind in ('r', 'v', 'm', 'f', 'p') and nspname not in ('pg_catalog', 'information_schema', 'pg_toast', "
    "'pg_temp_1', 'mv_catalog') and n.oid = relnamespace order by nspname, relname"
)
TABLEAU_COLUMNS = (
    "select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, "
    "c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype "
    "else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass "
    "from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace "
    "and c.relname = 'visits' and n.nspname = 'public') inner join pg_catalog.pg_attribute a on (not a.attisdropped) "
    "and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) "
    "left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum "
    "order by n.nspname, c.relname, attnum"
)
TABLEAU_KEYS = (
    "select ta.attname, ia.attnum, ic.relname, n.nspname, tc.relname from pg_catalog.pg_attribute ta, "
    "pg_catalog.pg_attribute ia, pg_catalog.pg_class tc, pg_catalog.pg_index i, pg_catalog.pg_namespace n, "
    "pg_catalog.pg_class ic where tc.relname = 'visits' AND n.nspname = 'public' AND tc.oid = i.indrelid "
    "AND n.oid = tc.relnamespace AND i.indisprimary = 't' AND ia.attrelid = i.indexrelid AND ta.attrelid = i.indrelid "
    "AND ta.attnum = i.indkey[ia.attnum-1] AND (NOT ta.attisdropped) AND (NOT ia.attisdropped) "
    "AND ic.oid = i.indexrelid order by ia.attnum"
)
TABLEAU_CHART = (
    'BEGIN;declare "SQL_CUR0x5581" cursor with hold for SELECT "visits"."url" AS "url", '
    'SUM("visits"."visits") AS "sum:visits:ok" FROM "public"."visits" "visits" '
    'WHERE (("visits"."url" >= \'./home\') AND ("visits"."url" <= \'./shop\')) GROUP BY 1;fetch 2048 in "SQL_CUR0x5581"'
)
TABLEAU_TIME = (
    'SELECT DATE_TRUNC( \'MONTH\', CAST("typed"."moment" AS TIMESTAMP) ) AS "tmn:moment:ok", '
    'SUM(CAST(("typed"."amount") AS DOUBLE PRECISION)) AS "sum:amount:ok", '
    'SUM((CASE WHEN 0 = 0 THEN NULL ELSE CAST(1 AS DOUBLE PRECISION) / 0 END)) AS "none" '
    'FROM "public"."typed" "typed" GROUP BY 1 HAVING (COUNT(1) > 0) ORDER BY 1'
)
