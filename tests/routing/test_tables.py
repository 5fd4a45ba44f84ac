"""CREATE TABLE AS: what is checked, what is made in the store, and what the catalog has of it."""

from __future__ import annotations

import json

import pytest

from mvserver.errors import SqlError
from tests.routing.fakes import Bench, MemoryClient


@pytest.fixture
def filled(filled: Bench) -> Bench:
    """With a store w, which has tables."""
    filled.run("CREATE STORE w WITH ('type' = WAREHOUSE, 'uris' = 'w:1')")
    filled.engine.calls.clear()
    return filled


def warehouse(bench: Bench) -> MemoryClient:
    return bench.stores.place("WAREHOUSE", "w:1")


def test_a_stream_is_appended_to_a_table_that_is_made(filled: Bench) -> None:
    text = "CREATE TABLE homes WITH ('store' = w, 'table.name' = 'web.homes', 'commit.interval.millis' = 500) AS "
    result = filled.result(text + "SELECT url, event_time AS t FROM clicks WHERE url = './home'")
    assert result.tag == "CREATE TABLE"
    assert warehouse(filled).entities == {"web.homes": {"url": "string", "t": "int64"}}
    assert warehouse(filled).made["web.homes"] == {
        "key": (), "table.name": "web.homes", "commit.interval.millis": "500",
    }  # fmt: skip
    (table,) = [r for r in filled.catalog.relations.all() if r.name == "homes"]
    assert (table.kind, table.entity, table.key_columns) == ("table", "web.homes", ())
    assert dict(table.properties) == {"table.name": "web.homes", "commit.interval.millis": "500"}
    (query,) = filled.catalog.queries.all()
    assert (query.kind, query.sink_id) == ("create_table_as", table.id)
    assert query.select_text == "SELECT url, event_time AS t FROM clicks WHERE url = './home'"
    assert ("resolve_position", "k", "clicks", "latest") in filled.engine.calls
    assert "reconcile" in filled.engine.names()
    assert filled.notices == [f'query {query.id} writes to table "homes"']


def test_groups_are_merged_by_their_key_from_the_earliest_records_on(filled: Bench) -> None:
    filled.run("CREATE TABLE counts WITH ('store' = w) AS SELECT url, count(*) AS n FROM clicks GROUP BY url")
    assert warehouse(filled).entities == {"counts": {"url": "string NOT NULL", "n": "int64"}}
    assert warehouse(filled).made["counts"] == {"key": ("url",)}
    (table,) = [r for r in filled.catalog.relations.all() if r.name == "counts"]
    assert table.key_columns == ("url",)
    assert [(c.name, c.not_null) for c in table.columns] == [("url", True), ("n", False)]
    assert ("resolve_position", "k", "clicks", "earliest") in filled.engine.calls


def test_listed_described_and_dropped(filled: Bench) -> None:
    filled.run("CREATE TABLE homes WITH ('store' = w) AS SELECT url FROM clicks")
    (row,) = filled.run("LIST TABLES")
    assert (row["name"], row["type"], row["store"], row["entity"]) == ("homes", "table", "w", "homes")
    (row,) = filled.run("DESCRIBE TABLE homes")
    (query,) = filled.catalog.queries.all()
    assert (row["type"], json.loads(row["queries"])) == ("table", [query.id])
    (row,) = filled.run("DESCRIBE CREATE TABLE others WITH ('store' = w) AS SELECT url FROM clicks")
    info = json.loads(row["info"])
    assert (row["type"], info["sink"]["fqn"], info["sink"]["type"]) == (
        "CREATE_TABLE_AS", "postgres.public.others", "table",
    )  # fmt: skip
    plan = filled.run("EXPLAIN CREATE TABLE others WITH ('store' = w) AS SELECT url FROM clicks")
    assert plan[0] == {"QUERY PLAN": "Projection"}
    assert list(warehouse(filled).entities) == ["homes"]
    filled.run("COMMENT ON TABLE homes IS 'visits of the first page'")
    assert str(filled.error("DROP STREAM homes")) == (
        '42809: "homes" is not a stream HINT: Use DROP TABLE to remove a table.'
    )
    assert filled.error("DROP TABLE homes").sqlstate == "2BP01"  # its query
    filled.run("DROP TABLE homes CASCADE")
    assert filled.catalog.queries.all() == ()
    assert list(warehouse(filled).entities) == ["homes"]  # what is written stays


