"""CREATE CHANGELOG: what is kept, which topic is made, and every refusal."""

from __future__ import annotations

import pytest

from tests.routing.fakes import Bench

USERS = (
    "CREATE CHANGELOG users (userid VARCHAR, region VARCHAR, age INTEGER, PRIMARY KEY (userid)) "
    "WITH ('store' = k, 'value.format' = json, 'topic.partitions' = 2, 'topic.replicas' = 1{})"
)


def with_properties(more: str, columns: str = "a INTEGER, b VARCHAR, PRIMARY KEY (a)", store: str = "k") -> str:
    return (
        f"CREATE CHANGELOG c ({columns}) WITH ('store' = {store}, 'value.format' = json, 'topic.partitions' = 1, "
        f"'topic.replicas' = 1, {more})"
    )


def test_the_key_is_not_null_and_read_as_its_type_says(filled: Bench) -> None:
    assert filled.result(USERS.format("")).tag == "CREATE CHANGELOG"
    (users,) = [r for r in filled.catalog.relations.all() if r.name == "users"]
    assert (users.kind, users.key_columns) == ("changelog", ("userid",))
    assert [(c.name, c.not_null) for c in users.columns] == [("userid", True), ("region", False), ("age", False)]
    properties = dict(users.properties)
    assert properties["key.format"] == "primitive"
    assert "value.columns.exclude" not in properties


def test_a_topic_that_is_made_is_compacted(filled: Bench) -> None:
    filled.run(USERS.format(""))
    assert filled.kafka().made["users"]["kafka.topic.cleanup.policy"] == "compact"
    filled.run(with_properties("'kafka.topic.cleanup.policy' = 'delete'"))
    assert filled.kafka().made["c"]["kafka.topic.cleanup.policy"] == "delete"


@pytest.mark.parametrize(
    ("columns", "more", "format_", "excluded"),
    [
        ("a BIGINT PRIMARY KEY, b DATE", "", "primitive", None),
        ("a DECIMAL(9, 2) PRIMARY KEY, b DATE", "", "json", None),
        ("a INTEGER, b VARCHAR, PRIMARY KEY (b, a)", "", "json", None),
        ("a VARCHAR PRIMARY KEY, b DATE", ", 'key.format' = 'json', 'key.type' = 'STRUCT<a VARCHAR>'", "json", None),
        ("a VARCHAR PRIMARY KEY, b DATE", ", 'key.format' = 'primitive', 'key.type' = 'VARCHAR'", "primitive", None),
        ("a VARCHAR PRIMARY KEY, b DATE", ", 'key.columns' = 'a', 'value.columns.exclude' = 'a'", "primitive", "a"),
        ("a INTEGER, b VARCHAR, c DATE, PRIMARY KEY (a, b)", ", 'value.columns.exclude' = 'a, b'", "json", "a,b"),
        ("a INTEGER PRIMARY KEY NOT NULL, b VARCHAR", ", 'enable.upsert.mode' = true", "primitive", None),
    ],
)  # fmt: skip
def test_how_a_record_carries_its_key(
    filled: Bench, columns: str, more: str, format_: str, excluded: str | None
) -> None:
    filled.run(
        f"CREATE CHANGELOG c ({columns}) WITH ('store' = k, 'value.format' = json, 'topic.partitions' = 1, "
        f"'topic.replicas' = 1{more})"
    )
    (found,) = [r for r in filled.catalog.relations.all() if r.name == "c"]
    assert (found.property("key.format"), found.property("value.columns.exclude")) == (format_, excluded)


