"""Each statement form, parsed to the value that the router sees."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mvserver.sql import parse, parse_one
from mvserver.sql import types as t
from mvserver.sql.statements.absent import DropAbsent
from mvserver.sql.statements.api_tokens import CreateApiToken, DropApiToken, ListApiTokens
from mvserver.sql.statements.base import ColumnDefinition, ObjectName, Properties, RoleSpec, Statement
from mvserver.sql.statements.copying import CopyFrom, CopyOptions, CopyTo
from mvserver.sql.statements.cursors import CloseCursor, DeclareCursor, Fetch
from mvserver.sql.statements.descriptor_sources import (
    CreateDescriptorSource,
    DropDescriptorSource,
    ListDescriptors,
    ListDescriptorSources,
)
from mvserver.sql.statements.function_sources import CreateFunctionSource, DropFunctionSource, ListFunctionSources
from mvserver.sql.statements.functions import (
    CreateAggregate,
    CreateFunction,
    DescribeFunction,
    DropAggregate,
    DropFunction,
    FunctionParameter,
    ListFunctions,
)
from mvserver.sql.statements.namespaces import (
    CreateDatabase,
    CreateSchema,
    DropDatabase,
    DropSchema,
    ListDatabases,
    ListSchemas,
    Use,
)
from mvserver.sql.statements.policies import AlterPolicy, CreatePolicy, DropPolicy, SetRowSecurity
from mvserver.sql.statements.privileges import (
    AlterDefaultPrivileges,
    AlterOwner,
    DropOwned,
    Grant,
    GrantTarget,
    ReassignOwned,
    Revoke,
)
from mvserver.sql.statements.processors import (
    CreateProcessor,
    DescribeProcessor,
    DropProcessor,
    Lenses,
    ListProcessors,
    ScaleProcessor,
    StartProcessor,
    StopProcessor,
)
from mvserver.sql.statements.queries import (
    BoundedRead,
    DescribeQuery,
    DescribeStatement,
    Explain,
    ListQueries,
    Pull,
    PushQuery,
    RestartQuery,
    Subscribe,
    TerminateQuery,
)
from mvserver.sql.statements.relations import (
    Analyze,
    CommentOn,
    CreateChangelog,
    CreateChangelogAs,
    CreateIndex,
    CreateMaterializedView,
    CreateStream,
    CreateStreamAs,
    CreateTableAs,
    CreateView,
    CreateVirtual,
    DescribeRelation,
    DropIndex,
    DropRelation,
    IndexedColumn,
    InsertInto,
    ListRelations,
    MoveRelation,
    RefreshMaterializedView,
)
from mvserver.sql.statements.roles import (
    AlterRole,
    AlterRoleSetting,
    CreateRole,
    DropRole,
    GrantRole,
    RenameRole,
    RevokeRole,
    RoleOptions,
)
from mvserver.sql.statements.schema_registries import (
    CreateSchemaRegistry,
    DescribeSchemaRegistry,
    DropSchemaRegistry,
    ListSchemaRegistries,
    UpdateSchemaRegistry,
)
from mvserver.sql.statements.settings import (
    Deallocate,
    Discard,
    ExecutePrepared,
    Prepare,
    Reset,
    Set,
    SetTransaction,
    Show,
    Unlisten,
)
from mvserver.sql.statements.stores import (
    CreateEntity,
    CreateStore,
    DescribeEntity,
    DescribeStore,
    DropEntity,
    DropStore,
    InsertIntoEntity,
    ListEntities,
    ListStores,
    PrintEntity,
    UpdateStore,
    UseStore,
)
from mvserver.sql.statements.transactions import (
    Begin,
    BeginApplication,
    Commit,
    EndApplication,
    ReleaseSavepoint,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
)
from mvserver.sql.statements.types import AlterTypeAddValue, AlterTypeRename, CreateType, DropType


def name(*parts: str) -> ObjectName:
    return ObjectName(tuple(parts))


def properties(**values: Any) -> dict[str, Any]:
    return {key.replace("__", "."): value for key, value in values.items()}


PLACES = (
    "result_position",
    "body_start",
    "text",
    "start",
    "statement_start",
    "select_start",
    "program_start",
    "runners_position",
)


def simplified(value: Any) -> Any:
    """Statements without their text and place, names without positions, property lists as dicts, SELECTs as True."""
    if isinstance(value, Properties):
        return dict(value)
    if isinstance(value, ObjectName):
        return name(*value.parts)
    if isinstance(value, tuple):
        return tuple(simplified(each) for each in value)
    if isinstance(value, GrantTarget):
        return dataclasses.replace(value, names=tuple(name(*each.parts) for each in value.names))
    if dataclasses.is_dataclass(value) and isinstance(value, Statement):
        fields = {f.name: simplified(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name not in PLACES}
        if "select" in fields:
            fields["select"] = True
        return type(value), fields
    return value


def expect(kind: type[Statement], /, **fields: Any) -> Any:
    """What ``simplified`` makes of a statement; fields that are not named have their defaults."""
    result: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in PLACES:
            continue
        if field.name in fields:
            result[field.name] = fields[field.name]
        elif field.name == "select":
            result[field.name] = True
        else:
            default = {} if isinstance(field.default, Properties) else field.default
            result[field.name] = default
    return kind, result


CASES: list[tuple[str, Any]] = [
    # stores
    ("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'h:9092')",
     expect(CreateStore, name="k", properties={"type": "KAFKA", "uris": "h:9092"})),
    ("create store if not exists K with ('TYPE' = file)",
     expect(CreateStore, name="k", properties={"type": "file"}, if_not_exists=True)),
    ("UPDATE STORE k WITH ('uris' = 'x')", expect(UpdateStore, name="k", properties={"uris": "x"})),
    ("DROP STORE k", expect(DropStore, name="k")),
    ("DROP STORE IF EXISTS \"K\"", expect(DropStore, name="K", if_exists=True)),
    ("DESCRIBE STORE k", expect(DescribeStore, name="k")),
    ("CREATE SCHEMA_REGISTRY IF NOT EXISTS \"Sr\" WITH ('type' = CONFLUENT)",
     expect(CreateSchemaRegistry, name="Sr", properties={"type": "CONFLUENT"}, if_not_exists=True)),
    ("UPDATE SCHEMA_REGISTRY s WITH ('uris' = 'x')",
     expect(UpdateSchemaRegistry, name="s", properties={"uris": "x"})),
    ("DROP SCHEMA_REGISTRY IF EXISTS s", expect(DropSchemaRegistry, name="s", if_exists=True)),
    ("DESCRIBE SCHEMA_REGISTRY s", expect(DescribeSchemaRegistry, name="s")),
    ("LIST SCHEMA_REGISTRIES", expect(ListSchemaRegistries)),
    ("CREATE API_TOKEN t", expect(CreateApiToken, name="t")),
    ("CREATE API_TOKEN t VALID UNTIL '2030-01-01'", expect(CreateApiToken, name="t", valid_until="2030-01-01")),
    ("DROP API_TOKEN IF EXISTS t", expect(DropApiToken, name="t", if_exists=True)),
    ("LIST API_TOKENS", expect(ListApiTokens)),
    ("LENSES $$ a; b $$", expect(Lenses, program=" a; b ")),
    ("LENSES 'it''s'", expect(Lenses, program="it's")),
    ("CREATE PROCESSOR p AS $x$ a $x$", expect(CreateProcessor, name=ObjectName(("p",)), program=" a ")),
    ("START PROCESSOR p", expect(StartProcessor, name=ObjectName(("p",)))),
    ("STOP PROCESSOR s.p", expect(StopProcessor, name=ObjectName(("s", "p")))),
    ("SCALE PROCESSOR p TO 2 RUNNERS", expect(ScaleProcessor, name=ObjectName(("p",)), runners=2)),
    ("SCALE PROCESSOR p 1", expect(ScaleProcessor, name=ObjectName(("p",)), runners=1)),
    ("DROP PROCESSOR IF EXISTS p", expect(DropProcessor, name=ObjectName(("p",)), if_exists=True)),
    ("LIST PROCESSORS", expect(ListProcessors)),
    ("DESCRIBE PROCESSOR p", expect(DescribeProcessor, name=ObjectName(("p",)))),
    ("CREATE POLICY p ON a.v USING ((x = 1) -- of ')'\n AND y IN ('a)', (b)))",
     expect(CreatePolicy, name="p", on=ObjectName(("a", "v")),
            condition="(x = 1) -- of ')'\n AND y IN ('a)', (b))", to=(RoleSpec(special="public"),))),
    ("CREATE POLICY p ON v AS RESTRICTIVE FOR SELECT TO anna, CURRENT_USER USING (true)",
     expect(CreatePolicy, name="p", on=ObjectName(("v",)), restrictive=True, command="SELECT", condition="true",
            to=(RoleSpec("anna"), RoleSpec(special="current")))),
    ("ALTER POLICY p ON v RENAME TO q",
     expect(AlterPolicy, name="p", on=ObjectName(("v",)), new_name="q", to=None, condition=None)),
    ("ALTER POLICY p ON v TO PUBLIC USING (x)",
     expect(AlterPolicy, name="p", on=ObjectName(("v",)), to=(RoleSpec(special="public"),), condition="x")),
    ("DROP POLICY IF EXISTS p ON v CASCADE",
     expect(DropPolicy, name="p", on=ObjectName(("v",)), if_exists=True)),
    ("ALTER MATERIALIZED VIEW v ENABLE ROW LEVEL SECURITY",
     expect(SetRowSecurity, name=ObjectName(("v",)), relation_kind="materialized view", enabled=True, forced=None)),
    ("ALTER TABLE v NO FORCE ROW LEVEL SECURITY",
     expect(SetRowSecurity, name=ObjectName(("v",)), relation_kind=None, enabled=None, forced=False)),
    ("SHOW SCHEMA_REGISTRIES", expect(ListSchemaRegistries)),
    ("CREATE DESCRIPTOR_SOURCE IF NOT EXISTS pb WITH ('file' = '@a.desc', 'x' = Pb.\"M\".Inner)",
     expect(CreateDescriptorSource, name="pb", properties={"file": "@a.desc", "x": "pb.M.Inner"}, if_not_exists=True)),
    ("DROP DESCRIPTOR_SOURCE IF EXISTS pb", expect(DropDescriptorSource, name="pb", if_exists=True)),
    ("LIST DESCRIPTOR_SOURCES", expect(ListDescriptorSources)),
    ("SHOW DESCRIPTOR_SOURCES", expect(ListDescriptorSources)),
    ("LIST DESCRIPTORS", expect(ListDescriptors)),
    ("SHOW DESCRIPTORS", expect(ListDescriptors)),
    ("LIST STORES", expect(ListStores)),
    ("SHOW STORES", expect(ListStores)),
    ("USE STORE k", expect(UseStore, name="k")),
    # entities
    ("LIST ENTITIES", expect(ListEntities)),
    ("LIST TOPICS IN STORE k", expect(ListEntities, store="k")),
    ("LIST ENTITIES IN main.\"Web\" IN STORE k", expect(ListEntities, store="k", path="main.Web")),
    ("LIST ENTITIES IN 'a/b'", expect(ListEntities, path="a/b")),
    ("DESCRIBE ENTITY e", expect(DescribeEntity, name="e")),
    ("DESCRIBE TOPIC a.b IN STORE k", expect(DescribeEntity, name="a.b", store="k")),
    ("CREATE TOPIC clicks IN STORE k WITH ('topic.partitions' = 4, 'kafka.topic.retention.ms' = -1)",
     expect(CreateEntity, name="clicks", store="k",
            properties={"topic.partitions": 4, "kafka.topic.retention.ms": -1})),
    ("CREATE ENTITY \"My-Topic\"", expect(CreateEntity, name="My-Topic")),
    ("CREATE ENTITY web.t (k INT, v VARCHAR NOT NULL, PRIMARY KEY (k)) IN STORE lake",
     expect(CreateEntity, name="web.t", store="lake", primary_key=("k",),
            columns=(ColumnDefinition("k", t.INTEGER), ColumnDefinition("v", t.VARCHAR, not_null=True)))),
    ("DROP ENTITY IF EXISTS e IN STORE k WITH ('delete.files' = true)",
     expect(DropEntity, name="e", store="k", if_exists=True, properties={"delete.files": True})),
    ("DROP TOPIC 'any name'", expect(DropEntity, name="any name")),
    ("PRINT ENTITY e", expect(PrintEntity, name="e")),
    ("PRINT TOPIC e IN STORE k WITH ('from_beginning') LIMIT 10",
     expect(PrintEntity, name="e", store="k", properties={"from_beginning": None}, limit=10)),
    ("PRINT ENTITY e LIMIT 3 WITH ('from_beginning')",
     expect(PrintEntity, name="e", properties={"from_beginning": None}, limit=3)),
    ("INSERT INTO ENTITY e VALUE ('{\"a\": 1}')", expect(InsertIntoEntity, name="e", store=None, value='{"a": 1}')),
    ("INSERT INTO TOPIC e IN STORE k VALUES ('v', 'key') WITH ('x' = 'y')",
     expect(InsertIntoEntity, name="e", store="k", value="v", key="key", properties={"x": "y"})),
    # name spaces
    ("CREATE DATABASE d", expect(CreateDatabase, name="d")),
    ("CREATE DATABASE IF NOT EXISTS d", expect(CreateDatabase, name="d", if_not_exists=True)),
    ("DROP DATABASE IF EXISTS d CASCADE", expect(DropDatabase, name="d", if_exists=True, cascade=True)),
    ("DROP DATABASE d RESTRICT", expect(DropDatabase, name="d")),
    ("LIST DATABASES", expect(ListDatabases)),
    ("CREATE ROLE r", expect(CreateRole, name="r", options=RoleOptions(login=False))),
    ("ALTER ROLE r SUPERUSER", expect(AlterRole, name="r", options=RoleOptions(superuser=True))),
    ("DROP ROLE r", expect(DropRole, names=("r",))),
    ("ALTER ROLE r RENAME TO q", expect(RenameRole, name="r", new_name="q")),
    ("ALTER ROLE r SET a.b = 1",
     expect(AlterRoleSetting, role=RoleSpec("r"), setting="a.b", value="1")),
    ("GRANT SELECT ON v TO r", expect(
        Grant, privileges=("select",), on=GrantTarget("relation", (name("v"),)),
        to=(RoleSpec("r"),))),
    ("REVOKE ALL ON DATABASE d FROM PUBLIC CASCADE", expect(
        Revoke, privileges=None, on=GrantTarget("database", (name("d"),)),
        of=(RoleSpec(special="public"),), cascade=True)),
    ("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO r", expect(
        AlterDefaultPrivileges, change=expect(
            Grant, privileges=("select",), on=GrantTarget("relation"), to=(RoleSpec("r"),)))),
    ("GRANT a, b TO r", expect(GrantRole, roles=("a", "b"), to=(RoleSpec("r"),))),
    ("REVOKE a FROM r", expect(RevokeRole, roles=("a",), of=(RoleSpec("r"),))),
    ("COMMENT ON COLUMN s.v.c IS 'said'", expect(
        CommentOn, kind="relation", name=name("s", "v"), comment="said", column="c")),
    ("COPY s.v (a, b) FROM STDIN", expect(
        CopyFrom, name=name("s", "v"), columns=("a", "b"), options=CopyOptions())),
    ("COMMENT ON SERVER k IS NULL", expect(CommentOn, kind="store", name=name("k"), comment=None)),
    ("ALTER SCHEMA s OWNER TO r", expect(
        AlterOwner, kind="schema", name=name("s"), owner=RoleSpec("r"))),
    ("REASSIGN OWNED BY a TO b", expect(
        ReassignOwned, of=(RoleSpec("a"),), to=RoleSpec("b"))),
    ("DROP OWNED BY a", expect(DropOwned, of=(RoleSpec("a"),))),
    ("CREATE SCHEMA s", expect(CreateSchema, name=name("s"))),
    ("CREATE SCHEMA IF NOT EXISTS d.s", expect(CreateSchema, name=name("d", "s"), if_not_exists=True)),
    ("CREATE SCHEMA s IN DATABASE d", expect(CreateSchema, name=name("d", "s"))),
    ("CREATE TYPE s.t AS ENUM ('a', 'B')", expect(CreateType, name=name("s", "t"), labels=("a", "B"))),
    ("CREATE TYPE t AS ENUM ()", expect(CreateType, name=name("t"), labels=())),
    ("ALTER TYPE t ADD VALUE 'a'", expect(AlterTypeAddValue, name=name("t"), label="a")),
    (
        "ALTER TYPE t ADD VALUE IF NOT EXISTS 'a' BEFORE 'b'",
        expect(AlterTypeAddValue, name=name("t"), label="a", if_not_exists=True, before="b"),
    ),
    ("ALTER TYPE t ADD VALUE 'a' AFTER 'b'", expect(AlterTypeAddValue, name=name("t"), label="a", after="b")),
    ("ALTER TYPE t RENAME VALUE 'a' TO 'b'", expect(AlterTypeRename, name=name("t"), to="b", label="a")),
    ("ALTER TYPE t RENAME TO u", expect(AlterTypeRename, name=name("t"), to="u")),
    ("DROP TYPE IF EXISTS t, s.u CASCADE",
     expect(DropType, names=(name("t"), name("s", "u")), if_exists=True, cascade=True)),
    ("DROP SCHEMA d.s CASCADE", expect(DropSchema, name=name("d", "s"), cascade=True)),
    ("LIST SCHEMAS", expect(ListSchemas)),
    ("LIST SCHEMAS IN DATABASE d", expect(ListSchemas, database="d")),
    ("USE d", expect(Use, kind=None, name=name("d"))),
    ("USE d.s", expect(Use, kind=None, name=name("d", "s"))),
    ("USE DATABASE d", expect(Use, kind="database", name=name("d"))),
    ("USE SCHEMA d.s", expect(Use, kind="schema", name=name("d", "s"))),
    ("USE store", expect(Use, kind=None, name=name("store"))),
    # relations
    ("CREATE STREAM d.s.c (a BIGINT NOT NULL, b VARCHAR, \"state\" ARRAY<MAP<VARCHAR, INT>>) WITH ('topic' = 'c')",
     expect(CreateStream, name=name("d", "s", "c"), properties={"topic": "c"}, columns=(
         ColumnDefinition("a", t.BIGINT, not_null=True),
         ColumnDefinition("b", t.VARCHAR),
         ColumnDefinition("state", t.array(t.map_of(t.VARCHAR, t.INTEGER)))))),
    ("CREATE STREAM IF NOT EXISTS c (a double precision, t timestamp(3) with local time zone, n numeric(5,2) null)",
     expect(CreateStream, name=name("c"), properties={}, if_not_exists=True, columns=(
         ColumnDefinition("a", t.DOUBLE), ColumnDefinition("t", t.TIMESTAMP_LTZ),
         ColumnDefinition("n", t.decimal(5, 2))))),
    ("CREATE STREAM c AS SELECT a FROM b", expect(CreateStreamAs, name=name("c"), properties={})),
    ("CREATE STREAM c WITH ('store' = 'k') AS SELECT a FROM b",
     expect(CreateStreamAs, name=name("c"), properties={"store": "k"})),
    ("CREATE CHANGELOG IF NOT EXISTS c (a INT, b VARCHAR NOT NULL, PRIMARY KEY (b, a)) WITH ('topic' = 'c')",
     expect(CreateChangelog, name=name("c"), properties={"topic": "c"}, if_not_exists=True, primary_key=("b", "a"),
            columns=(ColumnDefinition("a", t.INTEGER), ColumnDefinition("b", t.VARCHAR, not_null=True)))),
    ("CREATE CHANGELOG d.c (a INT NOT NULL PRIMARY KEY)",
     expect(CreateChangelog, name=name("d", "c"), properties={}, primary_key=("a",),
            columns=(ColumnDefinition("a", t.INTEGER, not_null=True),))),
    ("CREATE CHANGELOG c WITH ('store' = 'k') AS SELECT a, count(*) FROM b GROUP BY a",
     expect(CreateChangelogAs, name=name("c"), properties={"store": "k"})),
    ("CREATE TABLE IF NOT EXISTS d.t WITH ('store' = 'i', 'commit.interval.millis' = 500) AS SELECT a FROM b",
     expect(CreateTableAs, name=name("d", "t"), properties={"store": "i", "commit.interval.millis": 500},
            if_not_exists=True)),
    ("LIST TABLES", expect(ListRelations, kinds=("table",), schema=None)),
    ("SHOW TABLES IN d.s", expect(ListRelations, kinds=("table",), schema=name("d", "s"))),
    ("DESCRIBE TABLE t", expect(DescribeRelation, name=name("t"), columns=False)),
    ("COMMENT ON TABLE t IS 'x'", expect(CommentOn, kind="relation", name=name("t"), comment="x",
                                         relation_kind=None)),
    ("LIST CHANGELOGS IN SCHEMA d.s", expect(ListRelations, kinds=("changelog",), schema=name("d", "s"))),
    ("DROP CHANGELOG IF EXISTS c CASCADE", expect(DropRelation, kind="changelog", name=name("c"), if_exists=True,
                                                  cascade=True)),
    ("INSERT INTO ENTITY e VALUE (NULL, 'k')", expect(
        InsertIntoEntity, name="e", store=None, value=None, key="k", properties={})),
    ("INSERT INTO c SELECT a FROM b", expect(InsertInto, name=name("c"))),
    ("INSERT INTO topic SELECT a FROM b", expect(InsertInto, name=name("topic"))),
    ("INSERT INTO c WITH x AS (SELECT 1 AS a FROM b) SELECT a FROM x", expect(InsertInto, name=name("c"))),
    ("CREATE MATERIALIZED VIEW IF NOT EXISTS p.v WITH ('retention' = 5) AS SELECT a, count(*) FROM b GROUP BY a",
     expect(CreateMaterializedView, name=name("p", "v"), properties={"retention": 5}, if_not_exists=True)),
    ("CREATE MATERIALIZED VIEW v AS SELECT a FROM b WITH DATA",
     expect(CreateMaterializedView, name=name("v"), properties={})),
    ("REFRESH MATERIALIZED VIEW p.v", expect(RefreshMaterializedView, name=name("p", "v"))),
    ("DROP STREAM c", expect(DropRelation, kind="stream", name=name("c"))),
    ("DROP MATERIALIZED VIEW IF EXISTS v CASCADE",
     expect(DropRelation, kind="materialized view", name=name("v"), if_exists=True, cascade=True)),
    ("DROP RELATION v", expect(DropRelation, kind="relation", name=name("v"))),
    ("ANALYZE", expect(Analyze, names=())),
    ("ANALYZE VERBOSE s.v (a, b), w", expect(Analyze, names=(name("s", "v"), name("w")))),
    ("DROP SEQUENCE IF EXISTS a, s.b CASCADE", expect(DropAbsent, what="sequence", names=(name("a"), name("s", "b")))),
    ("DROP TRIGGER IF EXISTS t ON v", expect(DropAbsent, what="trigger", names=(name("t"),), on=name("v"))),
    ("DROP PROCEDURE IF EXISTS f, g(OUT int)",
     expect(DropAbsent, what="procedure", names=(name("f"), name("g")), arguments=((), ()))),
    ("DROP FUNCTION IF EXISTS f, g(OUT int) CASCADE",
     expect(DropFunction, names=(name("f"), name("g")), arguments=(None, ()), if_exists=True, cascade=True)),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE python AS 'x'",
     expect(CreateFunction, name=name("f"), parameters=(), result=t.INTEGER, body="x")),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE JAVA WITH ('source.name' = s, 'class.name' = 'a.B')",
     expect(CreateFunction, name=name("f"), parameters=(), result=t.INTEGER, body="", language="java",
            properties=properties(**{"source.name": "s", "class.name": "a.B"}))),
    ("CREATE FUNCTION_SOURCE IF NOT EXISTS s WITH ('file' = '@/a.jar')",
     expect(CreateFunctionSource, name="s", properties=properties(file="@/a.jar"), if_not_exists=True)),
    ("DROP FUNCTION_SOURCE IF EXISTS s", expect(DropFunctionSource, name="s", if_exists=True)),
    ("LIST FUNCTION_SOURCES", expect(ListFunctionSources)),
    ("CREATE AGGREGATE f(a int) RETURNS int LANGUAGE python AS 'x'",
     expect(CreateAggregate, name=name("f"), parameters=(FunctionParameter("a", t.INTEGER, 20),), result=t.INTEGER,
            body="x")),
    ("DROP AGGREGATE IF EXISTS f, g(*)",
     expect(DropAggregate, names=(name("f"), name("g")), arguments=(None, ()), if_exists=True)),
    ("LIST AGGREGATES", expect(ListFunctions, aggregates=True)),
    ("DESCRIBE AGGREGATE f", expect(DescribeFunction, name=name("f"))),
    ("DESCRIBE FUNCTION f", expect(DescribeFunction, name=name("f"))),
    ("LIST FUNCTIONS", expect(ListFunctions)),
    ("LIST STREAMS", expect(ListRelations, kinds=("stream",))),
    ("LIST RELATIONS IN SCHEMA d.s", expect(ListRelations, schema=name("d", "s"))),
    ("LIST MATERIALIZED VIEWS", expect(ListRelations, kinds=("materialized view",))),
    ("LIST VIEWS IN s", expect(ListRelations, kinds=("view", "materialized view"), schema=name("s"))),
    ("CREATE VIEW p.v (a, \"B\") AS  SELECT 1, 2", expect(
        CreateView, name=name("p", "v"), columns=("a", "B"), select_text="SELECT 1, 2")),
    ("CREATE OR REPLACE VIEW v AS (TABLE b)",
     expect(CreateView, name=name("v"), columns=(), select_text="(TABLE b)", or_replace=True)),
    ("DROP VIEW IF EXISTS v CASCADE", expect(DropRelation, kind="view", name=name("v"), if_exists=True, cascade=True)),
    ("CREATE INDEX ON p.v (a, B DESC)", expect(CreateIndex, name=None, on=name("p", "v"), columns=(
        IndexedColumn("a"), IndexedColumn("b", descending=True, nulls_first=True)))),
    ("CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON ONLY v USING hash (a NULLS FIRST) NULLS NOT DISTINCT",
     expect(CreateIndex, name="i", on=name("v"), columns=(IndexedColumn("a", nulls_first=True),), unique=True,
            method="hash", nulls_distinct=False, if_not_exists=True)),
    ("DROP INDEX CONCURRENTLY IF EXISTS i, p.j CASCADE",
     expect(DropIndex, names=(name("i"), name("p", "j")), if_exists=True)),
    ("ALTER VIEW p.v RENAME TO w", expect(MoveRelation, name=name("p", "v"), kind="view", new_name="w")),
    ("ALTER TABLE IF EXISTS v RENAME TO w", expect(
        MoveRelation, name=name("v"), kind=None, new_name="w", if_exists=True)),
    ("ALTER MATERIALIZED VIEW v SET SCHEMA d.s",
     expect(MoveRelation, name=name("v"), kind="materialized view", schema=name("d", "s"))),
    ("ALTER VIEW v OWNER TO r", expect(AlterOwner, kind="relation", name=name("v"), owner=RoleSpec("r"),
                                       relation_kind="view")),
    ("DESCRIBE RELATION v", expect(DescribeRelation, name=name("v"))),
    ("DESCRIBE RELATION COLUMNS d.s.v", expect(DescribeRelation, name=name("d", "s", "v"), columns=True)),
    ("DESCRIBE RELATION columns", expect(DescribeRelation, name=name("columns"))),
    ("DESCRIBE v", expect(DescribeRelation, name=name("v"))),
    # queries
    ("LIST QUERIES", expect(ListQueries)),
    ("DESCRIBE QUERY 4e5a1c0b-0a1b-4c2d-8e3f-001122334455",
     expect(DescribeQuery, id="4e5a1c0b-0a1b-4c2d-8e3f-001122334455")),
    ("TERMINATE QUERY fe5a1c0b-0a1b-4c2d-8e3f-001122334455",
     expect(TerminateQuery, id="fe5a1c0b-0a1b-4c2d-8e3f-001122334455")),
    ("TERMINATE QUERY \"Q-1\"", expect(TerminateQuery, id="Q-1")),
    ("RESTART QUERY 'q1' SKIP REJECTED", expect(RestartQuery, id="q1", skip_rejected=True)),
    ("RESTART QUERY 'q1' WITH SNAPSHOT", expect(RestartQuery, id="q1", skip_rejected=False, with_snapshot=True)),
    ("RESTART QUERY q1", expect(RestartQuery, id="q1")),
    ("SUBSCRIBE TO s.v", expect(Subscribe, name=name("s", "v"), snapshot=False, since=None)),
    ("SUBSCRIBE v WITH (SNAPSHOT)", expect(Subscribe, name=name("v"), snapshot=True, since=None)),
    ("SUBSCRIBE TO v WITH (SINCE 'a', SNAPSHOT false)", expect(Subscribe, name=name("v"), snapshot=False, since="a")),
    # session
    ("SET application_name = 'x y'", expect(Set, name="application_name", value="x y")),
    ("SET LOCAL statement_timeout TO 500", expect(Set, name="statement_timeout", value="500", local=True)),
    ("SET SESSION DateStyle TO ISO, MDY", expect(Set, name="datestyle", value="iso, mdy")),
    ("SET search_path TO \"$user\", public", expect(Set, name="search_path", value='"$user", public')),
    ("SET extra_float_digits = -3", expect(Set, name="extra_float_digits", value="-3")),
    ("SET mv.read_while_filling = on", expect(Set, name="mv.read_while_filling", value="on")),
    ("SET x TO DEFAULT", expect(Set, name="x", value=None)),
    ("SET TIME ZONE 'UTC'", expect(Set, name="timezone", value="UTC")),
    ("SET TIME ZONE LOCAL", expect(Set, name="timezone", value=None)),
    ("SET NAMES 'UTF8'", expect(Set, name="client_encoding", value="UTF8")),
    ("SET SCHEMA 'My Schema'", expect(Set, name="search_path", value='"My Schema"')),
    ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
     expect(SetTransaction, isolation="repeatable read", read_only=True)),
    ("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE",
     expect(SetTransaction, isolation="read committed", read_only=False, session=True)),
    ("SHOW server_version", expect(Show, name="server_version")),
    ("SHOW ALL", expect(Show, name="all")),
    ("SHOW TIME ZONE", expect(Show, name="timezone")),
    ("SHOW TRANSACTION ISOLATION LEVEL", expect(Show, name="transaction_isolation")),
    ("RESET ALL", expect(Reset, name="all")),
    ("RESET mv.x", expect(Reset, name="mv.x")),
    ("DISCARD ALL", expect(Discard, what="all")),
    ("DISCARD TEMPORARY", expect(Discard, what="temp")),
    ("UNLISTEN *", expect(Unlisten)),
    ("UNLISTEN news", expect(Unlisten)),
    ("BEGIN", expect(Begin)),
    ("BEGIN TRANSACTION READ ONLY", expect(Begin, read_only=True)),
    ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE, DEFERRABLE", expect(Begin, isolation="serializable")),
    ("COMMIT", expect(Commit)),
    ("END WORK AND CHAIN", expect(Commit, chain=True)),
    ("COMMIT TRANSACTION AND NO CHAIN", expect(Commit)),
    ("ROLLBACK", expect(Rollback)),
    ("ABORT", expect(Rollback)),
    ("SAVEPOINT a", expect(Savepoint, name="a")),
    ("RELEASE SAVEPOINT a", expect(ReleaseSavepoint, name="a")),
    ("RELEASE a", expect(ReleaseSavepoint, name="a")),
    ("ROLLBACK TO SAVEPOINT a", expect(RollbackToSavepoint, name="a")),
    ("ROLLBACK WORK TO a", expect(RollbackToSavepoint, name="a")),
    ("PREPARE p (int, varchar(10), double precision, int[]) AS SELECT $1, $2",
     expect(Prepare, name="p", types=("int", "varchar(10)", "double precision", "int[]"),
            statement_text="SELECT $1, $2")),
    ("DEALLOCATE p", expect(Deallocate, name="p")),
    ("DEALLOCATE PREPARE ALL", expect(Deallocate, name=None)),
    # cursors and COPY
    ("DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT 1",
     expect(DeclareCursor, name="c", query=expect(Pull), scroll=True, hold=True)),
    ("FETCH BACKWARD 2 FROM c", expect(Fetch, name="c", direction="backward", count=2, move=False)),
    ("MOVE ALL IN c", expect(Fetch, name="c", direction="forward", count=None, move=True)),
    ("CLOSE c", expect(CloseCursor, name="c")),
    ("COPY v TO STDOUT CSV", expect(CopyTo, query=expect(Pull), options=CopyOptions("csv", ",", ""))),
    # pull queries
    ("BEGIN APPLICATION shop", expect(BeginApplication, name="shop")),
    ("END APPLICATION", expect(EndApplication)),
    ("END APPLICATION WITH ('a' = 1)", expect(EndApplication, properties={"a": 1})),
    ("CREATE VIRTUAL STREAM v AS SELECT a FROM b", expect(CreateVirtual, kind="stream", name=name("v"))),
    ("CREATE VIRTUAL CHANGELOG v AS SELECT a FROM b", expect(CreateVirtual, kind="changelog", name=name("v"))),
    ("SELECT 1", expect(Pull)),
    ("VALUES (1), (2)", expect(Pull)),
    ("TABLE v", expect(Pull)),
    ("(SELECT 1) UNION ALL SELECT 2", expect(Pull)),
    ("WITH a AS (SELECT 1) SELECT * FROM a", expect(Pull)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text[:40] for text, _ in CASES])
def test_statement(text: str, expected: Any) -> None:
    statement = parse_one(text)
    assert simplified(statement) == expected
    assert statement.text == text
    assert simplified(parse_one(f"/* before */ {text} ; -- behind")) == expected


def test_every_kind_of_statement_is_covered() -> None:
    """A statement added to the contract needs a spelling, and a test of it."""
    kinds = {each for kind in Statement.__subclasses__() for each in (kind, *kind.__subclasses__())}
    elsewhere = {Explain, DescribeStatement, ExecutePrepared, PushQuery, BoundedRead}
    assert kinds - elsewhere == {expected[0] for _, expected in CASES}


def test_explain_holds_the_statement_and_its_options() -> None:
    explain = parse_one("EXPLAIN (ANALYZE, FORMAT JSON, costs off) SELECT 1")
    assert isinstance(explain, Explain)
    assert explain.options == (("analyze", "true"), ("format", "json"), ("costs", "off"))
    assert isinstance(explain.statement, Pull)
    assert explain.statement.text == "SELECT 1"
    explain = parse_one("EXPLAIN ANALYZE VERBOSE CREATE MATERIALIZED VIEW v AS SELECT a FROM b")
    assert isinstance(explain, Explain)
    assert explain.options == (("analyze", "true"), ("verbose", "true"))
    assert isinstance(explain.statement, CreateMaterializedView)
    assert parse_one("EXPLAIN (SELECT 1)").options == ()  # type: ignore[attr-defined]


def test_describe_holds_the_statement() -> None:
    for text, kind in (
        ("CREATE STREAM c AS SELECT a FROM b", CreateStreamAs),
        ("CREATE STREAM c (a INT) WITH ('topic' = 'x')", CreateStream),
        ("INSERT INTO c SELECT a FROM b", InsertInto),
        ("CREATE MATERIALIZED VIEW v AS SELECT a FROM b", CreateMaterializedView),
        ("SELECT a FROM b", Pull),
    ):
        described = parse_one(f"DESCRIBE {text}")
        assert isinstance(described, DescribeStatement)
        assert isinstance(described.statement, kind)
        assert described.statement.text == text


def test_execute_arguments_are_expressions() -> None:
    statement = parse_one("EXECUTE p (1, 'a, (b', f(1, 2), -3, NULL, DATE '2020-01-01', ARRAY[1, 2])")
    assert isinstance(statement, ExecutePrepared)
    assert statement.name == "p"
    assert [argument.sql("postgres") for argument in statement.arguments] == [
        "1", "'a, (b'", "F(1, 2)", "-3", "NULL", "CAST('2020-01-01' AS DATE)", "ARRAY[1, 2]",
    ]  # fmt: skip
    assert parse_one("EXECUTE p") == ExecutePrepared("p", text="EXECUTE p")


def test_property_values() -> None:
    statement = parse_one(
        "CREATE STORE s WITH ('A' = 'text', 'b' = 1, 'c' = -1.5, 'd' = TRUE, 'e' = false, 'f' = Bare, "
        "'g' = \"Quoted\", 'h')"
    )
    assert isinstance(statement, CreateStore)
    assert dict(statement.properties) == {
        "a": "text", "b": 1, "c": -1.5, "d": True, "e": False, "f": "Bare", "g": "Quoted", "h": None,
    }  # fmt: skip
    assert statement.properties.position("b") == statement.text.index("'b'") + 1
    assert statement.properties.position("x") is None


def test_several_statements_and_their_positions() -> None:
    text = ";; SELECT ';' ; -- a ; comment\n/* b ; /* nested ; */ */ LIST STORES;\n SELECT $$;$$, \"a;b\" FROM t;"
    statements = parse(text)
    assert [statement.text for statement in statements] == ["SELECT ';'", "LIST STORES", 'SELECT $$;$$, "a;b" FROM t']
    assert parse("") == parse(" ; ;; -- nothing") == []
    stream = parse("LIST STORES; CREATE STREAM s AS SELECT a FROM b")[1]
    assert isinstance(stream, CreateStreamAs)
    assert stream.name.position == 28


def test_names_fold_to_lower_case_unless_quoted() -> None:
    statement = parse_one('DROP STREAM Db."Sch ""x""".MyStream')
    assert isinstance(statement, DropRelation)
    assert statement.name.parts == ("db", 'Sch "x"', "mystream")
    longest = "a" * 63
    assert parse_one(f"DROP STREAM {longest}").name.parts == (longest,)  # type: ignore[attr-defined]
