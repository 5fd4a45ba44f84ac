"""Stores, entities, databases, schemas, streams: what the statements make, show and take away."""

from __future__ import annotations

import json

import pytest

from catalog.model import Relation
from mvserver.errors import SqlError
from mvserver.sql import parse_one
from spark_sinks.base import EntityRecord
from tests.routing.fakes import Bench


def test_a_store_is_shown_with_its_secrets_masked(bench: Bench) -> None:
    bench.run("CREATE STORE k WITH ('type' = kafka, 'uris' = 'k:9092', 'kafka.sasl.password' = 'hunter2', "
              "'access_region' = 'eu')")  # fmt: skip
    (row,) = bench.run("DESCRIBE STORE k")
    assert (row["name"], row["type"], row["uris"], row["owner"]) == ("k", "KAFKA", "k:9092", "postgres")
    assert json.loads(row["properties"]) == {
        "uris": "k:9092", "kafka.sasl.password": "********", "access.region": "eu",
    }  # fmt: skip
    assert bench.run("LIST STORES")[0]["current"] is False
    bench.run("USE STORE k")
    assert bench.run("LIST STORES")[0]["current"] is True


def test_a_store_that_does_not_answer_is_not_made(bench: Bench) -> None:
    bench.stores.fails["check"] = SqlError("08006", 'store "k" does not answer')
    assert bench.error("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'k:9092')").sqlstate == "08006"
    assert bench.catalog.stores.all() == ()
    assert bench.stores.opened == set()


def test_config_file_is_read_from_the_folder_and_the_statement_wins(bench: Bench) -> None:
    (bench.config_folder / "k.properties").write_text(
        "# the cluster\n! and its password\n\nuris: one:9092, \\\n   two:9092\nkafka.sasl.password = a=b:c\n"
    )
    bench.run("CREATE STORE k WITH ('type' = KAFKA, 'config_file' = 'k.properties')")
    assert dict(bench.catalog.stores.get("k").properties) == {
        "uris": "one:9092, two:9092", "kafka.sasl.password": "a=b:c",
    }  # fmt: skip
    bench.run("CREATE STORE l WITH ('type' = KAFKA, 'config_file' = 'k.properties', 'uris' = 'l:1')")
    assert bench.catalog.stores.get("l").property("uris") == "l:1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("colour = red\nuris=x", 'property "colour" is not known for a store of type KAFKA'),
        ("uris=x\nnothing here", 'config_file "c" is not a properties file'),
        ("uris=x\nURIS=y", 'config_file "c" has the key "uris" more than once'),
        ("type=FILE", 'config_file "c" cannot have the key "type"'),
        ("x" * 70_000, 'config_file "c" is too large'),
    ],
)
def test_a_bad_config_file_is_refused(bench: Bench, content: str, message: str) -> None:
    (bench.config_folder / "c").write_text(content)
    error = bench.error("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'k:1', 'config_file' = 'c')")
    assert error.message == message
    assert bench.catalog.stores.all() == ()


def test_a_link_does_not_lead_out_of_the_config_folder(bench: Bench) -> None:
    outside = bench.folder / "secret.properties"
    outside.write_text("uris=x:1")
    (bench.config_folder / "link").symlink_to(outside)
    error = bench.error("CREATE STORE k WITH ('type' = KAFKA, 'config_file' = 'link')")
    assert (error.sqlstate, error.message) == ("42501", 'config_file "link" is not in the configured folder')


def test_update_store_keeps_what_is_not_named_and_tells_the_engine(filled: Bench) -> None:
    before = filled.catalog.stores.get("k")
    filled.run("UPDATE STORE k WITH ('kafka.sasl.password' = 'new')")
    after = filled.catalog.stores.get("k")
    assert dict(after.properties) == {"uris": "k:9092", "kafka.sasl.password": "new"}
    assert after.updated_at > before.updated_at
    assert filled.engine.names() == ["reconcile"]


def test_drop_store_forgets_clients_and_the_session_store(bench: Bench) -> None:
    bench.run("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'k:1')", "USE STORE k", "DROP STORE k")
    assert bench.catalog.stores.all() == ()
    assert bench.context.store is None
    assert bench.stores.opened == set()
    bench.run("DROP STORE IF EXISTS k")
    assert bench.notices == ['store "k" does not exist, skipping']
    bench.run("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'k:1')")
    bench.run("CREATE STORE IF NOT EXISTS k WITH ('type' = KAFKA, 'uris' = 'k:2')")
    assert bench.notices == ['store "k" already exists, skipping']


