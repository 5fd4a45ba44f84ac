"""Wrong statements: exact SQLSTATE and text, and nothing left behind in catalog, stores or engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mvserver.errors import SqlError
from mvserver.sql.statements.namespaces import CreateDatabase
from mvserver.sql.statements.queries import DescribeStatement, Explain
from tests.routing.fakes import SETUP, Bench

TOPIC = "'topic.partitions' = 1, 'topic.replicas' = 1"

WRONG = [
    # stores
    ("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'x:1')", "42710", 'store "k" already exists'),
    ("CREATE STORE s WITH ('uris' = 'x:1')", "22023", 'a store needs the property "type"'),
    ("CREATE STORE s WITH ('type' = TAPE, 'uris' = 'x')", "22023", 'store type "TAPE" does not exist'),
    ("CREATE STORE s WITH ('type' = KAFKA)", "22023", 'a store of type KAFKA needs the property "uris"'),
    ("CREATE STORE s WITH ('type' = KAFKA, 'uris' = 'x:1', 'colour' = 'red')", "22023",
     'property "colour" is not known for a store of type KAFKA'),
    ("CREATE STORE s WITH ('type' = KAFKA, 'uris' = 'x:1', 'config_file' = '../../etc/passwd')", "42501",
     'config_file "../../etc/passwd" is not in the configured folder'),
    ("CREATE STORE s WITH ('type' = KAFKA, 'uris' = 'x:1', 'config_file' = 'none.properties')", "F0000",
     'config_file "none.properties" cannot be read'),
    ("UPDATE STORE k WITH ('type' = FILE)", "0A000", 'property "type" of a store cannot be changed'),
    ("UPDATE STORE k WITH ('access.region' = 'x')", "0A000", 'property "access.region" of a store cannot be changed'),
    ("UPDATE STORE none WITH ('uris' = 'x:1')", "42704", 'store "none" does not exist'),
    ("DROP STORE k", "2BP01", "cannot drop store k because other objects depend on it"),
    ("DROP STORE none", "42704", 'store "none" does not exist'),
    ("DESCRIBE STORE none", "42704", 'store "none" does not exist'),
    ("USE STORE none", "42704", 'store "none" does not exist'),
    # entities
    ("LIST ENTITIES", "3D000", "no store has been selected"),
    ("DESCRIBE ENTITY none IN STORE k", "42704", 'entity "none" does not exist in store "k"'),
    ("CREATE ENTITY clicks IN STORE k", "42710", 'entity "clicks" already exists in store "k"'),
    ("DROP ENTITY clicks IN STORE k", "2BP01", "cannot drop entity clicks because other objects depend on it"),
    ("DROP ENTITY none IN STORE k", "42704", 'entity "none" does not exist in store "k"'),
    ("PRINT ENTITY clicks IN STORE k WITH ('from_end')", "22023", 'property "from_end" is not known for PRINT ENTITY'),
    ("PRINT ENTITY clicks IN STORE k WITH ('from_beginning' = 3)", "22023",
     'property "from_beginning" must be true or false'),
    ("INSERT INTO ENTITY none IN STORE k VALUE ('{}')", "42704", 'entity "none" does not exist in store "k"'),
    # databases and schemas
    ("CREATE DATABASE postgres", "42P04", 'database "postgres" already exists'),
    ("DROP DATABASE postgres", "55006", "cannot drop the currently open database"),
    ("DROP DATABASE none", "3D000", 'database "none" does not exist'),
    ("CREATE SCHEMA public", "42P06", 'schema "public" already exists'),
    ("CREATE SCHEMA information_schema", "42P06", 'schema "information_schema" already exists'),
    ("CREATE SCHEMA pg_mine", "42939", 'unacceptable schema name "pg_mine"'),
    ("CREATE SCHEMA none.s", "3D000", 'database "none" does not exist'),
    ("DROP SCHEMA none", "3F000", 'schema "none" does not exist'),
    ("DROP SCHEMA public", "2BP01", "cannot drop schema public because other objects depend on it"),
    ("USE DATABASE none", "3D000", 'database "none" does not exist'),
    ("USE SCHEMA none", "3F000", 'schema "none" does not exist'),
    ("LIST RELATIONS IN SCHEMA none", "3F000", 'schema "none" does not exist'),
    ("LIST SCHEMAS IN DATABASE none", "3D000", 'database "none" does not exist'),
    # CREATE STREAM
    (f"CREATE STREAM clicks (a INT) WITH ('store' = k, 'value.format' = json, {TOPIC})", "42P07",
     'relation "clicks" already exists'),
    ("CREATE STREAM none.s (a INT) WITH ('store' = k, 'value.format' = json)", "3F000",
     'schema "none" does not exist'),
    ("CREATE STREAM none.public.s (a INT) WITH ('store' = k, 'value.format' = json)", "3D000",
     'database "none" does not exist'),
    ("CREATE STREAM s (a INT, a INT) WITH ('store' = k, 'value.format' = json)", "42701",
     'column "a" specified more than once'),
    ("CREATE STREAM s (st STRUCT<a INT, \"A\" INT>) WITH ('store' = k, 'value.format' = json)", "0A000",
     'fields "a" and "A" of column "st" differ in case alone'),
    ("CREATE CHANGELOG s (k INT, st ARRAY<STRUCT<b MAP<VARCHAR, STRUCT<a INT, \"A\" INT>>>>, PRIMARY KEY(k)) "
     "WITH ('store' = k, 'value.format' = json)", "0A000", 'fields "a" and "A" of column "st" differ in case alone'),
    ("CREATE STREAM s (a INT) WITH ('store' = none, 'value.format' = json)", "42704", 'store "none" does not exist'),
    ("CREATE STREAM s (a INT) WITH ('value.format' = json)", "3D000", "no store has been selected"),
    ("CREATE STREAM s (a INT) WITH ('store' = k)", "22023", 'a stream needs the property "value.format"'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = avro)", "55000",
     'store "k" names no schema registry, which the format avro needs'),
    ("CREATE STREAM s (a INT) WITH ('store' = f, 'value.format' = avro)", "0A000",
     'value.format "avro" is not supported in a store of type FILE'),
    ("CREATE STREAM s (a ARRAY<INT>, b INT) WITH ('store' = k, 'value.format' = json, 'key.columns' = 'a', "
     "'key.format' = csv)", "0A000", 'column "a" of type ARRAY<INTEGER> cannot be written in the format csv'),
    ("CREATE STREAM s (a DATE, b INT) WITH ('store' = k, 'value.format' = json, 'key.columns' = 'a', "
     "'key.format' = primitive)", "42804", 'property "key.columns" does not fit key.format primitive'),
    ("CREATE STREAM s (a MAP<VARCHAR, INT>) WITH ('store' = k, 'value.format' = xml)", "0A000",
     'column "a" cannot be in a record of XML: the format xml has no MAP<VARCHAR, INTEGER>'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = yaml)", "22023",
     'property "value.format" cannot be "yaml"'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = parquet)", "0A000",
     'value.format "parquet" is not supported in a store of type KAFKA'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'colour' = 'red')", "22023",
     'property "colour" is not known for a stream'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'timestamp' = 'b')", "42703",
     'column "b" named in property "timestamp" does not exist'),
    ("CREATE STREAM s (a VARCHAR) WITH ('store' = k, 'value.format' = json, 'timestamp' = 'a')", "42804",
     'column "a" cannot be the event time because it has type VARCHAR'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'timestamp.format' = 'rfc')", "22023",
     'property "timestamp.format" cannot be "rfc"'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'key.format' = primitive)", "22023",
     'property "key.format" needs the property "key.type"'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'key.format' = primitive, "
     "'key.type' = 'STRUCT<x INT>')", "42804", 'key.type STRUCT<"x" INTEGER> does not fit key.format primitive'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json)", "22023",
     'entity "s" does not exist in store "k", and cannot be created without "topic.partitions" and "topic.replicas"'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'topic' = 'clicks', 'value.format' = json, 'topic.partitions' = 3)",
     "22023", 'property "topic.partitions" is 3, but entity "clicks" has 4'),
    ("CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'topic.partitions' = 0)", "22023",
     'property "topic.partitions" must be a whole number of 1 or more'),
    (f"CREATE STREAM s (a INT) WITH ('store' = f, 'value.format' = json, {TOPIC})", "0A000",
     'property "topic.partitions" is not supported for a store of type FILE'),
    ("CREATE STREAM s (a INT) WITH ('store' = f, 'value.format' = json, 'key.columns' = 'a')", "0A000",
     'property "key.columns" is not supported for a store of type FILE'),
    (f"CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'key.columns' = 'b', {TOPIC})", "42703",
     'column "b" named in property "key.columns" does not exist'),
    (f"CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'key.columns' = ' , ', {TOPIC})", "22023",
     'property "key.columns" names no column'),
    (f"CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'key.columns' = a, 'key.type' = 'INT', "
     f"{TOPIC})", "22023", 'properties "key.type" and "key.columns" exclude each other'),
    (f"CREATE STREAM s (a INT, b INT) WITH ('store' = k, 'value.format' = json, 'key.columns' = 'a, b', "
     f"'key.format' = primitive, {TOPIC})", "42804", 'property "key.columns" does not fit key.format primitive'),
    (f"CREATE STREAM s (a DATE) WITH ('store' = k, 'value.format' = json, 'key.columns' = a, "
     f"'key.format' = primitive, {TOPIC})", "42804", 'property "key.columns" does not fit key.format primitive'),
    (f"CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'key.columns' = a, 'key.format' = avro, "
     f"{TOPIC})", "55000", 'store "k" names no schema registry, which the format avro needs'),
    ("CREATE STREAM s WITH ('store' = f, 'key.columns' = 'url') AS SELECT url FROM clicks", "0A000",
     'property "key.columns" is not supported for a store of type FILE'),
    ("CREATE STREAM s (a INTERVAL) WITH ('store' = f, 'value.format' = json)", "42P16",
     'column "a" cannot have type INTERVAL'),
    # relations
    ("DROP STREAM none", "42P01", 'stream "none" does not exist'),
    ("DROP MATERIALIZED VIEW clicks", "42809", '"clicks" is not a materialized view'),
    ("DROP STREAM visits", "42809", '"visits" is not a stream'),
    ("DROP STREAM clicks", "2BP01", "cannot drop stream clicks because other objects depend on it"),
    ("DESCRIBE RELATION none", "42P01", 'relation "none" does not exist'),
    ("DESCRIBE RELATION none.clicks", "42P01", 'relation "none.clicks" does not exist'),
    # continuous queries
    ("CREATE MATERIALIZED VIEW visits AS SELECT url FROM clicks", "42P07", 'relation "visits" already exists'),
    ("CREATE MATERIALIZED VIEW v AS SELECT url FROM clicks WITH ('starting.position' = '2024-05-17T12:00Z')", "0A000",
     "reading a store of type KAFKA from a moment on is not supported"),
    ("CREATE MATERIALIZED VIEW v AS SELECT url FROM none", "42P01", 'relation "none" does not exist'),
    ("CREATE MATERIALIZED VIEW v AS SELECT none FROM clicks", "42703", 'column "none" does not exist'),
    ("CREATE MATERIALIZED VIEW v AS SELECT url, ip AS url FROM clicks", "42701",
     'column "url" specified more than once'),
    ("CREATE MATERIALIZED VIEW v WITH ('retention' = '1d') AS SELECT url FROM clicks", "22023",
     'property "retention" is not known for a materialized view'),
    ("CREATE MATERIALIZED VIEW v AS SELECT first_value(n) AS n FROM visits", "0A000",
     "aggregate first_value is not supported over groups without an event time"),
    ("CREATE MATERIALIZED VIEW v AS SELECT a.url FROM clicks a JOIN clicks b ON a.url = b.url", "0A000",
     "a join of two streams without WITHIN is not supported"),
    ("CREATE STREAM s WITH ('store' = k) AS SELECT url, count(*) AS n FROM clicks GROUP BY url", "42809",
     "the result of GROUP BY or of an aggregate is a changelog, not a stream"),
    ("CREATE STREAM s WITH ('store' = f, 'value.format' = avro) AS SELECT url FROM clicks", "0A000",
     'value.format "avro" is not supported in a store of type FILE that a query writes to'),
    ("CREATE STREAM s WITH ('store' = f, 'value.format' = parquet) AS SELECT MAP[true, url] AS m FROM clicks", "0A000",
     'column "m" of type MAP<BOOLEAN, VARCHAR> cannot be written in the format parquet'),
    ("CREATE STREAM s WITH ('store' = f, 'value.format' = text) AS SELECT url, event_time FROM clicks", "0A000",
     'value.format "text" is of one column of type VARCHAR'),
    ("CREATE STREAM s WITH ('store' = k, 'value.format' = csv) AS SELECT ARRAY[url] AS a FROM clicks", "0A000",
     'column "a" of type ARRAY<VARCHAR> cannot be written in the format csv'),
    ("CREATE STREAM s WITH ('store' = k, 'value.format' = primitive) AS SELECT url, event_time FROM clicks", "42804",
     "the columns do not fit value.format primitive"),
    ("CREATE STREAM s WITH ('store' = k, 'value.delimiter' = 'ab') AS SELECT url FROM clicks", "22023",
     'property "value.delimiter" cannot be "ab"'),
    ("CREATE STREAM s WITH ('store' = k, 'value.delimiter' = ';') AS SELECT url FROM clicks", "22023",
     'property "value.delimiter" is of value.format delimited alone'),
    ("CREATE STREAM clicks WITH ('store' = k) AS SELECT url FROM clicks", "42P07",
     'relation "clicks" already exists'),
    ("INSERT INTO none SELECT url FROM clicks", "42P01", 'relation "none" does not exist'),
    ("INSERT INTO visits SELECT url, 1 AS n FROM clicks", "42809", 'cannot insert into materialized view "visits"'),
    ("INSERT INTO sink SELECT url, event_time, ip FROM clicks", "42601",
     "INSERT has more expressions than target columns"),
    ("INSERT INTO sink SELECT url FROM clicks", "42601", "INSERT has more target columns than expressions"),
    ("INSERT INTO sink SELECT url, ip FROM clicks", "42703",
     'column "ip" of the query does not fit column "event_time" of stream "sink"'),
    ("INSERT INTO sink SELECT url, ip AS event_time FROM clicks", "42804",
     'column "event_time" is of type BIGINT but expression is of type VARCHAR'),
    ("DESCRIBE QUERY 'none'", "42704", 'query "none" does not exist'),
    ("TERMINATE QUERY 'none'", "42704", 'query "none" does not exist'),
    ("RESTART QUERY 'none'", "42704", 'query "none" does not exist'),
    ("REFRESH MATERIALIZED VIEW clicks", "42809", '"clicks" is not a materialized view'),
    ("EXPLAIN ANALYZE CREATE MATERIALIZED VIEW v AS SELECT url FROM clicks", "0A000",
     "EXPLAIN ANALYZE of this statement is not supported"),
]  # fmt: skip


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One for all the tests here: each of them shows that it has changed nothing."""
    bench = Bench(tmp_path_factory.mktemp("bench"))
    bench.run(
        *SETUP,
        "CREATE MATERIALIZED VIEW visits AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
        "CREATE STREAM sink WITH ('store' = k) AS SELECT url, event_time FROM clicks",
    )
    yield bench
    bench.close()


