"""Programs of the dialect lenses end to end on a real Kafka, with rows written down by hand."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer
from tests.lenses.broker import Broker, as_json, integer
from tests.lenses.programs import EXPRESSIONS, MERCHANTS, SUMS, TOPICS

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def session(server: LiveServer, broker: Broker, kafka_broker: KafkaBroker) -> Iterator[Connection[tuple[Any, ...]]]:
    server.run(f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
    with server.connect() as connection:
        connection.execute("USE STORE k")
        for text in TOPICS:
            connection.execute(text.format(store="k").encode())
        yield connection


def run(session: Connection[tuple[Any, ...]], program: str) -> None:
    session.execute("SET dialect = lenses")
    try:
        session.execute(program.encode())
    finally:
        session.execute("SET dialect = postgres")


def test_expressions(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    broker.put(
        "input-topic",
        (b"k1", as_json({"field1": 41, "field2": "longer", "field3": "Robert"}), 0),
        (b"k2", as_json({"field1": 1, "field2": "short", "field3": "Robert"}), 1),
        (b"k3", as_json({"field1": -1, "field2": "longest", "field3": "William"}), 2),
        (None, as_json({"field1": 2, "field2": "another", "field3": "Ann"}), 3),
    )
    run(session, EXPRESSIONS)
    assert broker.records("target-topic", 3) == [
        (b"k1", {"result1": "ab", "result2": 42, "result3": "longer", "who_is_it": "It's bobby"}),
        (b"k3", {"result1": "ab", "result2": 0, "result3": "longest", "who_is_it": "It's willy"}),
        (None, {"result1": "ab", "result2": 3, "result3": "another", "who_is_it": "Unknown"}),
    ]


def test_streams_add_and_tables_take_back(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    broker.put("amounts", (b"key1", integer(10), 0), (b"key1", integer(20), 1), (b"key2", integer(5), 2))
    run(session, SUMS)
    broker.rows("sums-of-stream", {b"key1": {"total": 30}, b"key2": {"total": 5}})
    broker.rows("sums-of-table", {b"key1": {"total": 20}, b"key2": {"total": 5}})
    # a record without a value deletes its key from the table, and one without a key is no row of it
    broker.put("amounts", (b"key2", None, 3), (None, integer(7), 4), (b"key1", integer(1), 5))
    broker.rows("sums-of-table", {b"key1": {"total": 1}})
    broker.rows("sums-of-stream", {b"key1": {"total": 31}, b"key2": {"total": 5}})


def test_the_merchants(session: Connection[tuple[Any, ...]], broker: Broker, server: LiveServer) -> None:
    session.execute(f"CREATE PROCESSOR shop AS $${MERCHANTS}$$".encode())
    session.execute("START PROCESSOR shop")

    def merchant(name: str, surname: str, country: str, platform: str) -> bytes:
        address = {"country": country, "city": "x"}
        return as_json({"name": name, "surname": surname, "address": address, "language": "en", "platform": platform})

    broker.put("countries", (b"GR", as_json({"label": "Greece", "continent": "Europe"}), 0))
    broker.put("countries", (b"UK", as_json({"label": "Kingdom", "continent": "Europe"}), 1))
    broker.put(
        "merchants",
        (b"m1", merchant("Ann", "Smith", "UK", "iOS"), 10),
        (b"m2", merchant("Nik", "Pappas", "GR", "Android"), 11),
        (b"m3", merchant("Lea", "Nobody", "XX", "iOS"), 12),
        (b"m4", merchant("Eve", "Jones", "UK", "iOS"), 13),
        (b"m5", merchant("Old", "Late", "UK", "iOS"), 2 * 3600),
    )
    found = dict(broker.records("currentMerchants", 3))
    assert found == {
        b"m1": {"fullname": "Smith, Ann", "country": "UK", "language": "en", "platform": "iOS"},
        b"m2": {"fullname": "Pappas, Nik", "country": "GR", "language": "en", "platform": "Android"},
        b"m4": {"fullname": "Jones, Eve", "country": "UK", "language": "en", "platform": "iOS"},
    }
    broker.rows("merchantsPerPlatform", {b"iOS": {"merchants": 2}, b"Android": {"merchants": 1}})
    rows = session.execute("DESCRIBE PROCESSOR shop").fetchall()
    assert [(row[0], row[1], row[6]) for row in rows] == [
        ("currentMerchants", "STREAM", None),
        ("merchantsPerPlatform", "TABLE", None),
    ]
    assert {row[5] for row in rows} <= {"RUNNING", "FILLING"}


def test_keys_windows_and_joins_with_tables(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    session.execute(
        "CREATE STREAM orders (item VARCHAR, shop INTEGER, pieces INTEGER, tags ARRAY<VARCHAR>) WITH "
        "('topic' = 'orders', 'value.format' = 'json', 'key.format' = 'json', "
        "'key.type' = 'STRUCT<shop INTEGER, no BIGINT>', "
        "'topic.partitions' = 1, 'topic.replicas' = 1)"
    )
    session.execute(
        "CREATE CHANGELOG items (item VARCHAR, price INTEGER, PRIMARY KEY (item)) WITH ('topic' = 'items', "
        "'value.format' = 'json', 'value.columns.exclude' = 'item', 'topic.partitions' = 1, 'topic.replicas' = 1)"
    )
    broker.put("items", (b"tea", as_json({"price": 3}), 0), (b"cup", as_json({"price": 9}), 0))
    order = lambda item, pieces, *tags: as_json({"item": item, "shop": 7, "pieces": pieces, "tags": tags})  # noqa: E731
    broker.put(
        "orders",
        (as_json({"shop": 1, "no": 11}), order("tea", 2, "new", "gift"), 10),
        (as_json({"shop": 2, "no": 12}), order("cup", 1), 20),
        (as_json({"shop": 1, "no": 13}), order("tea", 5, "new"), 70),
    )
    run(
        session,
        """
        SET defaults.topic.autocreate = true;
        WITH i AS (SELECT TABLE * FROM items);
        WITH o AS (SELECT STREAM *, _meta.offset AS at FROM orders);
        INSERT INTO priced SELECT STREAM o.item, pieces * price AS total FROM o JOIN i ON o.item = i._key;
        INSERT INTO by-key SELECT STREAM _key.shop AS _key.s, item AS _key.item, pieces, at, _key.no FROM o;
        INSERT INTO plain STORE KEY AS STRING VALUE AS INT SELECT STREAM item AS _key, pieces AS _value FROM orders;
        INSERT INTO tagged SELECT STREAM tag FROM orders LATERAL tags AS tag WHERE pieces > 1;
        INSERT INTO minutes SELECT STREAM SUM(pieces) AS pieces FROM orders WINDOW BY TUMBLE 1m GROUP BY item;
        INSERT INTO by-shop SELECT TABLE COUNT(*) AS n, MAX(pieces) AS most FROM orders GROUP BY _key.shop, item;
        INSERT INTO dear STORE VALUE AS JSON SELECT TABLE price * 2 AS double FROM i WHERE price > 3;
        """,
    )
    key = lambda shop, no: f'{{"shop":{shop},"no":{no}}}'.encode()  # noqa: E731
    assert broker.records("by-key", 3) == [
        (b'{"s":1,"item":"tea"}', {"pieces": 2, "at": 0, "no": 11}),
        (b'{"s":2,"item":"cup"}', {"pieces": 1, "at": 1, "no": 12}),
        (b'{"s":1,"item":"tea"}', {"pieces": 5, "at": 2, "no": 13}),
    ]
    assert broker.records("plain", 3) == [(b"tea", integer(2)), (b"cup", integer(1)), (b"tea", integer(5))]
    assert broker.records("tagged", 3) == [
        (key(1, 11), {"tag": "new"}), (key(1, 11), {"tag": "gift"}), (key(1, 13), {"tag": "new"}),
    ]  # fmt: skip
    assert sorted(broker.records("priced", 3), key=str) == [
        (b"cup", {"item": "cup", "total": 9}),
        (b"tea", {"item": "tea", "total": 15}),
        (b"tea", {"item": "tea", "total": 6}),
    ]
    start = ["2023-11-14 22:13:00", "2023-11-14 22:14:00", "2023-11-14 22:15:00"]
    windowed = lambda item, n: json.dumps(  # noqa: E731
        {"item": item, "window_start": f"{start[n]}.000000", "window_end": f"{start[n + 1]}.000000"},
        separators=(",", ":"),
    ).encode()
    broker.rows(
        "minutes",
        {windowed("tea", 0): {"pieces": 2}, windowed("cup", 0): {"pieces": 1}, windowed("tea", 1): {"pieces": 5}},
    )
    broker.rows(
        "by-shop",
        {b'{"shop":1,"item":"tea"}': {"n": 2, "most": 5}, b'{"shop":2,"item":"cup"}': {"n": 1, "most": 1}},
    )
    broker.rows("dear", {b"cup": {"double": 18}})
    broker.put("orders", (None, order("tea", 3, "last"), 80))
    assert broker.records("tagged", 4)[3] == (None, {"tag": "last"})  # what has no key gets none
    broker.put("items", (b"cup", as_json({"price": 2}), 100), (b"tea", as_json({"price": 4}), 100))
    broker.rows("dear", {b"tea": {"double": 8}})


FUNCTIONS: dict[str, Any] = {
    "ABS(-3)": 3,
    "AS_NULLABLE(t)": "Straße",
    "CAPITALIZE('abc')": "Abc",
    "CEIL(1.5)": 2,
    "COALESCE(n, t, 'x')": "Straße",
    "CONCAT('a', n, 'b')": "ab",
    "CONCATENATE(t, '!')": "Straße!",
    "CONTAINS(t, 'aß')": True,
    "CONTAINS(t, 'AS')": False,
    "DROPLEFT(t, 2)": "raße",
    "DROPLEFT(t, 0)": "Straße",
    "DROPRIGHT(t, 2)": "Stra",
    "DROPRIGHT(t, 0)": "Straße",
    "DROPRIGHT(t, 9)": "",
    "ENDSWITH(t, 'ße')": True,
    "FLOOR(1.5)": 1,
    "ISNULL(n)": True,
    "ISNOTNULL(n)": False,
    "LEN(t)": 6,
    "LENGTH('')": 0,
    "LOWER('ABC')": "abc",
    "LOWERCASE('ABC')": "abc",
    "LPAD('7', 3, '0')": "007",
    "LEFTPAD('7', 3, '0')": "007",
    "MAX(1, i, 3)": 41,
    "MIN(1, i, 3)": 1,
    "REPLACE(t, 'ß', 'ss')": "Strasse",
    "REVERSE('abc')": "cba",
    "RPAD('7', 3, '0')": "700",
    "RIGHTPAD('7', 3, '0')": "700",
    "SIZEOF(xs)": 2,
    "SQRT(4)": 2.0,
    "STARTSWITH(t, 'St')": True,
    "TAKELEFT(t, 2)": "St",
    "TAKERIGHT(t, 2)": "ße",
    "TRIM('  a ')": "a",
    "UNCAPITALIZE('ABC')": "aBC",
    "UPPER('abc')": "ABC",
    "UPPERCASE('abc')": "ABC",
    "ABBREVIATE(t, 5)": "St...",
    "BASE64(t)": "U3RyYcOfZQ==",
    "CENTER('ab', 5, 'xyz')": "xabxy",
    "CHOP(t)": "Straß",
    "DECODE64('U3RyYcOfZQ==')": "Straße",
    "DELETEWHITESPACE(' a\tb\u2003c\u00a0d ')": "abc\u00a0d",
    "DIGITS('TOY-502-WH-1')": "5021",
    "DIGITS('none')": "",
    "EXISTS(n)": False,
    "INDEXOF(t, 'a')": 3,
    "INDEXOF(t, 'z')": -1,
    "MKSTRING(i)": "41",
    "REGEX(t, '(.)a(.)')": ["r", "ß"],
    "REGEXP(t, 'x')": None,
    "REGEX_MATCHES('a1b2', '([a-z])([0-9])')": [["a", "1"], ["b", "2"]],
    "REGEX_MATCHES('Kathleen', 'Jo')": [],
    "STRIPACCENTS('Éclair')": "Eclair",
    "SUBSTR(t, 2)": "raße",
    "SUBSTRING(t, 1, 3)": "tr",
    "SWAPCASE('aBc')": "AbC",
    "TRUNCATE(t, 2)": "St",
    "ACOS(1)": 0.0,
    "ASIN(0)": 0.0,
    "ATAN(0)": 0.0,
    "CBRT(8.0)": 2.0,
    "COS(0)": 1.0,
    "COSH(0)": 1.0,
    "DEGREES(0)": 0.0,
    "CAST(DISTANCE(52.5, 13.4, 48.9, 2.3) AS LONG)": 877009,
    "CAST(DISTANCE(0, 0, 0, 180) AS LONG)": 20015114,
    "DISTANCE(i, i, i, i)": 0.0,
    "MOD(i, 5)": 1,
    "NEG(i)": -41,
    "POW(2, 10)": 1024.0,
    "POWER(2, 3)": 8.0,
    "RADIANS(0)": 0.0,
    "ROUND(2.345, 2)": 2.35,
    "SIGN(-8)": -1.0,
    "SIN(0)": 0.0,
    "SINH(0)": 0.0,
    "TAN(0)": 0.0,
    "TANH(0)": 0.0,
    "CONVERT_DATETIME('2016-01-01 00:00:02', 'yyyy-MM-dd HH:mm:ss', 'dd-MM-yyyy HH:mm')": "01-01-2016 00:00",
    "CONVERT_DATETIME('no date', 'yyyy', 'yyyy')": None,
    "DAY(_meta.timestamp)": 14,
    "HOUR(_meta.timestamp)": 22,
    "MINUTE(_meta.timestamp)": 13,
    "MONTH(_meta.timestamp)": 11,
    "QUARTER(_meta.timestamp)": 4,
    "SECOND(_meta.timestamp)": 20,
    "WEEK(_meta.timestamp)": 46,
    "YEAR(_meta.timestamp)": 2023,
    "MONTH_TEXT(_meta.timestamp)": "November",
    "MKSTRING(EXTRACT_DATE(_meta.timestamp))": "2023-11-14",
    "MKSTRING(EXTRACT_TIME(_meta.timestamp))": "22:13:20",
    "FORMAT_DATE(_meta.timestamp, 'dd-MM-yyyy HH:mm')": "14-11-2023 22:13",
    "FORMAT_TIMESTAMP(TIMESTAMP_MILLIS(CAST(1700000000123 AS LONG)), 'HH:mm:ss.SSS')": "22:13:20.123",
    "FORMAT_TIMESTAMP(TIMESTAMP_MICROS(CAST(1700000000123456 AS LONG)), 'ss.SSSSSS')": "20.123456",
    "MKSTRING(PARSE_DATE('03/02/2024', 'dd/MM/yyyy'))": "2024-02-03",
    "MKSTRING(TO_DATE('03/02/2024', 'dd/MM/yyyy'))": "2024-02-03",
    "FORMAT_DATE(PARSE_TIMESTAMP_MILLIS('2024-02-03 04:05', 'yyyy-MM-dd HH:mm'), 'yyyyMMddHHmm')": "202402030405",
    "FORMAT_DATE(PARSE_TIMESTAMP_MICROS('2024-02-03', 'yyyy-MM-dd'), 'yyyyMMdd')": "20240203",
    "FORMAT_DATE(TO_DATETIME('2024-02-03', 'yyyy-MM-dd'), 'yyyyMMdd')": "20240203",
    "FORMAT_DATE(TO_TIMESTAMP('2024-02-03', 'yyyy-MM-dd'), 'yyyyMMdd')": "20240203",
    "MKSTRING(TIME_MILLIS(_meta.timestamp))": "22:13:20",
    "MKSTRING(TIME_MILLIS(CAST(1503158676433679390 AS LONG)))": "03:07:59.39",
    "MKSTRING(TIME_MICROS(CAST(1503158676433679390 AS LONG)))": "20:47:13.67939",
    "MKSTRING(TIME_MILLIS(-1))": "23:59:59.999",
    "FORMAT_TIMESTAMP(TO_TIMESTAMP('2016-01-01 00:00:02'), 'HHmmss')": "000002",
    "FORMAT_TIMESTAMP(TO_TIMESTAMP(_meta.timestamp), 'HHmmss')": "221320",
    "MKSTRING(DATE(19783))": "2024-03-01",
    "MKSTRING(DATE(CAST(-1 AS LONG)))": "1969-12-31",
    "FORMAT_TIMESTAMP(TIMESTAMP(DATE(19723), TIME_MILLIS(0), 'Europe/Berlin'), 'yyyy-MM-dd HH:mm')": "2023-12-31 23:00",
    "DATETIME() = NOW() AND CURRENT_DATETIME() = NOW()": True,
    "TOMORROW() - 1d = NOW() AND YESTERDAY() + 1d = NOW()": True,
    "CURDATE() = DATE() AND EXTRACT_DATE(NOW()) = DATE() AND EXTRACT_TIME(NOW()) = CURTIME()": True,
    "RANDINT() = RANDINT()": False,
    "ANONYMIZE('Charles')": "*******",
    "MASK(t)": "******",
    "EMAIL('Bob@example.org')": "B*****@example.org",
    "INITIALS('Ann Mary Smith')": "AMS",
    "FIRST1('Melissa')": "M*****",
    "FIRST2('Charles')": "Ch*****",
    "FIRST3('Brenda')": "Bre*****",
    "FIRST4('Charles')": "Char*****",
    "LAST1('Brenda')": "*****a",
    "LAST2('Brenda')": "*****da",
    "LAST3('Brenda')": "*****nda",
    "LAST4('Brenda')": "*****enda",
    "AS_NON_NULLABLE(i)": 41,
    "ELEMENT_OF(xs, 1)": "b",
    "ELEMENT_OF(xs, 2)": None,
    "IN_ARRAY('a', xs)": True,
    "JSON_EXTRACT_FIRST('{\"hour\": 1, \"minute\": 17}', '$.hour')": "1",
    "JSON_EXTRACT_FIRST('{\"a\": \"x\"}', '$.b')": None,
    "JSON_EXTRACT_ALL('{\"hour\": 1, \"minute\": 17}', '$.*')": ["1", "17"],
    "HEADERASSTRING('trace')": "t1",
    "HEADERKEYS()": ["trace", "n"],
    "HEADERASINT('n')": 7,
    "HEADERASLONG('n')": 7,
    "HEADERASDOUBLE('n') / 2": 3.5,
    "HEADERASFLOAT('n')": 7.0,
    "HEADERASINT('none')": None,
    "MKSTRING(TO_DATE('31/01/2024', 'dd/MM/yyyy') + 1M)": "2024-02-29 00:00:00",
    "FORMAT_TIMESTAMP(_meta.timestamp + 1d - 2h + 3m + 4s, 'dd HH:mm:ss')": "15 20:16:24",
    "FORMAT_TIMESTAMP(TO_TIMESTAMP('2024-02-29', 'yyyy-MM-dd') + 1y - 1w, 'yyyy-MM-dd')": "2025-02-21",
    "FORMAT_TIMESTAMP(2d + _meta.timestamp, 'dd')": "16",
    "FORMAT_TIME(EXTRACT_TIME(_meta.timestamp), 'HH.mm')": "22.13",
    "MKSTRING(PARSE_TIME_MILLIS('10:11:12.345', 'HH:mm:ss.SSS'))": "10:11:12.345",
    "MKSTRING(PARSE_TIME_MICROS('10:11', 'HH:mm'))": "10:11:00",
    "PARSE_TIME_MILLIS('noon', 'HH:mm')": None,
    "TYPEOF(t)": "STRING",
    "TYPEOF(CAST(t AS BYTES))": "BYTES",
    "MKSTRING(CAST('10:11:12' AS TIME))": "10:11:12",
    "TYPEOF(i)": "INT",
    "TYPEOF(CAST(i AS LONG))": "LONG",
    "TYPEOF(xs)": "STRING[]",
    "TYPEOF(part)": "STRUCT",
    "DUMP(t)": "io.lenses.sql.model.StringValue@StringValue(Straße)",
    "DUMP(i)": "io.lenses.sql.model.IntValue@IntValue(41)",
    "DUMP(DUMP(DUMP(i)))": "io.lenses.sql.model.StringValue@StringValue(io.lenses.sql.model.StringValue@StringValue("
    "io.lenses.sql.model.IntValue@IntValue(41)))",
    "DUMP(TYPEOF(i))": "io.lenses.sql.model.StringValue@StringValue(INT)",
    "DUMP(1.5)": "io.lenses.sql.model.BigDecimalValue@BigDecimalValue(1.5)",
    "DUMP(AS_NULLABLE(HEADERASSTRING('none')))": "io.lenses.sql.model.NullValue$@NullValue",
    "FLATTEN(xss)": ["a", "b", "c"],
    "REPEAT(t, 2)": ["Straße", "Straße"],
    "REPEAT(xs, 2)": [["a", "b"], ["a", "b"]],
    "ZIP(xs, 'x', ns, 'y')": [{"x": "a", "y": 1}],
    "ZIP_ALL(xs, 'x', ns, 'y')": [{"x": "a", "y": 1}, {"x": "b", "y": None}],
    "ZIP(xs, 'x', ns, 'y', xs, 'z')": [{"x": "a", "y": 1, "z": "a"}],
    "ELEMENT_OF(ZIP(xs, 'x', ns, 'y'), 5)": None,
    "CAST(i AS STRING)": "41",
    "CAST('12' AS LONG)": 12,
    "CAST(i AS DOUBLE) / 2": 20.5,
    "i % 5 + i * 2 - 7 / 2": 80,
    "t || '!'": "Straße!",
    "i IN (1, 41)": True,
    "t NOT IN ('a', 'b')": True,
    "t LIKE 'Str%'": True,
    "t NOT LIKE '%x%'": True,
    "i >= 41 AND NOT (i != 41 OR i < 0)": True,
    "i == 41": True,
    "CASE t WHEN 'x' THEN 1 WHEN 'Straße' THEN 2 END": 2,
    "CASE WHEN n IS NOT NULL THEN 1 END": None,
    "part.a.b": 5,
    "_meta.partition": 0,
    "_meta.headers.trace": "t1",
    "_meta.headers.none": None,
}


def test_every_function(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    session.execute(
        "CREATE STREAM fs (t VARCHAR, n VARCHAR, i INTEGER, xs ARRAY<VARCHAR>, ns ARRAY<INTEGER>, "
        "xss ARRAY<ARRAY<VARCHAR>>, part STRUCT<a STRUCT<b INTEGER>>) WITH "
        "('topic' = 'fs', 'value.format' = 'json', 'topic.partitions' = 1, 'topic.replicas' = 1)"
    )
    row = {
        "t": "Straße",
        "i": 41,
        "xs": ["a", "b"],
        "ns": [1],
        "xss": [["a", "b"], None, ["c"]],
        "part": {"a": {"b": 5}},
    }
    broker.put("fs", (b"kept as it is", as_json(row), 0), headers=[("trace", b"t1"), ("n", b"7")])
    items = ", ".join(f"{text} AS r{number}" for number, text in enumerate(FUNCTIONS))
    run(session, f"SET defaults.topic.autocreate = true; INSERT INTO functions SELECT STREAM {items} FROM fs")
    ((key, found),) = broker.records("functions", 1)
    assert key == b"kept as it is"
    assert {text: found[f"r{number}"] for number, text in enumerate(FUNCTIONS)} == FUNCTIONS


def test_identifiers_are_of_a_record_s_place(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    session.execute(
        "CREATE STREAM ids (x INTEGER) WITH ('topic' = 'ids', 'value.format' = 'json', 'topic.partitions' = 1, "
        "'topic.replicas' = 1)"
    )
    broker.put("ids", (None, as_json({"x": 1}), 0), (None, as_json({"x": 1}), 1))
    run(
        session,
        "SET defaults.topic.autocreate = true; INSERT INTO uuids SELECT STREAM UUID() AS a, UUID() AS b FROM ids",
    )
    found = [value for _, value in broker.records("uuids", 2)]
    texts = [value[name] for value in found for name in "ab"]
    assert len(set(texts)) == 4
    assert all(str(uuid.UUID(text)) == text and uuid.UUID(text).version == 3 for text in texts)


AGGREGATED = """
COUNT(v) AS n, MINK(v, 2) AS mink, MAXK(v, 2) AS maxk, MINK_UNIQUE(v, 2) AS mink_unique,
MAXK_UNIQUE(v, 2) AS maxk_unique, TOPK(v, 2) AS topk, BOTTOMK(v, 2) AS bottomk, COLLECT(v, 3) AS collect,
COLLECT_UNIQUE(v, 2) AS collect_unique
"""


def aggregated(values: list[int]) -> dict[str, Any]:
    """Of values in the order of their times."""
    often = Counter(values)
    return {
        "n": len(values),
        "mink": sorted(values)[:2],
        "maxk": sorted(values, reverse=True)[:2],
        "mink_unique": sorted(often)[:2],
        "maxk_unique": sorted(often, reverse=True)[:2],
        "topk": sorted(often, key=lambda value: (-often[value], value))[:2],
        "bottomk": sorted(often, key=lambda value: (often[value], value))[:2],
        "collect": values[:3],
        "collect_unique": sorted(often)[:2],
    }


def test_aggregates_of_chosen_values(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    session.execute(
        "CREATE STREAM chosen (g VARCHAR, v INTEGER) WITH ('topic' = 'chosen', 'value.format' = 'json', "
        "'key.format' = 'primitive', 'key.type' = 'VARCHAR', 'topic.partitions' = 1, 'topic.replicas' = 1)"
    )
    given = [("a", "g", 5), ("b", "g", 1), ("c", "g", 5), ("d", "g", 3), ("a", "g", 1), ("e", "h", 2), ("b", "g", 1)]
    for second, (key, group, v) in enumerate(given):
        broker.put("chosen", (key.encode(), as_json({"g": group, "v": v}), second))
    run(
        session,
        f"""
        SET defaults.topic.autocreate = true;
        INSERT INTO chosen-stream SELECT STREAM {AGGREGATED} FROM chosen GROUP BY g;
        INSERT INTO chosen-table SELECT TABLE {AGGREGATED} FROM chosen GROUP BY g;
        INSERT INTO chosen-windows SELECT STREAM {AGGREGATED} FROM chosen WINDOW BY TUMBLE 4s GROUP BY g;
        """,
    )
    broker.rows("chosen-stream", {b"g": aggregated([5, 1, 5, 3, 1, 1]), b"h": aggregated([2])})
    broker.rows("chosen-table", {b"g": aggregated([5, 3, 1, 1]), b"h": aggregated([2])})  # c, d, a, b by their times
    moment = lambda second: f"2023-11-14 22:13:{20 + second}.000000"  # noqa: E731
    window = lambda group, start: json.dumps(  # noqa: E731
        {"g": group, "window_start": moment(start), "window_end": moment(start + 4)}, separators=(",", ":")
    ).encode()
    broker.rows(
        "chosen-windows",
        {
            window("g", 0): aggregated([5, 1, 5, 3]),
            window("g", 4): aggregated([1, 1]),
            window("h", 4): aggregated([2]),
        },
    )
    broker.put("chosen", (b"c", None, 7), (b"d", as_json({"g": "h", "v": 9}), 8), (b"e", None, 9))
    broker.rows("chosen-table", {b"g": aggregated([1, 1]), b"h": aggregated([9])})


def test_how_programs_are_sent(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    program = "SET defaults.topic.autocreate = true; INSERT INTO sent-{} SELECT STREAM * FROM amounts"
    with pytest.raises(psycopg.errors.SyntaxError):  # it is no text of the first dialect
        session.execute(program.format("a").encode())
    session.execute("SET dialect = lenses")
    session.execute(program.format("a").encode(), prepare=True, binary=True)  # by the extended protocol
    assert [row[4] for row in session.execute("LIST PROCESSORS").fetchall() if "sent-a" in row[7]] == [1]
    with pytest.raises(psycopg.errors.SyntaxError, match="the program has no INSERT INTO") as caught:
        session.execute("WITH a AS (SELECT STREAM * FROM amounts)")
    assert "LENSES $$" in str(caught.value.diag.message_hint)
    with session.transaction(), pytest.raises(psycopg.errors.ActiveSqlTransaction):
        session.execute(program.format("b").encode())
    session.execute("SET dialect = postgres")
    assert broker.records("sent-a", 1)[0] == (b"key1", integer(10))
    topics = session.execute("LIST ENTITIES").fetchall()
    assert "sent-b" not in [row[0] for row in topics]


def test_a_restart_and_a_stop_lose_nothing(
    session: Connection[tuple[Any, ...]], broker: Broker, server: LiveServer
) -> None:
    session.execute("STOP PROCESSOR shop")
    broker.put("countries", (b"FR", as_json({"label": "France", "continent": "Europe"}), 7300))
    broker.put("merchants", (b"m6", as_json({"name": "Zoe", "surname": "New", "address": {"country": "FR"},
                                             "language": "el", "platform": "web"}), 7300))  # fmt: skip
    server.stop()
    server.start()
    with server.connect() as connection:
        (shop,) = [row for row in connection.execute("LIST PROCESSORS").fetchall() if row[0] == "shop"]
        assert (shop[3], shop[7]) == ("STOPPED", MERCHANTS)
        connection.execute("START PROCESSOR shop")
        broker.rows(
            "merchantsPerPlatform",
            {b"iOS": {"merchants": 2}, b"Android": {"merchants": 1}, b"web": {"merchants": 1}},
        )
        assert [key for key, _ in broker.records("currentMerchants", 4)][-1] == b"m6"
        broker.put("amounts", (b"key9", integer(9), 9))
        broker.rows("sums-of-table", {b"key1": {"total": 1}, b"key9": {"total": 9}})
        connection.execute("DROP PROCESSOR shop")
        assert "shop" not in [row[0] for row in connection.execute("LIST PROCESSORS").fetchall()]