def test_a_table_that_is_there_is_compared(filled: Bench) -> None:
    warehouse(filled).entities["homes"] = {"url": "int64"}
    before = filled.dump()
    error = filled.error("CREATE TABLE homes WITH ('store' = w) AS SELECT url FROM clicks")
    assert (error.sqlstate, error.message) == ("42804", 'entity "homes" has other columns')
    assert filled.dump() == before
    warehouse(filled).entities["homes"] = {"url": "string"}
    filled.run("CREATE TABLE homes WITH ('store' = w) AS SELECT url FROM clicks")
    assert warehouse(filled).made == {}


def test_a_table_that_was_made_is_taken_back_when_the_catalog_refuses(filled: Bench) -> None:
    before = filled.dump()

    def refuse(query: object) -> None:
        raise SqlError("53100", "the catalog cannot be written")

    filled.catalog.queries.add = refuse  # type: ignore[method-assign]
    assert filled.error("CREATE TABLE homes WITH ('store' = w) AS SELECT url FROM clicks").sqlstate == "53100"
    assert filled.dump() == before


def test_insert_into_tables(filled: Bench) -> None:
    filled.run(
        "CREATE TABLE homes WITH ('store' = w) AS SELECT url FROM clicks",
        "CREATE TABLE counts WITH ('store' = w) AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
        "INSERT INTO homes SELECT url FROM clicks",
        "INSERT INTO counts SELECT ip AS url, count(*) AS n FROM clicks GROUP BY ip",
    )
    kinds = [(query.kind, query.select_text[:10]) for query in filled.catalog.queries.all()]
    assert [kind for kind, _ in kinds] == ["create_table_as", "create_table_as", "insert_into", "insert_into"]
    assert filled.error("INSERT INTO homes SELECT url, count(*) AS n FROM clicks GROUP BY url").message == (
        "the result of GROUP BY or of an aggregate is a changelog, not a stream"
    )
    assert filled.error("INSERT INTO counts SELECT url, 1::bigint AS n FROM clicks").message == (
        "the result of the query is a stream, not a changelog"
    )
    assert filled.error("INSERT INTO homes SELECT ip FROM clicks").sqlstate == "42703"


def test_a_kind_spells_a_property_of_all_tables_in_its_own_way(filled: Bench) -> None:
    filled.run("CREATE TABLE homes WITH ('store' = w, 'buffer.millis' = 500) AS SELECT url FROM clicks")
    (table,) = [r for r in filled.catalog.relations.all() if r.name == "homes"]
    assert dict(table.properties) == {"commit.interval.millis": "500"}


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE TABLE t AS SELECT url FROM clicks", "0A000",
         "writing a table to a store of type KAFKA is not supported"),
        ("CREATE TABLE t WITH ('store' = 'none') AS SELECT url FROM clicks", "42704", 'store "none" does not exist'),
        ("CREATE TABLE t WITH ('store' = w, 'topic' = 'x') AS SELECT url FROM clicks", "22023",
         'property "topic" is not known for a table'),
        ("CREATE TABLE t WITH ('store' = w, 'commit.interval.millis' = 1) AS SELECT url FROM clicks", "22023",
         'property "commit.interval.millis" must be a whole number from 100 to 3600000'),
        ("CREATE TABLE t WITH ('store' = w, 'buffer.millis' = 1) AS SELECT url FROM clicks", "22023",
         'property "buffer.millis" must be a whole number from 100 to 3600000'),
        ("CREATE TABLE t WITH ('store' = w, 'buffer.millis' = 500, 'commit.interval.millis' = 500) AS "
         "SELECT url FROM clicks", "22023",
         'property "commit.interval.millis" and property "buffer.millis" are the same'),
        ("CREATE TABLE t WITH ('store' = w, 'retry.attempts' = 'x') AS SELECT url FROM clicks", "22023",
         'property "retry.attempts" must be a whole number of 1 or more'),
        ("CREATE TABLE t WITH ('store' = w, 'state.ttl.millis' = 60000) AS SELECT url FROM clicks", "22023",
         'property "state.ttl.millis" is not known for a table whose rows are only added'),
        ("CREATE TABLE t WITH ('store' = w) AS SELECT count(*) AS n FROM clicks", "0A000",
         "an aggregate without GROUP BY columns, or with GROUPING SETS, has no primary key"),
        ("CREATE TABLE t WITH ('store' = w) AS SELECT count(*) AS n FROM clicks GROUP BY url", "42P16",
         "the SELECT list leaves out a column of GROUP BY"),
        ("CREATE TABLE clicks WITH ('store' = w) AS SELECT url FROM clicks", "42P07",
         'relation "clicks" already exists'),
        ("CREATE STREAM t (a INT) WITH ('store' = w, 'value.format' = json)", "0A000",
         "a stream over a store of type WAREHOUSE is not supported"),
        ("CREATE STREAM t WITH ('store' = w) AS SELECT url FROM clicks", "0A000",
         "writing a query's result to a store of type WAREHOUSE is not supported"),
    ],
)  # fmt: skip
def test_what_is_refused(filled: Bench, text: str, sqlstate: str, message: str) -> None:
    before = filled.dump()
    error = filled.error(text)
    assert (error.sqlstate, error.message) == (sqlstate, message)
    assert filled.dump() == before