def test_entities_are_listed_made_printed_written_and_dropped(filled: Bench) -> None:
    filled.run("USE STORE k", "CREATE ENTITY raw WITH ('topic.partitions' = 2)")
    assert [row["name"] for row in filled.run("LIST TOPICS")] == ["clicks", "raw"]
    (row,) = filled.run("DESCRIBE ENTITY clicks")
    assert json.loads(row["details"]) == {"partitions": "4", "replicas": "1"}
    assert json.loads(row["relations"]) == ["postgres.public.clicks"]
    assert filled.result("INSERT INTO ENTITY raw VALUE ('{\"a\": 1}', 'key')").tag == "INSERT 0 1"
    filled.kafka().records["raw"] += [
        EntityRecord(None, None, "1:0", None),
        EntityRecord(b"\xff", b"\xfe", "1:1", 2_000),
        EntityRecord(b"a\0b", b"x", "1:2", 3_000),
    ]
    rows = filled.run("PRINT ENTITY raw WITH ('from_beginning') LIMIT 4")
    assert [(r["key"], r["value"], r["position"]) for r in rows] == [
        ("key", '{"a": 1}', "0:0"), (None, None, "1:0"), ("\\xff", "\\xfe", "1:1"), ("\\x610062", "x", "1:2"),
    ]  # fmt: skip
    assert rows[0]["timestamp"].timestamp() == 1.0
    assert rows[1]["timestamp"] is None
    assert filled.run("PRINT ENTITY raw LIMIT 4") == []
    filled.run("DROP ENTITY raw", "DROP ENTITY IF EXISTS raw")
    assert filled.notices == ['entity "raw" does not exist in store "k", skipping']


def test_without_a_limit_each_record_is_sent_as_it_comes(filled: Bench) -> None:
    filled.run("USE STORE k", "INSERT INTO ENTITY clicks VALUE ('a')", "INSERT INTO ENTITY clicks VALUE ('b')")
    result = filled.result("PRINT ENTITY clicks WITH ('from_beginning' = TRUE)")
    assert [batch.num_rows for batch in result.batches] == [1, 1]


def test_databases_schemas_and_use(bench: Bench) -> None:
    bench.run("CREATE DATABASE d", "CREATE SCHEMA d.s", "CREATE SCHEMA t")
    assert [(r["name"], r["current"]) for r in bench.run("LIST DATABASES")] == [("d", False), ("postgres", True)]
    assert [r["name"] for r in bench.run("LIST SCHEMAS IN DATABASE d")] == ["public", "s"]
    places = []
    for text in ("USE DATABASE d", "USE SCHEMA s", "USE postgres", "USE d.s", "USE SCHEMA postgres.t"):
        bench.run(text)
        places.append((bench.context.database, bench.context.schema))
    assert places == [("d", "public"), ("d", "s"), ("postgres", "public"), ("d", "s"), ("postgres", "t")]
    bench.run("DROP SCHEMA d.s", "DROP DATABASE d", "DROP DATABASE IF EXISTS d")
    assert bench.notices == ['database "d" does not exist, skipping']
    bench.run("DROP SCHEMA IF EXISTS d.s")
    assert bench.notices == ['database "d" does not exist, skipping']
    bench.run("CREATE SCHEMA IF NOT EXISTS public")
    assert bench.notices == ['schema "public" already exists, skipping']


def test_cascade_takes_everything_and_says_so(filled: Bench) -> None:
    filled.run(
        "CREATE DATABASE d", "USE DATABASE d",
        "CREATE STREAM s (x INT) WITH ('store' = f, 'value.format' = csv)",
        "CREATE MATERIALIZED VIEW v AS SELECT x FROM s",
        "USE DATABASE postgres",
        "CREATE MATERIALIZED VIEW w AS SELECT x FROM d.public.s",
    )  # fmt: skip
    error = filled.error("DROP DATABASE d")
    assert error.detail == (
        "stream s depends on database d\nmaterialized view v depends on database d\n"
        "materialized view w depends on stream s"
    )
    filled.engine.calls.clear()
    filled.run("DROP DATABASE d CASCADE")
    assert filled.notices == ["drop cascades to 3 other objects"]
    assert [r.name for r in filled.catalog.relations.all()] == ["clicks", "file_clicks"]
    assert filled.catalog.queries.all() == ()
    assert filled.engine.names() == ["reconcile"]


def test_dropping_a_view_takes_its_query_and_leaves_its_source(filled: Bench) -> None:
    filled.run("CREATE MATERIALIZED VIEW v AS SELECT url FROM clicks")
    filled.engine.calls.clear()
    assert filled.result("DROP MATERIALIZED VIEW v").tag == "DROP MATERIALIZED VIEW"
    assert filled.catalog.queries.all() == ()
    assert filled.engine.names() == ["reconcile"]
    filled.run("DROP MATERIALIZED VIEW IF EXISTS v")
    assert filled.notices == ['materialized view "v" does not exist, skipping']


def test_dropping_a_stream_by_cascade(filled: Bench) -> None:
    filled.run("CREATE MATERIALIZED VIEW v AS SELECT url FROM clicks", "DROP STREAM clicks CASCADE")
    assert filled.notices == ["drop cascades to materialized view v"]
    assert [r.name for r in filled.catalog.relations.all()] == ["file_clicks"]
    assert "clicks" in filled.kafka().entities


