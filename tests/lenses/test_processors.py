"""Programs and processors without Spark: what is made, what is kept, and what is told when a program is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from mvserver.streaming.api import QueryState, QueryStatus
from spark_sinks.schema_registry.base import RegisteredSchema
from tests.lenses.programs import EXPRESSIONS, MERCHANTS, SUMS, TOPICS
from tests.routing.fakes import Bench, MemoryRegistry


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.run("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'h:1')", "USE STORE k")
    bench.run(*(text.format(store="k") for text in TOPICS))
    bench.engine.calls.clear()
    yield bench
    bench.close()


def create(bench: Bench, program: str, name: str = "p") -> None:
    bench.run(f"CREATE PROCESSOR {name} AS $${program}$$")


def told(bench: Bench, program: str) -> SqlError:
    before = bench.dump()
    error = bench.error(f"CREATE PROCESSOR p AS $${program}$$")
    assert bench.dump() == before
    return error


def kept(bench: Bench, name: str) -> dict[str, str | None]:
    (found,) = [each for each in bench.catalog.relations.all() if each.name == name]
    keys = ("value.format", "key.format", "key.columns", "value.columns.exclude", "topic.partitions")
    return {"kind": found.kind, "columns": ", ".join(f"{c.name} {c.type}" for c in found.columns)} | {
        key: found.property(key) for key in keys if found.property(key) is not None
    }


def test_expressions(bench: Bench) -> None:
    create(bench, EXPRESSIONS)
    assert kept(bench, "target-topic") == {
        "kind": "stream",
        "columns": "_key VARCHAR, result1 VARCHAR, result2 INTEGER, result3 VARCHAR, who_is_it VARCHAR",
        "value.format": "json",
        "key.format": "primitive",
        "key.columns": "_key",
        "value.columns.exclude": "_key",
        "topic.partitions": "1",
    }
    assert bench.stores.place("KAFKA", "h:1").made["target-topic"] == {"topic.partitions": 1, "topic.replicas": 1}


def test_the_merchants(bench: Bench) -> None:
    create(bench, MERCHANTS)
    assert bench.notices == [
        'setting "commit.interval.ms" has no effect here',
        'setting "enable.auto.commit" has no effect here',
        "line 21, column 7: CONCAT is given a value that may be NULL",
        'processor "p" is not running yet',
    ]
    assert kept(bench, "currentMerchants")["columns"] == (
        "_key VARCHAR, fullname VARCHAR, country VARCHAR, language VARCHAR, platform VARCHAR"
    )
    assert kept(bench, "merchantsPerPlatform") == {
        "kind": "changelog",
        "columns": "_key VARCHAR, merchants BIGINT",
        "value.format": "json",
        "key.format": "primitive",
        "value.columns.exclude": "_key",
        "topic.partitions": "1",
    }
    made = bench.stores.place("KAFKA", "h:1").made
    assert made["merchantsPerPlatform"]["kafka.topic.cleanup.policy"] == "compact"
    assert "kafka.topic.cleanup.policy" not in made["currentMerchants"]
    (row,) = bench.run("LIST PROCESSORS")
    assert (row["name"], row["state"], row["queries"], row["program"]) == ("p", "STOPPED", 2, MERCHANTS)
    rows = bench.run("DESCRIBE PROCESSOR p")
    assert [(row["target"], row["kind"], row["sources"]) for row in rows] == [
        ("currentMerchants", "STREAM", '["merchants", "countries"]'),
        ("merchantsPerPlatform", "TABLE", '["merchants", "countries"]'),
    ]


def test_sums(bench: Bench) -> None:
    create(bench, SUMS)
    assert kept(bench, "sums-of-table")["columns"] == "_key VARCHAR, total BIGINT"
    assert {each.name: each.kind for each in bench.catalog.relations.all() if "source" in each.name} == {
        "p.source1": "stream",
        "p.source2": "changelog",
    }


def test_a_processor_starts_stops_and_goes(bench: Bench) -> None:
    create(bench, SUMS)
    states = lambda: {query.desired_state for query in bench.catalog.queries.all()}  # noqa: E731
    assert states() == {"terminated"}
    bench.run("START PROCESSOR p")
    assert states() == {"running"}
    bench.run("STOP PROCESSOR p")
    assert states() == {"terminated"}
    bench.run("STOP PROCESSOR p")
    assert bench.notices == ['processor "p" is already stopped']
    assert bench.error("SCALE PROCESSOR p 2").sqlstate == "0A000"
    bench.run("SCALE PROCESSOR p 1", "DROP PROCESSOR p")
    assert states() == set()
    names = {each.name for each in bench.catalog.relations.all()}
    assert names == {"countries", "merchants", "input", "amounts", "sums-of-stream", "sums-of-table"}
    assert bench.error("DROP PROCESSOR p").sqlstate == "42704"
    bench.run("DROP PROCESSOR IF EXISTS p")
    create(bench, SUMS)  # its targets are there, and are written again
    assert len(bench.catalog.queries.all()) == 2
    assert bench.error(f"CREATE PROCESSOR p AS $${SUMS}$$").message == 'processor "p" already exists'


def test_a_program_runs_at_once(bench: Bench) -> None:
    bench.run(f"LENSES $${SUMS}$$")
    (row,) = bench.run("LIST PROCESSORS")
    assert row["name"].startswith("program_")
    assert {query.desired_state for query in bench.catalog.queries.all()} == {"running"}


GO = "SET defaults.topic.autocreate = true; INSERT INTO t "
WRONG = (
    ("INSERT INTO t SELECT STREAM * FROM nothing",
     "42704", '1:36: "nothing" is neither a topic of store "k" nor a WITH'),
    ("INSERT INTO t SELECT STREAM * FROM merchants", "42704", '1:13: topic "t" does not exist'),
    (GO + "SELECT STREAM nope FROM merchants", "42703", '1:67: field "nope" does not exist'),
    (GO + "SELECT STREAM Platform FROM merchants", "42703", '1:67: field "Platform" does not exist'),
    (GO + "SELECT STREAM address.nope AS x FROM merchants", "42703", '1:67: column "nope" not found in data type'),
    (GO + "SELECT STREAM field1 + field2 AS x FROM input-topic", "42883", "1:74: operator does not exist"),
    (GO + "SELECT STREAM field1 FROM input-topic WHERE field1 = '5'", "42883", "1:104: operator does not exist"),
    (GO + "SELECT STREAM field1 FROM input-topic WHERE field2",
     "42804", "1:97: argument of WHERE must be type boolean"),
    (GO + "SELECT STREAM UPPER(field1) AS x FROM input-topic", "42883", "1:67: function upper(integer) does not exist"),
    (GO + "SELECT STREAM NOPE(field1) AS x FROM input-topic", "42883", "1:67: function NOPE does not exist"),
    (GO + "SELECT TABLE COUNT(*) AS n, NOW() AS x FROM input-topic GROUP BY field2",
     "0A000", "1:81: function now() is not supported in a continuous query that keeps, groups or joins rows"),
    (GO + "SELECT TABLE _value, RANDINT() AS x FROM amounts",
     "0A000", "1:74: function RANDINT() is not supported in a continuous query that keeps, groups or joins rows"),
    (GO + "SELECT STREAM LAST_OFFSET() AS x FROM input-topic", "0A000", "1:67: function LAST_OFFSET is not supported"),
    (GO + "SELECT STREAM SUM(_value) AS s FROM amounts", "0A000", "1:67: an aggregate needs GROUP BY"),
    (GO + "SELECT STREAM *, field1 FROM input-topic", "42701", '1:70: field "field1" is given more than once'),
    (GO + "SELECT STREAM CAST(field2 AS UUID) AS x FROM input-topic", "42704", "1:67: type UUID does not exist"),
    (GO + "SELECT TABLE field2 AS _key, field1 FROM input-topic", "0A000", "1:66: a TABLE keeps its key"),
    (GO + "SELECT STREAM CAST(field3 AS DATE) AS _key, field1 FROM input-topic",
     "0A000", "1:51: a key of type DATE cannot be"),
    (GO + "STORE KEY AS INT SELECT STREAM * FROM input-topic",
     "42804", "1:51: STORE KEY AS INT does not fit a key of type"),
    (GO + "STORE VALUE AS STRING SELECT STREAM * FROM input-topic",
     "42804", "1:51: the value has fields and is not STRING"),
    (GO + "STORE KEY AS XML SELECT STREAM field1 AS _key.`a b`, field2 FROM input-topic", "0A000",
     '1:51: column "a b" cannot be in a record of XML: "a b" is no name of an element'),
    (GO + "STORE KEY AS JSON SELECT STREAM field1 AS _key, field2 FROM input-topic", "0A000",
     "1:51: STORE KEY AS JSON of one value is not supported"),
    (GO + "STORE KEY AS INT SELECT STREAM CAST(field1 AS LONG) AS _key, field2 FROM input-topic", "42804",
     "1:51: STORE KEY AS INT does not fit a key of type BIGINT"),
    (GO + "SELECT STREAM field1 AS a, field2 AS a.b FROM input-topic", "42701",
     '1:67: field "a" is given more than once'),
    (GO + "STORE VALUE AS AVRO SELECT STREAM * FROM input-topic", "55000", '1:51: store "k" names no schema registry'),
    (GO + "SELECT TABLE COUNT(*) FROM amounts WINDOW BY TUMBLE 1m GROUP BY _key",
     "42601", "1:88: WINDOW BY is for streams"),
    (GO + "SELECT STREAM MAXK(field1, 0) AS x FROM input-topic GROUP BY field2",
     "22023", "1:67: the second argument of MAXK is a whole number from 1 to 10000"),
    (GO + "SELECT STREAM JSON_EXTRACT_FIRST(field2, '$.') AS x FROM input-topic",
     "22023", '1:51: JSON path "$." is not valid'),
    (GO + "SELECT STREAM JSON_EXTRACT_FIRST(field2, field3) AS x FROM input-topic",
     "0A000", "1:67: the path of JSON_EXTRACT_FIRST is a text that stands there"),
    (GO + "SELECT STREAM PARSE_DATE(field2, 'qq') AS x FROM input-topic",
     "0A000", '1:51: date pattern "qq" is not supported'),
    (GO + "SELECT STREAM REGEXP(field2, '(?=a)') AS x FROM input-topic",
     "0A000", '1:51: regular expressions with "(?=" are not'),
    (GO + "SELECT STREAM HEADERASSTRING(field2) AS x FROM input-topic",
     "22023", "1:67: the name of a header is a text"),
    (GO + "SELECT STREAM YEAR(field1) AS x FROM input-topic", "42883", "1:67: function year(integer) does not exist"),
    ("SET nullability = perhaps; " + GO + "SELECT STREAM * FROM input-topic",
     "22023", '1:5: setting "nullability" cannot be'),
    (GO + "SELECT TABLE field3, COUNT(*) AS n FROM input-topic GROUP BY field2", "42803", "1:66: column"),
    (GO + "SELECT STREAM * FROM input-topic JOIN merchants", "42601", "1:86: a join of two streams needs WITHIN"),
    ("WITH a AS (SELECT TABLE * FROM amounts); " + GO + "SELECT STREAM * FROM a",
     "42809", "1:94: SELECT STREAM does not fit"),
    ("WITH a AS (SELECT STREAM * FROM amounts); WITH a AS (SELECT STREAM * FROM amounts); " + GO
     + "SELECT STREAM * FROM a", "42712", '1:48: "a" is the name of two WITHs'),
    ("SET nonsense.key = 1; " + GO + "SELECT STREAM * FROM amounts",
     "22023", '1:5: setting "nonsense.key" is not known'),
    ("SET auto.offset.reset = middle; " + GO + "SELECT STREAM * FROM amounts",
     "22023", '1:5: setting "auto.offset.reset"'),
    ("SET error.policy = dlq; " + GO + "SELECT STREAM * FROM amounts",
     "22023", '1:5: setting "error.policy" = dlq needs the setting "dead.letter.queue"'),
    ("SET error.policy.read = dlq; SET dead.letter.queue = nowhere; SET topic.out.autocreate = true; "
     "INSERT INTO out SELECT STREAM * FROM amounts", "42704", '1:34: topic "nowhere" does not exist'),
    ("SET error.policy = dlq; SET dead.letter.queue = countries; " + GO + "SELECT STREAM * FROM amounts",
     "42804", '1:29: topic "countries" has other records'),
    ("SET error.policy = dlq; SET dead.letter.queue = t; " + GO + "SELECT STREAM * FROM amounts",
     "42804", '1:29: topic "t" is a target of the program'),
    ("SET error.policy = dlq; SET dead.letter.queue = amounts; " + GO + "SELECT STREAM * FROM amounts",
     "42804", '1:29: topic "amounts" has other records'),
    ("SET error.policy.write = dlq; " + GO + "SELECT STREAM * FROM amounts",
     "22023", '1:5: setting "error.policy.write" = dlq needs the setting "dead.letter.queue"'),
    ("SET error.policy.write = dlq; SET dead.letter.queue = t; " + GO + "SELECT STREAM * FROM amounts",
     "42804", '1:35: topic "t" is a target of the program'),
    ("SET error.policy.write = dlq; SET dead.letter.queue = amounts; " + GO + "SELECT STREAM * FROM amounts",
     "0A000", "1:35: the query would read what it writes"),
    ("SET defaults.topic.value.avro.record = 'a b'; " + GO + "SELECT STREAM * FROM amounts",
     "22023", '1:5: setting "defaults.topic.value.avro.record" is no name of Avro'),
    ("SET defaults.topic.partitions = many; " + GO + "SELECT STREAM * FROM amounts", "22023", "1:5: setting"),
    ("INSERT INTO amounts SELECT STREAM * FROM amounts", "0A000", "1:13: the query would read what it writes"),
    ("INSERT INTO countries SELECT STREAM field1 FROM input-topic",
     "42804", '1:13: topic "countries" has other records'),
    (GO + "SELECT STREAM * FROM input-topic; CREATE FUNCTION f", "0A000", "1:87: CREATE FUNCTION is not supported"),
    (GO + "SELECT STREAM " + "(" * 60 + "1" + ")" * 60 + " FROM amounts", "54001", "1:107: brackets, calls"),
    (GO + "STORE VALUE AS CSV SELECT STREAM * FROM merchants", "0A000", '1:51: column "address" of type STRUCT'),
    *((GO + f"STORE VALUE AS {each} SELECT STREAM field2 AS _value FROM input-topic", "0A000",
       f"1:51: STORE VALUE AS {each} of one value is not supported") for each in ("JSON", "CSV", "XML", "PROTOBUF")),
    (GO + "SELECT STREAM name FROM merchants WHERE name = 'x", "42601", "1:100: unterminated text"),
    (GO + "SELECT STREAM name FROM merchants LATERAL language AS l", "42883",
     "1:95: LATERAL is over an array, and not over a value of type text"),
    (GO + "SELECT STREAM COUNT(DISTINCT field1) AS n FROM input-topic GROUP BY field2", "0A000",
     "1:73: COUNT(DISTINCT ...) is not supported"),
    (GO + "SELECT STREAM name NOT LIKE 5 AS x FROM merchants", "42883",
     "1:72: operator does not exist: text LIKE integer"),
    (GO + "SELECT STREAM DUMP(address) AS x FROM merchants", "42846", "1:72: cannot cast type"),
    (GO + "SELECT STREAM LAST_OFFSET() AS x FROM input-topic", "0A000", "1:67: function LAST_OFFSET is not supported"),
    (GO + "SELECT STREAM UPPER(field2, field3) AS x FROM input-topic", "42883",
     "1:67: function UPPER takes 1 argument and is given 2"),
    ("", "42601", "1:1: the program has no INSERT INTO"),
)  # fmt: skip


@pytest.mark.parametrize(("program", "sqlstate", "message"), WRONG)
def test_what_is_wrong_with_a_program(bench: Bench, program: str, sqlstate: str, message: str) -> None:
    error = told(bench, program)
    place, words = message.split(": ", 1)
    line, column = place.split(":")
    wanted = f"line {line}, column {column}: {words}"
    assert (error.sqlstate, error.message[: len(wanted)]) == (sqlstate, wanted), str(error)


@pytest.mark.parametrize(
    ("select", "hint"),
    [
        ("SELECT STREAM shoe FROM merchants", "There are name, surname, address, language, platform."),
        ("SELECT STREAM _key.x AS x FROM merchants", "Write _key alone."),
        ("SELECT STREAM UPPER(field1) AS x FROM input-topic", "what they take are listed in docs/sql/lenses.md."),
        ("SELECT STREAM name FROM merchants WHERE COUNT(name) > 1", "Give the SELECT with GROUP BY a name with WITH"),
        ("SELECT STREAM HEADERASINT(name) AS n FROM merchants", "Write it in quotes: HEADERASINT('name')."),
        ("SELECT STREAM name FROM merchants SET x = 1", 'Statements end with ";".'),
        ("STORE VALUE AS XML SELECT STREAM name AS _value FROM merchants", "One value is INT, LONG, STRING, BYTES or"),
    ],
)
def test_hints_say_what_to_do(bench: Bench, select: str, hint: str) -> None:
    assert hint in (told(bench, GO + select).hint or "")


def test_texts_stand_in_either_quotes(bench: Bench) -> None:
    create(bench, GO + 'SELECT STREAM CONCAT(name, "!", "say ""hi""") AS x FROM merchants WHERE name != ""')
    (query,) = bench.catalog.queries.all()
    assert "CAST('say \"hi\"' AS VARCHAR)" in query.select_text
    assert "CAST('' AS VARCHAR)" in query.select_text