def test_a_table_is_not_read_here(filled: Bench) -> None:
    filled.run("CREATE TABLE homes WITH ('store' = w) AS SELECT url FROM clicks")
    for text in (
        "CREATE MATERIALIZED VIEW v AS SELECT url FROM homes",
        "CREATE TABLE again WITH ('store' = w) AS SELECT url FROM homes",
    ):
        error = filled.error(text)
        assert (error.sqlstate, error.message) == ("0A000", 'cannot read from table "homes"')
        assert error.position == text.index("homes") + 1


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE INDEX ON homes (url)", "42809", 'cannot create index on relation "homes"'),
        ("DROP VIEW homes", "42809", '"homes" is not a view'),
        ("ALTER VIEW homes RENAME TO others", "42809", '"homes" is not a view'),
        ("REFRESH MATERIALIZED VIEW homes", "42809", '"homes" is not a materialized view'),
    ],
)  # fmt: skip
def test_a_table_is_no_view(filled: Bench, text: str, sqlstate: str, message: str) -> None:
    filled.run("CREATE TABLE homes WITH ('store' = w) AS SELECT url FROM clicks")
    error = filled.error(text)
    assert (error.sqlstate, error.message) == (sqlstate, message)


def test_if_not_exists_passes_over_what_is_there(filled: Bench) -> None:
    text = "CREATE TABLE IF NOT EXISTS homes WITH ('store' = w) AS SELECT url FROM clicks"
    filled.run(text, text)
    assert filled.notices == ['relation "homes" already exists, skipping']
    assert len(filled.catalog.queries.all()) == 1


# --- CREATE ENTITY ----------------------------------------------------------------------------------------------------
def test_an_entity_with_columns_is_a_table(filled: Bench) -> None:
    filled.run("CREATE ENTITY web.t (k INTEGER, v VARCHAR NOT NULL, d DECIMAL(9, 2), PRIMARY KEY (k)) IN STORE w")
    columns = {"k": "int32 NOT NULL", "v": "string NOT NULL", "d": "decimal128(9, 2)"}
    assert warehouse(filled).entities == {"web.t": columns}
    assert warehouse(filled).made["web.t"] == {"key": ("k",)}
    error = filled.error("CREATE ENTITY web.t (k INTEGER) IN STORE w")
    assert (error.sqlstate, error.message) == ("42710", 'entity "web.t" already exists in store "w"')
    filled.run("DROP ENTITY web.t IN STORE w")
    assert warehouse(filled).entities == {}


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE ENTITY t IN STORE w", "42P16", "an entity of a store of type WAREHOUSE is a table, and needs columns"),
        ("CREATE ENTITY t (k INTEGER) IN STORE f", "0A000", "an entity of a store of type FILE has no columns"),
        ("CREATE ENTITY t (k INTEGER, k TEXT) IN STORE w", "42701", 'column "k" specified more than once'),
        ("CREATE ENTITY t (k INTEGER, PRIMARY KEY (v)) IN STORE w", "42703", 'column "v" named in key does not exist'),
        ("CREATE ENTITY t (k DOUBLE PRIMARY KEY) IN STORE w", "0A000",
         'column "k" of type DOUBLE cannot be part of a primary key'),
        ("CREATE ENTITY t (k INTEGER PRIMARY KEY, PRIMARY KEY (k)) IN STORE w", "42P16",
         "multiple primary keys for a table are not allowed"),
        ("CREATE ENTITY t (k INTEGER CHECK (k > 0)) IN STORE w", "0A000",
         "constraints are not supported in a table"),
        ("CREATE ENTITY t (k INTEGER) IN STORE w WITH ('table.name' = 'x')", "22023", None),
    ],
)  # fmt: skip
def test_entities_that_are_no_tables(filled: Bench, statement: str, sqlstate: str, message: str | None) -> None:
    error = filled.error(statement)
    assert error.sqlstate == sqlstate
    assert message in (None, error.message)
    assert warehouse(filled).entities == {}