def test_in_a_store_of_files_records_have_no_key(filled: Bench) -> None:
    filled.run("CREATE CHANGELOG c (a INTEGER PRIMARY KEY) WITH ('store' = f, 'value.format' = json)")
    (found,) = [r for r in filled.catalog.relations.all() if r.name == "c"]
    assert found.property("key.format") is None
    error = filled.error(
        "CREATE CHANGELOG d (a INTEGER PRIMARY KEY) WITH ('store' = f, 'value.format' = json, 'key.format' = json)"
    )
    assert (error.sqlstate, error.hint) == ("0A000", "Records of a store of type FILE have no key.")


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "hint"),
    [
        ("CREATE CHANGELOG c (a INTEGER PRIMARY KEY) WITH ('store' = k)",
         "22023", 'a changelog needs the property "value.format"',
         "Formats are json, csv, delimited, xml, primitive, avro, protobuf, json_schema."),
        (with_properties("'enable.upsert.mode' = 'false'"),
         "0A000", "a changelog whose records say themselves what they change is not supported",
         "Leave the property out: the last record of a key counts, and one without a value deletes."),
        (with_properties("'key.format' = 'avro'"), "55000",
         'store "k" names no schema registry, which the format avro needs',
         "Name one with UPDATE STORE name WITH ('schema_registry.name' = registry)."),
        (with_properties("'key.format' = 'primitive'", "a INTEGER, b INTEGER, PRIMARY KEY (a, b)"),
         "42804", "the primary key does not fit key.format primitive",
         "A primitive key is one column of type SMALLINT, INTEGER, BIGINT, FLOAT, DOUBLE, BOOLEAN, VARCHAR or "
         "VARBINARY; use json."),
        (with_properties("'key.type' = 'BIGINT'"),
         "42804", "key.type BIGINT does not fit the primary key with key.format primitive",
         "Leave the property out: it follows from the primary key."),
        (with_properties("'key.format' = 'json', 'key.type' = 'STRUCT<b VARCHAR>'"),
         "42804", "key.type STRUCT<\"b\" VARCHAR> does not fit the primary key with key.format json",
         "Leave the property out: it follows from the primary key."),
        (with_properties("'key.type' = 'INTEGER', 'key.columns' = 'a'"),
         "22023", 'properties "key.type" and "key.columns" exclude each other', None),
        (with_properties("'key.columns' = 'b'"),
         "22023", 'property "key.columns" differs from the primary key',
         "Leave the property out: the key of a changelog's records is its primary key."),
        (with_properties("'value.columns.exclude' = 'b'"),
         "22023", 'column "b" named in property "value.columns.exclude" is not in the primary key', None),
        (with_properties("'value.columns.exclude' = 'a'", "a INTEGER PRIMARY KEY"),
         "22023", "a record's value needs at least one column", None),
        (with_properties("'key.kind' = 'x'"), "22023", 'property "key.kind" is not known for a changelog', ...),
        (with_properties("'timestamp' = 'z'"),
         "42703", 'column "z" named in property "timestamp" does not exist', None),
        ("CREATE CHANGELOG c (a REAL, PRIMARY KEY (a)) WITH ('store' = k, 'value.format' = json)",
         "0A000", 'column "a" of type FLOAT cannot be part of a primary key',
         "Rows are told apart by exact values: use DECIMAL, an integer, text or a time."),
        ("CREATE CHANGELOG c (a ARRAY<INTEGER> PRIMARY KEY) WITH ('store' = k, 'value.format' = json)",
         "0A000", 'column "a" of type ARRAY<INTEGER> cannot be part of a primary key',
         "Rows are told apart by exact values: use DECIMAL, an integer, text or a time."),
    ],
)  # fmt: skip
def test_refusals(filled: Bench, text: str, sqlstate: str, message: str, hint: str | None) -> None:
    before = filled.dump()
    error = filled.error(text)
    assert (error.sqlstate, error.message) == (sqlstate, message)
    if hint is not ...:
        assert error.hint == hint
    assert filled.dump() == before


def test_it_is_listed_described_and_dropped_as_what_it_is(filled: Bench) -> None:
    filled.run(USERS.format(""))
    assert [(row["name"], row["type"]) for row in filled.run("LIST CHANGELOGS")] == [("users", "changelog")]
    assert "users" not in [row["name"] for row in filled.run("LIST STREAMS")]
    (described,) = filled.run("DESCRIBE CHANGELOG users")
    assert (described["name"], described["type"], described["primary_key"]) == (
        "postgres.public.users", "changelog", '["userid"]',
    )  # fmt: skip
    assert [row["key"] for row in filled.run("DESCRIBE RELATION COLUMNS users")] == [True, False, False]
    error = filled.error("DROP STREAM users")
    assert (error.sqlstate, error.hint) == ("42809", "Use DROP CHANGELOG to remove a changelog.")
    assert filled.result("DROP CHANGELOG users").tag == "DROP CHANGELOG"
    assert filled.run("LIST CHANGELOGS") == []