def test_all_that_is_wrong_is_told_together(bench: Bench) -> None:
    error = told(
        bench,
        "SET nope = 1;\nWITH a AS (SELECT STREAM nope FROM merchants);\nINSERT INTO t SELECT STREAM * FROM a;\n"
        "INSERT INTO u SELECT STREAM field1 + field2 AS x FROM input-topic;\nINSERT INTO v SELECT STREAM * FROM gone;",
    )
    assert error.message == "the program has 4 errors"
    assert error.detail is not None
    assert [line.split(" [")[0] for line in error.detail.splitlines()] == [
        'line 1, column 5: setting "nope" is not known',
        'line 2, column 26: field "nope" does not exist',
        "line 4, column 36: operator does not exist: integer + text",
        'line 5, column 36: "gone" is neither a topic of store "k" nor a WITH before it',
    ]
    assert error.position == len("CREATE PROCESSOR p AS $$SET ") + 1


def test_who_may_read_and_write(bench: Bench) -> None:
    bench.run(
        "CREATE ROLE ann LOGIN", "GRANT CREATE ON SCHEMA public TO ann", "GRANT USAGE, INSERT ON STORE k TO ann",
        "GRANT CREATE ON STORE k TO ann",
    )  # fmt: skip
    bench.context.role = "ann"
    error = bench.error(f"CREATE PROCESSOR p AS $${SUMS}$$")
    assert (error.sqlstate, "amounts" in str(error)) == ("42501", True)
    bench.context.role = "postgres"
    bench.run("GRANT SELECT ON amounts TO ann", "REVOKE INSERT ON STORE k FROM ann")
    bench.context.role = "ann"
    error = bench.error(f"CREATE PROCESSOR p AS $${SUMS}$$")
    assert error.sqlstate == "42501"
    bench.context.role = "postgres"
    bench.run("GRANT INSERT ON STORE k TO ann")
    bench.context.role = "ann"
    create(bench, SUMS)
    assert {query.owner for query in bench.catalog.queries.all()} == {"ann"}
    bench.context.role = "postgres"
    bench.run("CREATE ROLE ben LOGIN")
    bench.context.role = "ben"
    assert bench.run("LIST PROCESSORS") == []
    for text in ("START", "STOP", "DROP", "DESCRIBE"):
        assert bench.error(f"{text} PROCESSOR p").sqlstate == "42501", text
    assert bench.error("SCALE PROCESSOR p 1").sqlstate == "42501"