@pytest.fixture
def full(unchanged: Bench) -> Bench:
    unchanged.engine.calls.clear()
    return unchanged


@pytest.mark.parametrize(("text", "sqlstate", "message"), WRONG, ids=[text[:60] for text, _, _ in WRONG])
def test_a_wrong_statement_is_refused_by_name_and_leaves_nothing(
    full: Bench, text: str, sqlstate: str, message: str
) -> None:
    before = full.dump()
    error = full.error(text)
    assert (error.sqlstate, error.message) == (sqlstate, message)
    assert full.dump() == before
    assert full.engine.calls == []


def test_details_and_hints_say_what_to_do(full: Bench) -> None:
    query = next(q for q in full.catalog.queries.all() if q.kind == "create_stream_as")
    error = full.error("DROP STREAM clicks")
    assert error.detail == (
        f"materialized view visits depends on stream clicks\nquery {query.id} into stream sink depends on stream clicks"
    )
    assert error.hint == "Use DROP ... CASCADE to drop the dependent objects too."
    assert full.error("DROP STORE f").detail == "stream file_clicks depends on store f"
    assert full.error("DROP MATERIALIZED VIEW clicks").hint == "Use DROP STREAM to remove a stream."
    assert full.error("LIST ENTITIES").hint == (
        "Name the store in the statement, or select one for the session with USE STORE."
    )
    unknown = full.error("CREATE STREAM s (a INT) WITH ('store' = k, 'colour' = 'red')")
    assert unknown.position == 44
    assert unknown.hint == (
        "Known are 'store', 'topic', 'value.format', 'timestamp', 'timestamp.format', 'key.format', 'key.type', "
        "'key.columns', 'value.columns.exclude', 'partition.columns', 'value.descriptor.name', 'value.delimiter', "
        "'value.schema.validation', 'topic.partitions', 'topic.replicas', 'kafka.topic.*', 'topic.shards', "
        "'postgresql.slot.name', 'source.deserialization.error.handling'."
    )


def test_only_what_makes_relations_or_queries_is_described_and_explained(full: Bench) -> None:
    inner = CreateDatabase("d", text="CREATE DATABASE d")
    for statement, message in (
        (DescribeStatement(inner), "DESCRIBE of this statement is not supported"),
        (Explain(inner), "EXPLAIN of this statement is not supported"),
        (Explain(inner, (("format", "json"),)), "EXPLAIN of this statement is not supported"),
        (Explain(inner, (("analyze", "true"),)), "EXPLAIN ANALYZE of this statement is not supported"),
        (Explain(inner, (("format", "xml"),)), "EXPLAIN format xml is not supported"),
        (Explain(inner, (("colour", "on"),)), 'unrecognized EXPLAIN option "colour"'),
    ):
        with pytest.raises(SqlError) as raised:
            full.router.execute(statement, full.context)
        assert raised.value.message == message