def test_views_over_it_are_keyed(filled: Bench) -> None:
    filled.run(USERS.format(""))
    filled.run("CREATE MATERIALIZED VIEW rows_ AS SELECT region, userid AS who FROM users")
    filled.run("CREATE MATERIALIZED VIEW without AS SELECT region FROM users")
    keys = {r.name: r.key_columns for r in filled.catalog.relations.all()}
    assert (keys["rows_"], keys["without"]) == (("who",), ())
    error = filled.error("DROP CHANGELOG users")
    assert error.sqlstate == "2BP01"


def test_a_stream_is_not_made_of_it(filled: Bench) -> None:
    filled.run(USERS.format(""))
    error = filled.error("CREATE STREAM s WITH ('store' = k) AS SELECT userid FROM users")
    assert (error.sqlstate, error.message) == (
        "42809", "the result of a query over a changelog is a changelog, not a stream",
    )  # fmt: skip


# --- CREATE CHANGELOG AS, INSERT INTO a changelog -------------------------------------------------------------------
COUNTS = "CREATE CHANGELOG counts AS SELECT url, count(*) AS n FROM clicks GROUP BY url"


def test_the_result_of_group_by_is_a_changelog_with_a_compacted_topic(filled: Bench) -> None:
    filled.run("USE STORE k")
    filled.engine.calls.clear()
    assert filled.result(COUNTS).tag == "CREATE CHANGELOG"
    assert filled.kafka().made["counts"] == {
        "topic.partitions": 4, "topic.replicas": 1, "kafka.topic.cleanup.policy": "compact",
    }  # fmt: skip
    (counts,) = [r for r in filled.catalog.relations.all() if r.name == "counts"]
    assert (counts.kind, counts.key_columns, counts.property("key.format")) == ("changelog", ("url",), "primitive")
    assert [(c.name, c.type, c.not_null) for c in counts.columns] == [("url", "VARCHAR", True), ("n", "BIGINT", False)]
    (query,) = filled.catalog.queries.all()
    assert (query.kind, query.sink_id) == ("create_changelog_as", counts.id)
    assert query.select_text == "SELECT url, count(*) AS n FROM clicks GROUP BY url"
    assert ("resolve_position", "k", "clicks", "earliest") in filled.engine.calls
    assert filled.notices == [f'query {query.id} writes to changelog "counts"']
    assert filled.error("DROP CHANGELOG counts").sqlstate == "2BP01"
    filled.run("DROP CHANGELOG counts CASCADE")
    assert not filled.catalog.queries.all()


def test_a_changelog_of_a_changelog_keeps_its_key(filled: Bench) -> None:
    filled.run(USERS.format(""))
    filled.run("CREATE CHANGELOG old WITH ('store' = k) AS SELECT age, userid AS who FROM users WHERE age > 60")
    (old,) = [r for r in filled.catalog.relations.all() if r.name == "old"]
    assert old.key_columns == ("who",)


def test_insert_into_a_changelog(filled: Bench) -> None:
    filled.run(
        "CREATE CHANGELOG c (url VARCHAR, n BIGINT, PRIMARY KEY (url)) WITH ('store' = k, 'value.format' = json, "
        "'topic.partitions' = 1, 'topic.replicas' = 1)"
    )
    filled.run("INSERT INTO c SELECT url, count(*) AS n FROM clicks GROUP BY url")
    (query,) = filled.catalog.queries.all()
    assert query.kind == "insert_into"
    assert filled.notices == [f'query {query.id} writes to changelog "c"']