def target_of(bench: Bench, text: str, name: str = "out") -> str:
    """The kind and the columns of what a SELECT writes."""
    bench.run(
        "CREATE STREAM taps (at BIGINT, url VARCHAR, ms INTEGER) WITH ('topic' = 'taps', 'value.format' = 'json', "
        "'key.format' = 'json', 'key.type' = 'STRUCT<shop INTEGER, no BIGINT>', 'topic.partitions' = 3, "
        "'topic.replicas' = 1)",
        "CREATE CHANGELOG users (id VARCHAR, name VARCHAR, city VARCHAR, PRIMARY KEY (id)) WITH ('topic' = 'users', "
        "'value.format' = 'json', 'topic.partitions' = 1, 'topic.replicas' = 1)",
        "CREATE CHANGELOG scores (id VARCHAR, score INTEGER, PRIMARY KEY (id)) WITH ('topic' = 'scores', "
        "'value.format' = 'json', 'topic.partitions' = 1, 'topic.replicas' = 1)",
        "CREATE STREAM baskets (id INTEGER, items ARRAY<STRUCT<sku VARCHAR, tags ARRAY<VARCHAR>>>) WITH "
        "('topic' = 'baskets', 'value.format' = 'json', 'topic.partitions' = 1, 'topic.replicas' = 1)",
    )
    create(bench, f"SET defaults.topic.autocreate = true; {text}")
    (found,) = [each for each in bench.catalog.relations.all() if each.name == name]
    return f"{found.kind}: " + ", ".join(f"{c.name} {c.type}" for c in found.columns)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("INSERT INTO out SELECT TABLE users.name, score FROM users JOIN scores",
         "changelog: _key VARCHAR, name VARCHAR, score INTEGER"),
        ("INSERT INTO out SELECT TABLE u.name, score FROM users AS u LEFT JOIN scores AS s ON u._key = s._key",
         "changelog: _key VARCHAR, name VARCHAR, score INTEGER"),
        ("INSERT INTO out SELECT TABLE u.name, score FROM users AS u OUTER JOIN scores AS s ON u.name = s._key",
         "changelog: _key VARCHAR, name VARCHAR, score INTEGER"),
        ("INSERT INTO out SELECT TABLE a.name, b.city FROM users AS a JOIN users AS b ON a.city = b.city "
         "LEFT JOIN scores ON b._key = scores._key",
         "changelog: _key VARCHAR, name VARCHAR, city VARCHAR"),
        ("WITH d AS (SELECT TABLE u.name, score FROM scores AS s RIGHT JOIN users AS u ON u.name = s._key); "
         "INSERT INTO out SELECT TABLE name FROM d", "changelog: _key VARCHAR, name VARCHAR"),
        ("WITH m AS (SELECT STREAM * FROM merchants); WITH u AS (SELECT TABLE * FROM users); "
         "INSERT INTO out SELECT STREAM m.surname, u.city FROM m LEFT JOIN u ON m.address.country = u.name",
         "stream: _key VARCHAR, surname VARCHAR, city VARCHAR"),
        ("INSERT INTO out SELECT TABLE COUNT(*) AS n, MAX(score) AS best FROM users JOIN scores GROUP BY city",
         "changelog: _key VARCHAR, n BIGINT, best INTEGER"),
        ("INSERT INTO out SELECT STREAM SUM(ms) AS ms FROM taps EVENTTIME BY at WINDOW BY HOP 5m BY 1m GRACE BY 30s "
         "GROUP BY url",
         "changelog: _key.url VARCHAR, _key.window_start TIMESTAMP, _key.window_end TIMESTAMP, ms BIGINT"),
        ("INSERT INTO out SELECT STREAM url, COUNT(*) AS n FROM taps WINDOW BY SESSION 1m GROUP BY url, _key.shop",
         "changelog: _key.url VARCHAR, _key.shop INTEGER, _key.window_start TIMESTAMP, _key.window_end TIMESTAMP, "
         "url VARCHAR, n BIGINT"),
        ("INSERT INTO out SELECT TABLE COUNT(*) AS n FROM taps GROUP BY _key",
         "changelog: _key.shop INTEGER, _key.no BIGINT, n BIGINT"),
        ("INSERT INTO out SELECT STREAM _key AS _key, ms FROM taps",
         "stream: _key.shop INTEGER, _key.no BIGINT, ms INTEGER"),
        ("INSERT INTO out SELECT STREAM id, item.sku, tag FROM baskets LATERAL items AS item LATERAL item.tags AS tag "
         "WHERE item.sku != 'x' AND tag LIKE 'a%'",
         "stream: id INTEGER, sku VARCHAR, tag VARCHAR"),
        ("INSERT INTO out SELECT TABLE COUNT(*) AS n FROM baskets LATERAL items AS item GROUP BY item.sku", None),
        ("INSERT INTO out SELECT STREAM COUNT(item.sku) AS n, MAX(tag) AS tag FROM baskets LATERAL items AS item "
         "LATERAL item.tags AS tag WHERE tag != 'x' WINDOW BY TUMBLE 1m GROUP BY item.sku",
         "changelog: _key.sku VARCHAR, _key.window_start TIMESTAMP, _key.window_end TIMESTAMP, n BIGINT, tag VARCHAR"),
        ("INSERT INTO out SELECT STREAM a.id, item.sku FROM baskets AS a JOIN baskets AS b ON a.id = b.id WITHIN 5m "
         "LATERAL b.items AS item", "stream: _key INTEGER, id INTEGER, sku VARCHAR"),
        ("INSERT INTO out SELECT STREAM COUNT(*) AS n FROM baskets LATERAL items AS item GROUP BY item.sku",
         "changelog: _key VARCHAR, n BIGINT"),
        ("WITH n AS (SELECT TABLE COUNT(*) AS n FROM merchants GROUP BY platform); "
         "INSERT INTO out SELECT TABLE n * 2 AS twice FROM n WHERE n > 1",
         "changelog: _key VARCHAR, twice BIGINT"),
        ("WITH m AS (SELECT STREAM * FROM merchants); WITH u AS (SELECT TABLE * FROM users); "
         "INSERT INTO out SELECT STREAM surname, u.city FROM u RIGHT JOIN m ON m.platform = u._key",
         "stream: _key VARCHAR, surname VARCHAR, city VARCHAR"),
        ("WITH m AS (SELECT STREAM * FROM merchants); WITH c AS (SELECT STREAM * FROM countries); "
         "INSERT INTO out SELECT STREAM surname, continent FROM m OUTER JOIN c WITHIN 5m",
         "stream: _key VARCHAR, surname VARCHAR, continent VARCHAR"),
        ("WITH m AS (SELECT STREAM * FROM merchants); WITH u AS (SELECT TABLE * FROM users); "
         "WITH c AS (SELECT STREAM * FROM countries); "
         "INSERT INTO out SELECT STREAM surname, continent, city FROM m JOIN c ON m.address.country = c._key WITHIN 5m "
         "JOIN u ON m.platform = u._key",
         "stream: _key VARCHAR, surname VARCHAR, continent VARCHAR, city VARCHAR"),
    ],
)  # fmt: skip
def test_what_selects_write(bench: Bench, text: str, wanted: str | None) -> None:
    if wanted is None:  # nothing is known of the keys
        with pytest.raises(SqlError, match="which a TABLE needs"):
            target_of(bench, text)
        return
    assert target_of(bench, text) == wanted


