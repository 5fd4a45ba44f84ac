"""Schema registries as objects: what the statements make, show and take away, and the stores that name one."""

from __future__ import annotations

import json

import pytest

from mvserver.errors import SqlError
from tests.routing.fakes import Bench

SR = "CREATE SCHEMA_REGISTRY sr WITH ('type' = CONFLUENT, 'uris' = 'http://sr:8081')"
STORE = "CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'k:9092', 'schema_registry.name' = sr)"


def test_a_registry_is_shown_with_its_secrets_masked(bench: Bench) -> None:
    bench.run(
        "CREATE SCHEMA_REGISTRY \"sr\" WITH ('type' = confluent_cloud, 'uris' = 'https://sr', "
        "'confluent_cloud.key' = 'KEY', 'confluent_cloud.secret' = 'hunter2')"
    )
    (row,) = bench.run("DESCRIBE SCHEMA_REGISTRY sr")
    assert (row["name"], row["type"], row["uris"], row["owner"]) == ("sr", "CONFLUENT_CLOUD", "https://sr", "postgres")
    assert json.loads(row["properties"]) == {
        "uris": "https://sr", "confluent_cloud.key": "********", "confluent_cloud.secret": "********",
    }  # fmt: skip
    (listed,) = bench.run("LIST SCHEMA_REGISTRIES")
    assert (listed["name"], listed["type"], listed["uris"]) == ("sr", "CONFLUENT_CLOUD", "https://sr")
    assert bench.catalog.schema_registries.get("sr").oid >= 16384


def test_one_that_does_not_answer_is_not_made(bench: Bench) -> None:
    bench.registries.fails["check"] = SqlError("08006", 'schema registry "sr" does not answer')
    assert bench.error(SR).sqlstate == "08006"
    assert bench.catalog.schema_registries.all() == ()
    assert bench.registries.opened == set()


def test_one_of_a_name_there_is_once(bench: Bench) -> None:
    bench.run(SR)
    error = bench.error(SR)
    assert (error.sqlstate, error.message) == ("42710", 'schema registry "sr" already exists')
    bench.run(SR.replace("REGISTRY sr", "REGISTRY IF NOT EXISTS sr"))
    assert bench.notices == ['schema registry "sr" already exists, skipping']
    bench.run("DROP SCHEMA_REGISTRY sr", "DROP SCHEMA_REGISTRY IF EXISTS sr")
    assert bench.notices == ['schema registry "sr" does not exist, skipping']
    assert bench.error("DESCRIBE SCHEMA_REGISTRY sr").sqlstate == "42704"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("'uris' = 'http://a'", 'a schema registry needs the property "type"'),
        ("'type' = GLUE, 'uris' = 'http://a'", 'schema registry type "GLUE" does not exist'),
        ("'type' = CONFLUENT, 'uris' = 'a'", 'property "uris" has a part that is not an address of HTTP'),
    ],
)
def test_what_is_wrong_changes_nothing(bench: Bench, properties: str, message: str) -> None:
    error = bench.error(f"CREATE SCHEMA_REGISTRY sr WITH ({properties})")
    assert (error.sqlstate, error.message) == ("22023", message)
    assert bench.catalog.schema_registries.all() == ()


def test_an_update_is_over_what_was_there(bench: Bench) -> None:
    bench.run(SR, "UPDATE SCHEMA_REGISTRY sr WITH ('confluent.username' = u, 'confluent.password' = 'p')")
    kept = bench.catalog.schema_registries.get("sr")
    assert dict(kept.properties) == {
        "uris": "http://sr:8081", "confluent.username": "u", "confluent.password": "p",
    }  # fmt: skip
    assert kept.updated_at > kept.created_at
    assert bench.engine.names()[-1] == "reconcile"  # what reads by it goes on with the new properties
    error = bench.error("UPDATE SCHEMA_REGISTRY sr WITH ('type' = CONFLUENT_CLOUD)")
    assert (error.sqlstate, error.message) == ("0A000", 'property "type" of a schema registry cannot be changed')
    bench.registries.fails["check"] = SqlError("08006", "gone")
    assert bench.error("UPDATE SCHEMA_REGISTRY sr WITH ('uris' = 'http://other')").sqlstate == "08006"
    assert bench.catalog.schema_registries.get("sr") == kept


def test_one_that_a_store_names_stays(bench: Bench) -> None:
    assert bench.error(STORE).message == 'schema registry "sr" does not exist'
    bench.run(SR, STORE)
    error = bench.error("DROP SCHEMA_REGISTRY sr")
    assert (error.sqlstate, error.message, error.detail) == (
        "2BP01",
        "cannot drop schema registry sr because other objects depend on it",
        "store k depends on schema registry sr",
    )
    assert bench.error("UPDATE STORE k WITH ('schema_registry.name' = none_such)").sqlstate == "42704"
    bench.run("DROP STORE k", "DROP SCHEMA_REGISTRY sr")
    assert bench.catalog.schema_registries.all() == ()


def test_a_store_names_a_registry_that_its_owner_may_use(bench: Bench) -> None:
    bench.run(SR, "CREATE ROLE anna CREATESTORE")
    bench.context.role = "anna"
    assert bench.run("LIST SCHEMA_REGISTRIES") == []
    error = bench.error(STORE)
    assert (error.sqlstate, error.message) == ("42501", "permission denied for schema registry sr")
    bench.context.role = "postgres"
    bench.run("GRANT USAGE ON SCHEMA_REGISTRY sr TO anna")
    bench.context.role = "anna"
    bench.run(STORE)
    assert [row["name"] for row in bench.run("LIST SCHEMA_REGISTRIES")] == ["sr"]


def test_what_a_role_owns_goes_by_drop_owned_unless_others_use_it(bench: Bench) -> None:
    bench.run("CREATE ROLE anna CREATESTORE")
    bench.context.role = "anna"
    bench.run(SR)
    bench.context.role = "postgres"
    bench.run(STORE)
    assert bench.error("DROP OWNED BY anna CASCADE").sqlstate == "2BP01"
    bench.run("DROP STORE k", "DROP OWNED BY anna")
    assert bench.catalog.schema_registries.all() == ()
