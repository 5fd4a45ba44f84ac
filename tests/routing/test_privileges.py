"""Every statement that a role may or may not: what it needs, that it is refused without, and that it works with it.

A statement class that has no row here fails the test.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass

import pytest

from mvserver.errors import SqlError
from mvserver.routing.handler_rows import ROWS
from mvserver.sql import parse_one
from mvserver.sql.statements.absent import DropAbsent
from mvserver.sql.statements.api_tokens import CreateApiToken, ListApiTokens
from mvserver.sql.statements.copying import CopyFrom
from mvserver.sql.statements.descriptor_sources import ListDescriptors, ListDescriptorSources
from mvserver.sql.statements.function_sources import ListFunctionSources
from mvserver.sql.statements.functions import ListFunctions
from mvserver.sql.statements.namespaces import ListDatabases
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
from mvserver.sql.statements.queries import BoundedRead, ListQueries, PushQuery, Subscribe
from mvserver.sql.statements.relations import Analyze, CreateView, ListRelations
from mvserver.sql.statements.schema_registries import ListSchemaRegistries
from mvserver.sql.statements.stores import ListStores
from tests.routing.fakes import SETUP, Bench

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT url, count(*) AS n FROM clicks GROUP BY url"
NEW_STREAM = "CREATE STREAM mine (url VARCHAR) WITH ('store' = k, 'topic' = 'clicks', 'value.format' = 'json')"
NEW_TOPIC = (
    "CREATE STREAM mine (url VARCHAR) WITH ('store' = k, 'topic' = 'new', 'value.format' = 'json', "
    "'topic.partitions' = 1, 'topic.replicas' = 1)"
)


@dataclass(frozen=True)
class Case:
    """``needs`` are the grants, by a superuser, that together let anna do it; with any one missing it is refused."""

    text: str
    needs: tuple[str, ...]
    message: str  # of the refusal with nothing granted


def case(text: str, message: str, *needs: str) -> Case:
    return Case(text, needs, message)


OWN = "ALTER {} OWNER TO anna"
CREATE = "GRANT CREATE ON SCHEMA public TO anna"
CASES = (
    case("CREATE STORE mine WITH ('type' = FILE, 'uris' = 'x')", "permission denied to create store",
         "ALTER ROLE anna CREATESTORE"),
    case("UPDATE STORE k WITH ('uris' = 'k:9092')", "must be owner of store k", OWN.format("STORE k")),
    case("DROP STORE spare", "must be owner of store spare", OWN.format("STORE spare")),
    case("DESCRIBE STORE k", "permission denied for store k", "GRANT USAGE ON STORE k TO anna"),
    case("COMMENT ON STORE spare IS 'text'", "must be owner of store spare", OWN.format("STORE spare")),
    case("CREATE SCHEMA_REGISTRY mine WITH ('type' = CONFLUENT, 'uris' = 'http://x')",
         "permission denied to create schema registry", "ALTER ROLE anna CREATESTORE"),
    case("UPDATE SCHEMA_REGISTRY sr WITH ('uris' = 'http://y')", "must be owner of schema registry sr",
         OWN.format("SCHEMA_REGISTRY sr")),
    case("DROP SCHEMA_REGISTRY sr", "must be owner of schema registry sr", OWN.format("SCHEMA_REGISTRY sr")),
    case("DESCRIBE SCHEMA_REGISTRY sr", "permission denied for schema registry sr",
         "GRANT USAGE ON SCHEMA_REGISTRY sr TO anna"),
    case("CREATE DESCRIPTOR_SOURCE mine WITH ('file' = 'a.avsc')", "permission denied to create descriptor source",
         "ALTER ROLE anna CREATESTORE"),
    case("DROP DESCRIPTOR_SOURCE ds", "must be owner of descriptor source ds", OWN.format("DESCRIPTOR_SOURCE ds")),
    case("CREATE STREAM mine (a INTEGER) WITH ('store' = k, 'topic' = 'clicks', 'value.format' = 'avro', "
         "'value.descriptor.name' = ds)", "permission denied for schema public", CREATE,
         "GRANT USAGE ON STORE k TO anna", "GRANT USAGE ON DESCRIPTOR_SOURCE ds TO anna"),
    case("USE STORE k", "permission denied for store k", "GRANT USAGE ON STORE k TO anna"),
    case("LIST ENTITIES IN STORE k", "permission denied for store k", "GRANT USAGE ON STORE k TO anna"),
    case("DESCRIBE ENTITY clicks IN STORE k", "permission denied for store k", "GRANT USAGE ON STORE k TO anna"),
    case("CREATE ENTITY e IN STORE k", "permission denied for store k", "GRANT CREATE ON STORE k TO anna"),
    case("DROP ENTITY spare IN STORE k", "permission denied for store k", "GRANT CREATE ON STORE k TO anna"),
    case("PRINT ENTITY clicks IN STORE k LIMIT 1", "permission denied for store k", "GRANT USAGE ON STORE k TO anna"),
    case("INSERT INTO ENTITY clicks IN STORE k VALUE ('{}')", "permission denied for store k",
         "GRANT INSERT ON STORE k TO anna"),
    case("CREATE DATABASE d", "permission denied to create database",
         "GRANT CREATE_DATABASE ON ORGANIZATION TO ROLE anna"),
    case("DROP DATABASE other", "must be owner of database other", OWN.format("DATABASE other")),
    case("CREATE SCHEMA mine", "permission denied for database postgres",
         "GRANT CREATE ON DATABASE postgres TO anna"),
    case("DROP SCHEMA hidden CASCADE", "must be owner of schema hidden", OWN.format("SCHEMA hidden")),
    case("CREATE TYPE mine AS ENUM ('a')", "permission denied for schema public", CREATE),
    case("ALTER TYPE mood ADD VALUE 'b'", "must be owner of type mood", OWN.format("TYPE mood")),
    case("ALTER TYPE mood RENAME VALUE 'a' TO 'b'", "must be owner of type mood", OWN.format("TYPE mood")),
    case("ALTER TYPE mood RENAME TO mine", "must be owner of type mood", OWN.format("TYPE mood"), CREATE),
    case("DROP TYPE mood", "must be owner of type mood", OWN.format("TYPE mood")),
    case("CREATE FUNCTION mine(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$return n$$",
         "permission denied to create function", "ALTER ROLE anna CREATEFUNCTION", CREATE),
    case("CREATE AGGREGATE mine(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$return n[0]$$",
         "permission denied to create function", "ALTER ROLE anna CREATEFUNCTION", CREATE),
    case("DROP AGGREGATE most(BIGINT)", "must be owner of function most", OWN.format("AGGREGATE most(BIGINT)")),
    case("CREATE FUNCTION_SOURCE mine WITH ('file' = 'some.jar')", "permission denied to create function source",
         "ALTER ROLE anna SUPERUSER"),
    case("DROP FUNCTION_SOURCE spare", "permission denied to drop function source", "ALTER ROLE anna SUPERUSER"),
    case("DROP FUNCTION twice(BIGINT)", "must be owner of function twice", OWN.format("SCHEMA public")),
    case("DESCRIBE FUNCTION twice", "permission denied for function twice",
         "GRANT EXECUTE ON FUNCTION twice(BIGINT) TO anna"),
    case("CREATE MATERIALIZED VIEW mine AS SELECT twice(event_time) AS t FROM clicks",
         "permission denied for schema public", CREATE, "GRANT SELECT ON clicks TO anna",
         "GRANT EXECUTE ON FUNCTION twice TO anna"),
    case("LIST SCHEMAS IN DATABASE other", "permission denied for database other",
         "GRANT CONNECT ON DATABASE other TO anna"),
    case("USE DATABASE other", 'permission denied for database "other"', "GRANT USAGE ON DATABASE other TO anna"),
    case("USE SCHEMA hidden", "permission denied for schema hidden", "GRANT USAGE ON SCHEMA hidden TO anna"),
    case(NEW_STREAM, "permission denied for schema public", CREATE, "GRANT USAGE ON STORE k TO anna"),
    case(NEW_TOPIC, "permission denied for schema public", CREATE, "GRANT USAGE ON STORE k TO anna",
         "GRANT CREATE ON STORE k TO anna"),
    case("CREATE STREAM mine WITH ('topic' = 'spare') AS SELECT url FROM clicks",
         "permission denied for schema public", CREATE, "GRANT SELECT ON clicks TO anna",
         "GRANT USAGE ON STORE k TO anna", "GRANT INSERT ON STORE k TO anna"),
    case("CREATE CHANGELOG mine (url VARCHAR PRIMARY KEY) "
         "WITH ('store' = k, 'topic' = 'clicks', 'value.format' = json)",
         "permission denied for schema public", CREATE, "GRANT USAGE ON STORE k TO anna"),
    case("CREATE CHANGELOG mine WITH ('topic' = 'spare') AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
         "permission denied for schema public", CREATE, "GRANT SELECT ON clicks TO anna",
         "GRANT USAGE ON STORE k TO anna", "GRANT INSERT ON STORE k TO anna"),
    case("CREATE TABLE mine WITH ('store' = spare) AS SELECT url FROM clicks",
         "permission denied for schema public", CREATE, "GRANT SELECT ON clicks TO anna",
         "GRANT USAGE ON STORE spare TO anna", "GRANT INSERT ON STORE spare TO anna",
         "GRANT CREATE ON STORE spare TO anna"),
    case("INSERT INTO copies SELECT url FROM clicks", "permission denied for stream copies",
         "GRANT INSERT ON copies TO anna", "GRANT SELECT ON clicks TO anna"),
    case("INSERT INTO hidden.copies SELECT url FROM clicks", "permission denied for schema hidden",
         "GRANT USAGE ON SCHEMA hidden TO anna", "GRANT INSERT ON ALL TABLES IN SCHEMA hidden TO anna",
         "GRANT SELECT ON clicks TO anna"),
    case("CREATE MATERIALIZED VIEW mine AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
         "permission denied for schema public", CREATE, "GRANT SELECT ON clicks TO anna"),
    case("EXPLAIN CREATE MATERIALIZED VIEW mine AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
         "permission denied for schema public", CREATE, "GRANT SELECT ON clicks TO anna"),
    case("DESCRIBE CREATE MATERIALIZED VIEW mine AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
         "permission denied for schema public", CREATE, "GRANT SELECT ON clicks TO anna"),
    case("REFRESH MATERIALIZED VIEW v", "must be owner of materialized view v", OWN.format("MATERIALIZED VIEW v"),
         "GRANT SELECT ON clicks TO anna"),
    case("DROP MATERIALIZED VIEW v", "must be owner of materialized view v", OWN.format("MATERIALIZED VIEW v")),
    case("CREATE INDEX i ON v (url)", "must be owner of materialized view v", OWN.format("MATERIALIZED VIEW v")),
    case("DROP INDEX noted", "must be owner of index noted", OWN.format("MATERIALIZED VIEW v")),
    case("ALTER MATERIALIZED VIEW v RENAME TO w", "must be owner of materialized view v",
         OWN.format("MATERIALIZED VIEW v"), CREATE),
    case("DROP STREAM file_clicks", "must be owner of stream file_clicks", OWN.format("SCHEMA public")),
    case("DESCRIBE RELATION clicks", "permission denied for stream clicks", "GRANT INSERT ON clicks TO anna"),
    case("DESCRIBE RELATION COLUMNS v", "permission denied for materialized view v", "GRANT SELECT ON v TO anna"),
    case("DESCRIBE QUERY {query}", "permission denied for query {query}", "GRANT SELECT ON v TO anna"),
    case("TERMINATE QUERY {query}", "must be owner of query {query}", OWN.format("MATERIALIZED VIEW v")),
    case("RESTART QUERY {query}", "must be owner of query {query}", OWN.format("MATERIALIZED VIEW v"),
         "GRANT SELECT ON clicks TO anna"),
    case("CREATE ROLE other", "permission denied to create role", "ALTER ROLE anna SUPERUSER"),
    case("ALTER ROLE ben PASSWORD 'x'", "permission denied to alter role", "ALTER ROLE anna SUPERUSER"),
    case("ALTER ROLE anna CREATESTORE", "permission denied to alter role", "ALTER ROLE anna SUPERUSER"),
    case("ALTER ROLE ben RENAME TO bea", "permission denied to rename role", "ALTER ROLE anna SUPERUSER"),
    case("ALTER ROLE ben SET search_path = x", "permission denied to alter role", "ALTER ROLE anna SUPERUSER"),
    case("DROP ROLE ben", "permission denied to drop role", "ALTER ROLE anna SUPERUSER"),
    case("GRANT SELECT ON v TO ben", "permission denied for materialized view v",
         "GRANT SELECT ON v TO anna WITH GRANT OPTION"),
    case("GRANT CREATE_STORE ON ORGANIZATION TO ROLE ben", "permission denied to grant privileges on the organization",
         "ALTER ROLE anna SUPERUSER"),
    case("REVOKE SELECT ON v FROM ben", "permission denied for materialized view v", OWN.format("MATERIALIZED VIEW v")),
    case("GRANT team TO ben", 'must have admin option on role "team"', "GRANT team TO anna WITH ADMIN OPTION"),
    case("REVOKE team FROM ben", 'must have admin option on role "team"', "GRANT team TO anna WITH ADMIN OPTION"),
    case("ALTER STREAM clicks OWNER TO anna", "must be owner of stream clicks", "ALTER ROLE anna SUPERUSER"),
    case("ALTER QUERY '{writer}' OWNER TO ben", "must be owner of query {writer}", "ALTER ROLE anna SUPERUSER"),
    case("COMMENT ON STREAM clicks IS 'x'", "must be owner of stream clicks", OWN.format("STREAM clicks")),
    case("CREATE CHANGELOG mine (url VARCHAR, PRIMARY KEY (url)) "
         "WITH ('store' = k, 'topic' = 'clicks', 'value.format' = 'json')",
         "permission denied for schema public", CREATE, "GRANT USAGE ON STORE k TO anna"),
    case("ALTER DEFAULT PRIVILEGES FOR ROLE team GRANT SELECT ON TABLES TO anna",
         "permission denied to change default privileges", "GRANT team TO anna"),
    case("REASSIGN OWNED BY team TO anna", "permission denied to reassign objects", "GRANT team TO anna"),
    case("DROP API_TOKEN spare", "must be owner of API token spare", "ALTER ROLE anna SUPERUSER"),
    case("CREATE POLICY p ON v USING (true)", "must be owner of materialized view v",
         OWN.format("MATERIALIZED VIEW v")),
    case("ALTER POLICY spare ON v RENAME TO p", "must be owner of materialized view v",
         OWN.format("MATERIALIZED VIEW v")),
    case("DROP POLICY spare ON v", "must be owner of materialized view v", OWN.format("MATERIALIZED VIEW v")),
    case("ALTER MATERIALIZED VIEW v DISABLE ROW LEVEL SECURITY", "must be owner of materialized view v",
         OWN.format("MATERIALIZED VIEW v")),
    case("DROP OWNED BY team", "permission denied to drop objects", "GRANT team TO anna"),
)  # fmt: skip

FREE = {
    # they leave out what the role may not see
    ListStores, ListSchemaRegistries, ListDescriptors, ListDescriptorSources, ListApiTokens, ListDatabases,
    ListRelations, ListQueries, ListProcessors, ListFunctions,
    ListFunctionSources,
    CreateApiToken,  # of the role that makes it
    Analyze, DropAbsent,  # change nothing, and tell only whether a name is there
}  # fmt: skip
ELSEWHERE = {
    PushQuery,  # by the resolver of names, as CREATE MATERIALIZED VIEW; tests/clients asks it
    BoundedRead,
    Subscribe,  # tests/server
    CopyFrom,
    CreateView,  # tests/clients
    # tests/lenses
    Lenses,
    CreateProcessor,
    StartProcessor,
    StopProcessor,
    ScaleProcessor,
    DropProcessor,
    DescribeProcessor,
}


@pytest.fixture
def world(bench: Bench) -> Bench:
    schema = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
    (bench.config_folder / "a.avsc").write_text(schema)
    with zipfile.ZipFile(bench.config_folder / "some.jar", "w") as jar:
        jar.writestr("A.class", b"")
    bench.run(
        *SETUP,
        "CREATE ENTITY spare IN STORE k",
        "CREATE STREAM copies (url VARCHAR) WITH ('store' = k, 'topic' = 'copies', 'value.format' = 'json', "
        "'topic.partitions' = 1, 'topic.replicas' = 1)",
        "CREATE DESCRIPTOR_SOURCE ds WITH ('file' = 'a.avsc')",
        "CREATE SCHEMA_REGISTRY sr WITH ('type' = CONFLUENT, 'uris' = 'http://x')",
        "CREATE STORE spare WITH ('type' = WAREHOUSE, 'uris' = 'spare')",
        VIEW,
        "INSERT INTO copies SELECT url FROM clicks",
        "CREATE ROLE anna",
        "CREATE ROLE ben",
        "CREATE ROLE team",
        "CREATE DATABASE other",
        "REVOKE ALL ON DATABASE other FROM PUBLIC",
        "CREATE SCHEMA hidden",
        "CREATE TYPE mood AS ENUM ('a')",
        "CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$return n * 2$$",
        "CREATE AGGREGATE most(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$return max(n)$$",
        "CREATE FUNCTION_SOURCE spare WITH ('file' = 'some.jar')",
        "REVOKE EXECUTE ON FUNCTION twice(BIGINT) FROM PUBLIC",
        "CREATE INDEX noted ON v (url)",
        "CREATE API_TOKEN spare",
        "CREATE POLICY spare ON v USING (true)",
        "CREATE STREAM hidden.copies (url VARCHAR) WITH ('store' = k, 'topic' = 'copies', 'value.format' = 'json')",
    )
    return bench


def attempt(world: Bench, text: str) -> SqlError | None:
    """By anna; what was changed is changed back by the next bench."""
    world.context.role = "anna"
    try:
        world.run(text)
    except SqlError as error:
        return error
    finally:
        world.context.role = "postgres"
    return None


@pytest.mark.parametrize("each", CASES, ids=[each.text[:60] for each in CASES])
def test_what_a_statement_needs(world: Bench, each: Case) -> None:
    text, message = each.text, each.message
    for query in world.catalog.queries.all():
        place = "{query}" if query.kind == "materialized_view" else "{writer}"
        text, message = text.replace(place, query.id), message.replace(place, query.id)
    before = world.dump()
    refused = attempt(world, text)
    assert refused is not None
    assert (refused.sqlstate, refused.message) == ("42501", message)
    assert world.dump() == before
    for given, need in enumerate(each.needs):
        if given:
            still = attempt(world, text)
            assert still is not None, f"{text} works without {each.needs[given:]}"
            assert still.sqlstate == "42501"
        world.run(need)
    error = attempt(world, text)
    assert error is None, f"{error}: {error.detail}"


def test_every_statement_of_the_router_is_in_the_table() -> None:
    tried = {type(parse_one(each.text.replace("{query}", "q").replace("{writer}", "q"))) for each in CASES}
    assert set(ROWS) - tried - FREE - ELSEWHERE == set()


def test_lists_leave_out_what_is_not_to_be_seen(world: Bench) -> None:
    lists = ("LIST STORES", "LIST DATABASES", "LIST SCHEMAS", "LIST RELATIONS", "LIST QUERIES")
    everything = {text: len(world.run(text)) for text in lists}
    assert everything == dict(zip(lists, (3, 2, 2, 4, 2), strict=True))

    def seen() -> dict[str, list[str]]:
        world.context.role = "anna"
        found = {text: sorted(row.get("name") or row["id"] for row in world.run(text)) for text in lists}
        world.context.role = "postgres"
        return found

    assert seen() == dict(zip(lists, ([], ["postgres"], ["public"], [], []), strict=True))
    world.run("GRANT SELECT ON v TO anna", "GRANT USAGE ON STORE f TO anna", "GRANT CREATE ON SCHEMA hidden TO anna")
    assert seen() == dict(
        zip(lists, (["f"], ["postgres"], ["hidden", "public"], ["v"], ["postgres.public.v"]), strict=True)
    )
    world.run("REVOKE USAGE ON SCHEMA public FROM PUBLIC")
    assert seen()["LIST RELATIONS"] == seen()["LIST QUERIES"] == []


def test_a_schema_that_one_may_not_use_is_passed_over(world: Bench) -> None:
    world.run("GRANT SELECT ON ALL TABLES IN SCHEMA hidden TO anna", "GRANT SELECT ON copies TO anna")
    world.context.schema, world.context.settings["search_path"] = "hidden", "hidden, public"
    found = {}
    for grant in ("", "GRANT USAGE ON SCHEMA hidden TO anna"):
        if grant:
            world.run(grant)
        world.context.role = "anna"
        found[grant] = world.run("DESCRIBE RELATION copies")[0]["name"]
        world.context.role = "postgres"
    assert list(found.values()) == ["postgres.public.copies", "postgres.hidden.copies"]


def test_who_may_read_a_store_cannot_write_to_it_by_a_stream_of_his_own(world: Bench) -> None:
    world.run(CREATE, "GRANT USAGE ON STORE k TO anna", "GRANT SELECT ON clicks TO anna")
    assert attempt(world, NEW_STREAM.replace("'clicks'", "'copies'")) is None
    error = attempt(world, "INSERT INTO mine SELECT url FROM clicks")
    assert error is not None
    assert (error.sqlstate, error.message) == ("42501", "permission denied for store k")
    assert error.detail == 'Role "anna", the owner of stream "mine", may not write to the store.'
    world.run("GRANT INSERT ON STORE k TO anna")
    assert attempt(world, "INSERT INTO mine SELECT url FROM clicks") is None


def test_a_query_is_started_anew_only_while_its_owner_may_read(world: Bench) -> None:
    world.run(CREATE, "GRANT SELECT ON clicks TO anna")
    assert attempt(world, VIEW.replace(" v ", " mine ")) is None
    query = next(q for q in world.catalog.queries.all() if q.owner == "anna")
    world.run("REVOKE SELECT ON clicks FROM anna")
    for text in (f"RESTART QUERY {query.id}", "REFRESH MATERIALIZED VIEW mine"):
        error = attempt(world, text)
        assert error is not None
        assert (error.sqlstate, error.message) == ("42501", "permission denied for stream clicks")
        assert world.error(text).detail == 'The query runs as its owner, role "anna".'


def test_grants_are_rehearsed_and_carried_out_by_what_is_in_force_then(world: Bench) -> None:
    world.context.role = "anna"
    for text in ("GRANT SELECT ON v TO anna", "ALTER ROLE anna SUPERUSER", "GRANT team TO anna"):
        with pytest.raises(SqlError, match=r"42501: (permission denied|must)"):
            world.router.validate(parse_one(text), world.context)
    world.context.role = "postgres"
    world.run("GRANT SELECT ON v TO anna WITH GRANT OPTION")
    world.context.role = "anna"
    waiting = [parse_one("GRANT SELECT ON v TO ben"), parse_one("GRANT SELECT ON v TO team")]
    for at, statement in enumerate(waiting):
        world.router.validate(statement, world.context, waiting[:at])
    world.context.role = "postgres"
    world.run("REVOKE SELECT ON v FROM anna")
    world.context.role = "anna"
    with pytest.raises(SqlError) as raised:
        world.router.execute_all(waiting, world.context)
    assert raised.value.sqlstate == "42501"
    assert not world.catalog.privileges.given_to(world.catalog.roles.get("ben"))


def test_a_drop_takes_the_privileges_along_and_a_new_object_begins_without(world: Bench) -> None:
    world.run("GRANT SELECT ON v TO anna", "DROP MATERIALIZED VIEW v", VIEW)
    assert attempt(world, "DESCRIBE RELATION v") is not None
    world.run("DROP ROLE anna")


def test_drop_owned_takes_everything_in_one_step(world: Bench) -> None:
    world.run(
        "GRANT CREATE ON DATABASE postgres TO anna", CREATE, "GRANT SELECT ON clicks TO anna WITH GRANT OPTION",
        "ALTER ROLE anna CREATESTORE",
    )  # fmt: skip
    for text in (
        "CREATE SCHEMA hers", "CREATE STORE h WITH ('type' = FILE, 'uris' = 'h')", "GRANT SELECT ON clicks TO ben",
        "CREATE STREAM hers.s (url VARCHAR) WITH ('store' = h, 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW hers.w AS SELECT url, count(*) AS n FROM hers.s GROUP BY url",
    ):  # fmt: skip
        assert attempt(world, text) is None
    world.run("CREATE MATERIALIZED VIEW x AS SELECT url, count(*) AS n FROM hers.s GROUP BY url")
    error = world.error("DROP OWNED BY anna")
    assert error.sqlstate == "2BP01"
    assert "materialized view x depends on stream s" in str(error.detail)
    world.run("DROP OWNED BY anna CASCADE")
    assert world.notices == ["drop cascades to materialized view x"]
    assert [store.name for store in world.catalog.stores.all()] == ["f", "k", "spare"]
    assert not world.catalog.privileges.given_to(world.catalog.roles.get("ben"))
    world.run("DROP ROLE anna")


def test_a_role_that_something_is_granted_to_is_not_dropped(world: Bench) -> None:
    world.run("GRANT SELECT ON v TO anna", "GRANT USAGE ON STORE k TO anna")
    error = world.error("DROP ROLE anna")
    assert (error.sqlstate, error.message) == (
        "2BP01", 'role "anna" cannot be dropped because some objects depend on it',
    )  # fmt: skip
    assert error.detail == "privileges for store k\nprivileges for materialized view v"
    world.run("REVOKE ALL ON v FROM anna", "REVOKE ALL ON STORE k FROM anna", "DROP ROLE anna")