def test_settings_act_on_topics_and_sources(bench: Bench) -> None:
    create(
        bench,
        "SET defaults.topic.autocreate = true; SET defaults.topic.partitions = 4; SET topic.`out`.partitions = 2; "
        "SET topic.out.cleanup.policy = delete; SET defaults.topic.retention.ms = '1000'; SET error.policy = fail; "
        "SET auto.offset.reset = latest; INSERT INTO out SELECT TABLE SUM(_value) AS s FROM amounts GROUP BY _key; "
        "INSERT INTO other SELECT STREAM * FROM countries",
    )
    made = bench.stores.place("KAFKA", "h:1").made
    assert made["out"] == {
        "topic.partitions": 2, "topic.replicas": 1, "kafka.topic.cleanup.policy": "delete",
        "kafka.topic.retention.ms": "1000",
    }  # fmt: skip
    assert made["other"] == {"topic.partitions": 4, "topic.replicas": 1, "kafka.topic.retention.ms": "1000"}
    (source,) = [each for each in bench.catalog.relations.all() if each.name == "p.source1"]
    assert source.property("source.deserialization.error.handling") == "TERMINATE"
    assert {dict(query.properties)["starting.position"] for query in bench.catalog.queries.all()} == {"latest"}


def test_dead_letters_are_queries_of_the_processor(bench: Bench) -> None:
    create(
        bench,
        "SET error.policy = dlq; SET dead.letter.queue = 'dead-letters'; SET defaults.topic.autocreate = true; "
        "WITH t AS (SELECT TABLE * FROM amounts); INSERT INTO sums SELECT TABLE SUM(_value) AS s FROM t GROUP BY _key; "
        "INSERT INTO raw SELECT STREAM * FROM amounts; INSERT INTO other SELECT STREAM * FROM countries",
    )
    queries = bench.catalog.queries.all()
    letters = [query for query in queries if query.kind == "dead_letters"]
    relations = {each.id: each for each in bench.catalog.relations.all()}
    read = {name for query in letters for name in [relations[query.source_ids[0]].entity]}
    assert (len(queries), len(letters), read) == (6, 3, {"amounts", "countries"})
    (sink,) = {query.sink_id for query in letters}
    assert [(c.name, c.type) for c in relations[sink].columns] == [("_key", "VARBINARY"), ("_value", "VARBINARY")]
    assert relations[sink].entity == relations[sink].name == "dead-letters"
    assert {relations[query.source_ids[0]].property("source.deserialization.error.handling") for query in letters} == {
        "IGNORE_AND_LOG"
    }
    assert "dead-letters" in bench.stores.place("KAFKA", "h:1").made
    described = [(row["target"], row["kind"]) for row in bench.run("DESCRIBE PROCESSOR p")]
    assert described.count(("dead-letters", "DEAD LETTERS")) == 3
    bench.run("DROP PROCESSOR p")
    assert not bench.catalog.queries.all()