def test_a_query_over_windows_says_how_long_they_are_kept(filled: Bench) -> None:
    filled.run("USE STORE k")
    filled.run(
        "CREATE CHANGELOG c WITH ('window.grace.millis' = 1000, 'retention.millis' = 5000, 'key.format' = 'json') AS "
        "SELECT window_start, window_end, url, count(*) AS n FROM TUMBLE(clicks, SIZE 1 MINUTE) "
        "GROUP BY window_start, window_end, url EMIT FINAL"
    )
    (made,) = [r for r in filled.catalog.relations.all() if r.name == "c"]
    assert made.key_columns == ("window_start", "window_end", "url")
    assert made.property("retention.millis") is None, "it is the query's"
    (query,) = filled.catalog.queries.all()
    assert dict(query.properties) == {
        "starting.position": "earliest", "window.grace.millis": "1000", "retention.millis": "5000",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "hint"),
    [
        ("CREATE CHANGELOG c WITH ('window.grace.millis' = 5) AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
         "0A000", 'property "window.grace.millis" needs an aggregation over a window',
         "Read FROM TUMBLE(stream, SIZE n unit) and GROUP BY window_start, window_end."),
        ("CREATE CHANGELOG c WITH ('retention.millis' = 5) AS SELECT userid, age FROM users",
         "0A000", 'property "retention.millis" needs an aggregation over a window',
         "Read FROM TUMBLE(stream, SIZE n unit) and GROUP BY window_start, window_end."),
        ("CREATE CHANGELOG c WITH ('retention.millis' = 'long') AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
         "22023", 'invalid value for property "retention.millis": "long"',
         "It is a number of milliseconds, 0 to 3162240000000."),
        ("CREATE CHANGELOG c WITH ('state.ttl.millis' = 5) AS SELECT age, count(*) AS n FROM users GROUP BY age",
         "0A000", 'property "state.ttl.millis" is not supported over a changelog', "Group a stream."),
        ("CREATE CHANGELOG c AS SELECT url FROM clicks", "42809",
         "the result of the query is a stream, not a changelog",
         "CREATE STREAM ... AS writes such a result; with GROUP BY it is a changelog."),
        ("CREATE CHANGELOG c AS SELECT count(*) AS n FROM clicks GROUP BY url", "42P16",
         "the SELECT list leaves out a column of GROUP BY", "Select all of them."),
        ("CREATE CHANGELOG c AS SELECT age FROM users", "42P16",
         "the SELECT list leaves out a column of the changelog's primary key", "Select all of them."),
        ("CREATE CHANGELOG c AS SELECT count(*) AS n FROM clicks", "0A000",
         "an aggregate without GROUP BY columns, or with GROUPING SETS, has no primary key",
         "Keep the result in a materialized view."),
        ("CREATE CHANGELOG c AS SELECT url, count(*) AS n FROM clicks GROUP BY ROLLUP (url)", "0A000",
         "an aggregate without GROUP BY columns, or with GROUPING SETS, has no primary key",
         "Keep the result in a materialized view."),
        ("CREATE CHANGELOG c WITH ('enable.upsert.mode' = false) AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
         "0A000", "a changelog whose records say themselves what they change is not supported",
         "Leave the property out: the last record of a key counts, and one without a value deletes."),
        ("CREATE CHANGELOG c WITH ('store' = f) AS SELECT url, count(*) AS n FROM clicks GROUP BY url",
         "0A000", "writing a changelog to a store of type FILE is not supported",
         "Name a store of type KAFKA or CONFLUENT_KAFKA or KINESIS with the property 'store', or keep the result in a "
         "materialized view."),
        ("CREATE STREAM c AS SELECT url, count(*) AS n FROM clicks GROUP BY url", "42809",
         "the result of GROUP BY or of an aggregate is a changelog, not a stream",
         "CREATE CHANGELOG ... AS writes such a result, CREATE MATERIALIZED VIEW ... AS keeps it."),
        ("INSERT INTO users SELECT url AS userid, url AS region, 1 AS age FROM clicks", "42809",
         "the result of the query is a stream, not a changelog",
         "CREATE STREAM ... AS writes such a result; with GROUP BY it is a changelog."),
        ("INSERT INTO users SELECT url AS userid, ip AS region, 1 AS age FROM clicks GROUP BY url, ip", "42P16",
         'the key of the query differs from the primary key of changelog "users"', "GROUP BY the primary key."),
        ("INSERT INTO users SELECT userid, region, age FROM users", "0A000",
         'the query would read what it writes: entity "users" in store "k"', "Write to another entity."),
    ],
)  # fmt: skip
def test_refusals_of_results(filled: Bench, text: str, sqlstate: str, message: str, hint: str) -> None:
    filled.run(USERS.format(""), "USE STORE k")
    before = filled.dump()
    error = filled.error(text)
    assert (error.sqlstate, error.message, error.hint) == (sqlstate, message, hint)
    assert filled.dump() == before


