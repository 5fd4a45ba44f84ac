"""What the system catalog says of our views, streams, stores, databases and roles, and how it follows changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.model import Column, Index, IndexColumn, Relation, Schema
from catalog.model import Database as CatalogDatabase
from mvserver.errors import SqlError
from mvserver.pgcatalog import SERVER_VERSION, static_data
from mvserver.serving.api import PullScope
from tests.pgcatalog.world import SCOPE, SNAPSHOT, VISITS, CatalogWorld

COLUMNS = """SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
             WHERE attrelid = 'visits'::regclass AND attnum > 0 ORDER BY attnum"""


def test_columns_of_a_view(world: CatalogWorld) -> None:
    assert world.rows(COLUMNS) == [
        ("url", "text", False), ("visits", "bigint", False), ("total", "bigint", False),
        ("mean", "numeric(38,6)", False),
    ]  # fmt: skip


def test_the_index_of_a_view(world: CatalogWorld) -> None:
    definition = "CREATE UNIQUE INDEX visits_key ON public.visits USING btree (url) NULLS NOT DISTINCT"
    assert world.rows("SELECT tablename, indexname, indexdef FROM pg_indexes") == [("visits", "visits_key", definition)]
    assert world.rows(
        "SELECT c.relname, i.indisunique, i.indisprimary, i.indkey, pg_get_indexdef(i.indexrelid) FROM pg_index i "
        "JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'public.visits'::regclass"
    ) == [("visits_key", True, False, [1], definition)]


def test_kinds(world: CatalogWorld) -> None:
    rows = world.rows(
        "SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY relname"
    )
    assert rows == [("src", "f"), ("visits", "m"), ("visits_key", "i")]
    assert world.rows("SELECT matviewname, ispopulated FROM pg_matviews") == [("visits", True)]
    assert world.rows("SELECT srvname FROM pg_foreign_server") == [("kafka1",)]
    assert world.rows("SELECT ftrelid::regclass, ftoptions FROM pg_foreign_table") == [("src", ["topic=src"])]


def test_information_schema(world: CatalogWorld) -> None:
    assert world.rows(
        "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables "
        "WHERE table_schema = 'public' ORDER BY table_name"
    ) == [("postgres", "public", "src", "FOREIGN"), ("postgres", "public", "visits", "VIEW")]
    assert world.rows(
        "SELECT column_name, data_type, is_nullable, numeric_precision, numeric_scale, udt_name "
        "FROM information_schema.columns WHERE table_name = 'visits' ORDER BY ordinal_position"
    ) == [
        ("url", "text", "YES", None, None, "text"), ("visits", "bigint", "YES", 64, 0, "int8"),
        ("total", "bigint", "YES", 64, 0, "int8"), ("mean", "numeric", "YES", 38, 6, "numeric"),
    ]  # fmt: skip
    assert world.rows("SELECT table_name FROM information_schema.views") == [("visits",)]
    assert ("public",) in world.rows("SELECT schema_name FROM information_schema.schemata")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'visits'::regclass::oid", 16389),
        ("16389::regclass::text", "visits"),
        ("to_regclass('nosuch')", None),
        ("to_regclass('public.visits')::oid", 16389),
        ("'int4'::regtype::oid", 23),
        ("'timestamp with time zone'::regtype::oid", 1184),
        ("1009::regtype::text", "text[]"),
        ("'pg_catalog'::regnamespace::oid", 11),
        ("'postgres'::regrole::oid", 10),
        ("format_type(1700, 655366)", "numeric(10,2)"),
        ("format_type(1043, 14)", "character varying(10)"),
        ("format_type(1016, NULL)", "bigint[]"),
        ("format_type(999999, NULL)", "???"),
        ("pg_get_userbyid(10)", "postgres"),
        ("pg_get_userbyid(1)", "unknown (OID=1)"),
        ("pg_get_viewdef('visits'::regclass)", " SELECT url, count(*) AS visits FROM src GROUP BY url;"),
        ("pg_table_is_visible('visits'::regclass)", True),
        ("has_table_privilege('visits', 'SELECT')", True),
        ("has_schema_privilege('postgres', 'public', 'USAGE')", True),
        ("obj_description('visits'::regclass, 'pg_class')", None),
        ("col_description('visits'::regclass, 1)", None),
        ("pg_encoding_to_char(6)", "UTF8"),
        ("pg_is_in_recovery()", False),
        ("array_upper(ARRAY[5, 6], 1)", 2),
        ("current_schemas(true)", ["pg_catalog", "public"]),
        ("current_setting('server_version')", SERVER_VERSION),
        ("current_catalog", "postgres"),
        ("session_user", "postgres"),
        ("pg_size_pretty(20480)", "20 kB"),
        ("obj_description(16389)", None),
        ("obj_description('bool'::regtype, 'pg_type')", "boolean, 'true'/'false'"),
        ("obj_description('bool'::regtype, 'pg_class')", None),
        ("pg_get_viewdef('visits')", " SELECT url, count(*) AS visits FROM src GROUP BY url;"),
        ("pg_catalog.format('%I.%s', 'Odd', 1)", '"Odd".1'),
    ],
)
def test_functions(world: CatalogWorld, expression: str, value: object) -> None:
    assert world.rows(f"SELECT {expression}") == [(value,)]


def test_a_column_given_to_a_lookup_function_is_that_of_the_query(world: CatalogWorld) -> None:
    """DuckDB's macros are put in as text: a column named like one of the look-up's own must not be captured."""
    assert world.rows(
        "SELECT oid::regclass, pg_get_userbyid(relowner), format_type(reltype, NULL) IS NULL, pg_table_is_visible(oid) "
        "FROM pg_class WHERE relname = 'visits'"
    ) == [("visits", "postgres", False, True)]
    assert world.rows("SELECT oid::regtype FROM pg_type WHERE oid IN (23, 1007) ORDER BY oid") == [
        ("integer",), ("integer[]",),
    ]  # fmt: skip


def test_every_recorded_relation_can_be_read(world: CatalogWorld) -> None:
    for item in static_data.relations():
        fields, _ = world.ask(f'SELECT * FROM {item.schema}."{item.name}" LIMIT 1')
        assert [field.name for field in fields] == [column.name for column in item.columns]


def test_oids_are_sent_as_oids(world: CatalogWorld) -> None:
    fields, rows = world.ask("SELECT oid, relname FROM pg_catalog.pg_class WHERE relname = 'visits'")
    assert [field.type_oid for field in fields] == [26, 19]
    assert rows == [(16389, "visits")]


def test_a_view_joins_with_the_catalog(world: CatalogWorld) -> None:
    assert world.rows("SELECT c.relname, v.visits FROM visits v JOIN pg_class c ON c.relname = 'visits'") == [
        ("visits", 3)
    ]


def test_the_catalog_follows_changes_and_each_database_sees_its_own(world: CatalogWorld) -> None:
    other = PullScope("shop", ("public",), "postgres")
    try:
        odd = Relation(
            id="x", oid=17000, schema_id="s9", name="Odd Name", kind="materialized view",
            columns=(Column("a b", "ARRAY<INTEGER>"), Column("m", "MAP<VARCHAR, INTEGER>")), properties=(),
            definition="CREATE MATERIALIZED VIEW x AS SELECT 1", owner="postgres", created_at=0.0,
            key_columns=("a b",), indexes=(Index(17001, "Odd", (IndexColumn("a b", True, False),)),),
        )  # fmt: skip
        world.change(
            databases=(*SNAPSHOT.databases, CatalogDatabase("d9", 16900, "shop", "postgres")),
            schemas=(*SNAPSHOT.schemas, Schema("s9", 16901, "d9", "public", "postgres")),
            relations=(replace(VISITS, name="hits"), odd),
        )
        assert world.rows("SELECT matviewname FROM pg_matviews") == [("hits",)]
        assert world.rows("SELECT matviewname FROM pg_matviews", scope=other) == [("Odd Name",)]
        assert world.rows("SELECT datname FROM pg_database ORDER BY 1") == [("postgres",), ("shop",)]
        assert world.rows("SELECT indexdef FROM pg_indexes", scope=other) == [
            ('CREATE INDEX "Odd" ON public."Odd Name" USING btree ("a b" DESC NULLS LAST)',)
        ]
        assert world.rows("SELECT atttypid FROM pg_attribute WHERE attrelid = 17000", scope=other) == [(1007,), (114,)]
        assert world.rows("SELECT data_type FROM information_schema.columns", scope=other) == [("ARRAY",), ("json",)]
        with pytest.raises(SqlError):
            world.rows("SELECT 'visits'::regclass")
    finally:
        world.change(databases=SNAPSHOT.databases, schemas=SNAPSHOT.schemas, relations=SNAPSHOT.relations)
    assert world.rows("SELECT matviewname FROM pg_matviews") == [("visits",)]


def test_type_rows_join_as_npgsql_and_others_need(world: CatalogWorld) -> None:
    rows = world.rows(
        "SELECT t.typname, a.typname, p.proname FROM pg_type t JOIN pg_type a ON a.oid = t.typarray "
        "JOIN pg_proc p ON p.oid = t.typreceive WHERE t.oid IN (16, 23, 25, 1700) ORDER BY t.oid"
    )
    assert rows == [
        ("bool", "_bool", "boolrecv"), ("int4", "_int4", "int4recv"), ("text", "_text", "textrecv"),
        ("numeric", "_numeric", "numeric_recv"),
    ]  # fmt: skip


def test_functions_are_shown_by_name(world: CatalogWorld) -> None:
    assert world.rows("SELECT amhandler FROM pg_am WHERE amname = 'btree'") == [("bthandler",)]
    assert world.rows("SELECT typname FROM pg_type WHERE typinput = 'boolin'::regproc") == [("bool",)]
    with pytest.raises(SqlError) as caught:
        world.rows("SELECT 'nosuch'::regproc")
    assert (caught.value.sqlstate, caught.value.message) == ("42883", 'function "nosuch" does not exist')


def test_unknown_catalog_relations_do_not_exist(world: CatalogWorld) -> None:
    for name in ("pg_catalog.nosuch", "information_schema.nosuch", "mv_catalog.nosuch"):
        with pytest.raises(SqlError) as caught:
            world.rows(f"SELECT * FROM {name}")
        assert (caught.value.sqlstate, caught.value.message) == ("42P01", f'relation "{name}" does not exist')
    assert SCOPE.database == "postgres"


OPERATORS = """SELECT o.oprname, l.typname, r.typname, o.oprresult FROM pg_operator o
               LEFT JOIN pg_type l ON l.oid = o.oprleft JOIN pg_type r ON r.oid = o.oprright ORDER BY o.oid"""
RESULTS_OF_DUCKDB = {("-", "date", "date"), ("/", "int2", "int2"), ("/", "int2", "int4"), ("/", "int4", "int2"),
                     ("/", "int4", "int4"), ("<<", "int2", "int4"), (">>", "int2", "int4"), ("^", "numeric", "numeric"),
                     ("->", "jsonb", "int4"), ("->", "jsonb", "text"), ("||", "jsonb", "jsonb")}  # fmt: skip
"""Of wider types than PostgreSQL's, or its json."""


def test_every_operator_that_is_listed_can_be_used(world: CatalogWorld) -> None:
    operators = world.rows(OPERATORS)
    assert ("+", "int4", "int8", 20) in operators
    assert (None, "-") in {(left, name) for name, left, _, _ in operators}
    used = [f"{f'NULL::{left} ' if left else ''}{name} NULL::{right} AS x" for name, left, right, _ in operators]
    fields, _ = world.ask(f"SELECT {', '.join(used)}")
    wrong = {
        (name, left, right): field.type_oid
        for (name, left, right, result), field in zip(operators, fields, strict=True)
        if field.type_oid != result
    }
    assert set(wrong) <= RESULTS_OF_DUCKDB