def test_refused_records_are_written_by_their_own_query(bench: Bench) -> None:
    program = (
        "SET error.policy.write = {}; SET dead.letter.queue = 'dead'; SET defaults.topic.autocreate = true; "
        "INSERT INTO sums SELECT STREAM SUM(_value) AS s FROM amounts GROUP BY _key; "
        "INSERT INTO other SELECT STREAM * FROM countries"
    )
    names = ("refused.records.left", "refused.records.entity")
    create(bench, program.format("dlq"))
    found = [dict(query.properties) for query in bench.catalog.queries.all()]
    assert [[each.get(name) for name in names] for each in found] == [["true", "dead"], ["true", "dead"]]
    assert kept(bench, "dead")["columns"] == "_key VARBINARY, _value VARBINARY"
    create(bench, program.format("continue"), "q")
    found = [dict(query.properties) for query in bench.catalog.queries.all()][2:]
    assert [[each.get(name) for name in names] for each in found] == [["true", None], ["true", None]]
    create(bench, program.replace("error.policy.write", "error.policy").format("dlq"), "r")
    kinds = [(query.kind, dict(query.properties).get(names[1])) for query in bench.catalog.queries.all()][4:]
    assert sorted(kinds, key=str) == [("dead_letters", None)] * 2 + [("insert_into", "dead")] * 2