def test_explain_and_describe_say_what_a_changelog_would_be(filled: Bench) -> None:
    filled.run("USE STORE k")
    lines = [row["QUERY PLAN"] for row in filled.run(f"EXPLAIN {COUNTS}")]
    assert lines[0].startswith("Aggregation")
    (described,) = filled.run(f"DESCRIBE {COUNTS}")
    assert described["type"] == "CREATE_CHANGELOG_AS"
    assert '"type": "changelog"' in described["info"]
    (declared,) = filled.run(f"DESCRIBE {USERS.format('')}")
    assert declared["type"] == "CREATE_CHANGELOG"


def test_the_tutorials_statements(filled: Bench) -> None:
    """As they are printed, with a store of type KAFKA for the one of another kind."""
    filled.kafka().create_entity("users", {})
    filled.run(
        "CREATE STREAM user_clicks (click_url VARCHAR, user_regionid VARCHAR) WITH ('store' = k, 'topic' = 'clicks', "
        "'value.format' = json)",
        "CREATE CHANGELOG users ( registertime BIGINT, name VARCHAR, email VARCHAR, userid VARCHAR, regionid VARCHAR, "
        'gender VARCHAR, interests ARRAY<VARCHAR>, contactinfo STRUCT<phone VARCHAR, city VARCHAR, "state" VARCHAR, '
        "zipcode VARCHAR>, PRIMARY KEY(userid) ) WITH ( 'store'='k', 'topic'='users', 'value.format'='json');",
        "CREATE CHANGELOG url_region_click_count AS SELECT click_url, user_regionid, "
        "count(*) AS url_region_click_count FROM user_clicks GROUP BY click_url, user_regionid;",
    )
    found = {r.name: r for r in filled.catalog.relations.all() if r.kind == "changelog"}
    assert found["users"].key_columns == ("userid",)
    counts = found["url_region_click_count"]
    assert (counts.key_columns, counts.entity) == (("click_url", "user_regionid"), "url_region_click_count")
    assert counts.property("key.format") == "json"
    assert filled.kafka().made["url_region_click_count"]["topic.partitions"] == 4


REGIONS = (
    "CREATE CHANGELOG regions (name VARCHAR, land VARCHAR, PRIMARY KEY (name)) "
    "WITH ('store' = k, 'value.format' = json, 'topic.partitions' = 1, 'topic.replicas' = 1)"
)


@pytest.mark.parametrize(
    ("select", "key"),
    [
        ("SELECT u.userid, r.land FROM users u LEFT JOIN regions r ON u.region = r.name", ("userid",)),
        ("SELECT r.name, u.userid FROM users u JOIN regions r ON u.region = r.land", ("userid", "name")),
        ("SELECT a.userid, b.userid AS other FROM users a JOIN users b ON a.age = b.age", ("userid", "other")),
        ("SELECT r.land, count(*) AS n FROM users u FULL JOIN regions r ON u.region = r.name GROUP BY r.land",
         ("land",)),
    ],
)  # fmt: skip
def test_the_key_of_a_join_of_changelogs(filled: Bench, select: str, key: tuple[str, ...]) -> None:
    filled.run(USERS.format(""), REGIONS, f"CREATE CHANGELOG c WITH ('store' = k) AS {select}")
    (made,) = [r for r in filled.catalog.relations.all() if r.name == "c"]
    assert made.key_columns == key


@pytest.mark.parametrize(
    ("select", "sqlstate", "message"),
    [
        ("SELECT u.userid, r.name FROM users u LEFT JOIN regions r ON u.region = r.land", "0A000",
         "an outer join whose rows may lack a part of their key cannot be written to a changelog"),
        ("SELECT u.userid, r.name FROM users u FULL JOIN regions r ON u.region = r.name", "0A000",
         "an outer join whose rows may lack a part of their key cannot be written to a changelog"),
        ("SELECT u.userid FROM users u JOIN regions r ON u.region = r.land", "42P16",
         "the SELECT list leaves out a column of the changelog's primary key"),
    ],
)  # fmt: skip
def test_a_join_of_changelogs_without_a_whole_key_is_not_written(
    filled: Bench, select: str, sqlstate: str, message: str
) -> None:
    filled.run(USERS.format(""), REGIONS)
    error = filled.error(f"CREATE CHANGELOG c WITH ('store' = k) AS {select}")
    assert (error.sqlstate, error.message) == (sqlstate, message)