def test_a_terminated_query_does_not_hold_its_streams(filled: Bench) -> None:
    filled.run("CREATE STREAM s WITH ('store' = k) AS SELECT url FROM clicks")
    (query,) = filled.catalog.queries.all()
    assert filled.error("DROP STREAM s").sqlstate == "2BP01"
    filled.run(f"TERMINATE QUERY '{query.id}'", "DROP STREAM clicks", "DROP RELATION s")
    assert filled.catalog.queries.all() == ()


def test_a_stream_over_files_gets_its_directory(filled: Bench) -> None:
    filled.run("CREATE STREAM Visits (x INT NOT NULL, y ARRAY<VARCHAR>) WITH ('store' = f, 'value.format' = PARQUET)")
    assert "visits" in filled.stores.place("FILE", "clicks").entities
    (row,) = filled.run("DESCRIBE RELATION visits")
    assert (row["name"], row["type"]) == ("postgres.public.visits", "stream")
    assert (row["store"], row["entity"]) == ("f", "visits")
    assert json.loads(row["properties"]) == {"value.format": "parquet", "timestamp.format": "sql"}
    assert filled.run("DESCRIBE RELATION COLUMNS visits") == [
        {"position": 1, "name": "x", "type": "INTEGER", "nullable": False, "key": False},
        {"position": 2, "name": "y", "type": "ARRAY<VARCHAR>", "nullable": True, "key": False},
    ]
    assert [(r["name"], r["store"]) for r in filled.run("LIST STREAMS")] == [
        ("clicks", "k"), ("file_clicks", "f"), ("visits", "f"),
    ]  # fmt: skip


def test_the_entity_of_a_stream_that_fails_is_taken_back(filled: Bench) -> None:
    before = filled.dump()

    def refuse(relation: Relation) -> Relation:
        raise SqlError("53100", "the catalog cannot be written")

    filled.catalog.relations.add = refuse  # type: ignore[method-assign]
    topic = "'topic.partitions' = 1, 'topic.replicas' = 1"
    error = filled.error(f"CREATE STREAM s (x INT) WITH ('store' = k, 'value.format' = json, {topic})")
    assert error.sqlstate == "53100"
    assert filled.dump() == before


@pytest.mark.parametrize(
    "text", ["DROP ENTITY x IN STORE k", "INSERT INTO ENTITY x IN STORE k VALUE ('a')", "RESTART QUERY 'x'"]
)
def test_what_cannot_be_taken_back_is_refused_in_a_transaction_block(filled: Bench, text: str) -> None:
    with pytest.raises(SqlError) as raised:
        filled.router.validate(parse_one(text), filled.context)
    assert raised.value.sqlstate == "25001"
    assert raised.value.message.endswith("cannot run inside a transaction block")


def test_columns_are_kept_with_the_spelling_of_their_declaration(filled: Bench) -> None:
    """But that of one is not the name of another."""
    filled.run(
        'CREATE STREAM spelled (orderId BIGINT, "unitPrice" DOUBLE, plain INT, Url VARCHAR, "Url" VARCHAR) '
        "WITH ('store' = f, 'value.format' = json)",
        "CREATE CHANGELOG keyed (userId VARCHAR PRIMARY KEY, AGE INT) WITH ('store' = f, 'value.format' = json)",
    )
    kept = {each.name: each.columns for each in filled.catalog.relations.all() if each.name in {"spelled", "keyed"}}
    assert {name: [(c.name, c.spelling) for c in columns] for name, columns in kept.items()} == {
        "spelled": [("orderid", "orderId"), ("unitPrice", None), ("plain", None), ("url", None), ("Url", None)],
        "keyed": [("userid", "userId"), ("age", "AGE")],
    }


@pytest.mark.parametrize(
    ("columns", "given", "format_", "type_"),
    [
        ("a VARCHAR, b INT", "'key.columns' = 'a'", "primitive", "VARCHAR"),
        ("a VARCHAR, b INT", "'key.columns' = 'b, a'", "json", 'STRUCT<"b" INTEGER, "a" VARCHAR>'),
        ("a VARCHAR, b INT", "'key.columns' = 'b', 'key.format' = json", "json", 'STRUCT<"b" INTEGER>'),
        ("a DATE, b INT", "'key.columns' = 'a'", "json", 'STRUCT<"a" DATE>'),
    ],
)
def test_the_key_of_written_records_is_made_of_columns(
    filled: Bench, columns: str, given: str, format_: str, type_: str
) -> None:
    filled.run(
        f"CREATE STREAM keyed ({columns}) WITH ('store' = k, 'topic' = 'clicks', 'value.format' = json, {given})"
    )
    (found,) = [r for r in filled.catalog.relations.all() if r.name == "keyed"]
    assert (found.property("key.format"), found.property("key.type")) == (format_, type_)
    assert found.property("key.columns") == given.split("'")[3].replace(" ", "")