@pytest.mark.parametrize(
    ("key", "hinted"),
    [("policy", ["policy.read", "policy.write"]), ("policy.read", ["policy.read"]), ("policy.write", ["policy.write"])],
)
def test_dead_letters_need_headers(bench: Bench, key: str, hinted: list[str]) -> None:
    bench.run("CREATE STORE f WITH ('type' = FILE, 'uris' = '.')", "USE STORE f")
    bench.run("CREATE STREAM plain (a INTEGER) WITH ('topic' = 'plain', 'value.format' = 'json')")
    error = told(
        bench,
        "SET defaults.topic.autocreate = true; SET dead.letter.queue = dead; "
        f"SET error.{key} = dlq; INSERT INTO out SELECT STREAM a FROM plain",
    )
    assert (error.sqlstate, error.message) == (
        "0A000", "line 1, column 43: a topic of dead letters is not supported in a store of type FILE"
    )  # fmt: skip
    assert re.findall(r"error\.(\S+) = continue", error.hint or "") == hinted


def test_a_program_has_a_bound_in_the_words_of_the_first_dialect(bench: Bench) -> None:
    go = "SET defaults.topic.autocreate = true; "
    deep = told(bench, f"{go}INSERT INTO t SELECT STREAM {'TYPEOF(' * 30}field2{')' * 30} AS x FROM input-topic")
    texts = ", ".join(f"'{'x' * 60_000}' AS c{number}" for number in range(10))
    several = told(
        bench,
        f"{go}WITH a AS (SELECT STREAM field2, {texts} FROM input-topic); "
        f"INSERT INTO t SELECT STREAM field2, DUMP('{'y' * 150_000}') AS d FROM a",
    )
    assert (deep.sqlstate, several.sqlstate) == ("54000", "54000")


def test_settings_of_clients_are_told_of(bench: Bench) -> None:
    create(
        bench,
        "SET linger.ms = 5; SET consumer.fetch.min.bytes = 1; SET num.standby.replicas = 1; SET isolation.level = x; "
        "SET defaults.topic.autocreate = true; INSERT INTO raw SELECT STREAM * FROM amounts",
    )
    keys = ("linger.ms", "consumer.fetch.min.bytes", "num.standby.replicas", "isolation.level")
    assert {f'setting "{key}" has no effect here' for key in keys} <= set(map(str, bench.notices))


def test_a_queue_without_its_policy_does_nothing(bench: Bench) -> None:
    create(
        bench,
        "SET dead.letter.queue = 'nowhere'; SET defaults.topic.autocreate = true; "
        "INSERT INTO raw SELECT STREAM * FROM amounts",
    )
    assert [query.kind for query in bench.catalog.queries.all()] == ["insert_into"]
    assert any('setting "dead.letter.queue" has no effect here' in str(notice) for notice in bench.notices)


def test_the_queries_of_a_processor_fail_together_and_start_again(bench: Bench) -> None:
    bench.run(f"LENSES $${SUMS}$$")
    one, other = bench.catalog.queries.all()
    groups = {dict(query.properties)["application"] for query in (one, other)}
    assert len(groups) == 1
    (name,) = [row["name"] for row in bench.run("LIST PROCESSORS")]
    held = f"query {one.id} of the same application has failed: x"
    bench.engine.known = {
        one.id: QueryStatus(one.id, QueryState.FAILED, error="22012: division by zero"),
        other.id: QueryStatus(other.id, QueryState.FAILED, error=held),
    }
    assert bench.run("LIST PROCESSORS")[0]["state"] == "FAILED"
    bench.engine.calls.clear()
    bench.run(f"START PROCESSOR {name}")
    assert [call for call in bench.engine.calls if call[0] == "restart"] == [("restart", one.id, False)]


def test_topics_are_known_by_their_registered_schemas(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = {
        "sales-value": '{"type": "record", "name": "V", "fields": [{"name": "itemId", "type": "int"}, '
        '{"name": "price", "type": ["null", "double"]}]}',
        "sales-key": '{"type": "record", "name": "K", "fields": [{"name": "shop", "type": "string"}]}',
    }

    def latest(_: MemoryRegistry, subject: str) -> RegisteredSchema | None:
        return RegisteredSchema(1, "AVRO", schemas[subject]) if subject in schemas else None

    monkeypatch.setattr(MemoryRegistry, "latest", latest)
    bench.run(
        "CREATE SCHEMA_REGISTRY sr WITH ('type' = CONFLUENT, 'uris' = 'http://x')",
        "CREATE STORE a WITH ('type' = KAFKA, 'uris' = 'h:2', 'schema_registry.name' = sr)",
        "CREATE ENTITY sales IN STORE a", "CREATE ENTITY unknown IN STORE a", "USE STORE a",
    )  # fmt: skip
    create(
        bench,
        "SET defaults.topic.autocreate = true; "
        "INSERT INTO out STORE VALUE AS JSON SELECT STREAM _key.shop AS _key, itemId, price FROM sales",
    )
    assert kept(bench, "p.source1")["columns"] == "_key.shop VARCHAR, itemId INTEGER, price DOUBLE"
    assert kept(bench, "out")["columns"] == "_key VARCHAR, itemId INTEGER, price DOUBLE"
    error = bench.error("CREATE PROCESSOR q AS $$INSERT INTO out SELECT STREAM * FROM unknown$$")
    assert (error.sqlstate, error.message) == (
        "42704", 'line 1, column 38: nothing is known of the records of topic "unknown"',
    )  # fmt: skip


def test_a_target_whose_name_is_taken_has_another_relation(bench: Bench) -> None:
    program = "SET defaults.topic.autocreate = true; INSERT INTO input SELECT STREAM field1 FROM input-topic"
    create(bench, program)  # the stream "input" stands for another topic
    assert kept(bench, "p.target1")["columns"] == "_key VARCHAR, field1 INTEGER"
    bench.run("DROP PROCESSOR p")
    create(bench, program)
    (query,) = bench.catalog.queries.all()
    sink = bench.catalog.relations.by_id(query.sink_id)
    assert sink is not None
    assert sink.name == "p.target1"


def test_a_with_that_cannot_be_read_is_told_once(bench: Bench) -> None:
    error = told(bench, "WITH a AS (SELECT STREAM FROM amounts); " + GO + "SELECT STREAM * FROM a")
    assert error.message == 'line 1, column 26: syntax error at "FROM"'
