"""Formats of the dialect lenses and its dead letters, on a real Kafka with rows written down by hand."""

from __future__ import annotations

import json
import struct
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from psycopg import Connection

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer
from tests.lenses.broker import NOW_MS, PATIENCE_S, Broker, as_json
from tests.lenses.test_kafka import run

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def session(server: LiveServer, kafka_broker: KafkaBroker) -> Iterator[Connection[tuple[Any, ...]]]:
    server.run(f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
    with server.connect() as connection:
        connection.execute("USE STORE k")
        for text in (
            "CREATE STREAM blobs (v VARBINARY) WITH ('topic' = 'f-blobs', 'value.format' = 'primitive', "
            "'key.type' = 'VARBINARY', {})",
            "CREATE STREAM sales (name VARCHAR, country VARCHAR, amount BIGINT, tags ARRAY<VARCHAR>) "
            "WITH ('topic' = 'f-sales', 'value.format' = 'json', 'key.type' = 'VARCHAR', {})",
        ):
            common = "'key.format' = 'primitive', 'topic.partitions' = 1, 'topic.replicas' = 1"
            connection.execute(text.format(common).encode())
        yield connection


def headed(broker_address: str, topic: str, count: int) -> list[tuple[bytes | None, bytes | None, list[Any]]]:
    """The first committed records of a topic as they are, with their headers; and that no more of them come."""
    consumer = Consumer({"bootstrap.servers": broker_address, "group.id": "raw", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes | None, bytes | None, list[Any]]] = []
    until = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < until:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append((message.key(), message.value(), message.headers() or []))
    more = consumer.poll(1.0)
    consumer.close()
    assert more is None or more.error() is not None
    return found


FORMATS = """
SET defaults.topic.autocreate = true;
INSERT INTO f-bytes STORE KEY AS BYTES VALUE AS BYTES SELECT STREAM _value AS _key, _key AS _value FROM f-blobs;
INSERT INTO f-xml STORE VALUE AS XML SELECT STREAM name, amount, tags, country AS `_country` FROM f-sales;
INSERT INTO f-csv STORE KEY AS CSV VALUE AS CSV SELECT STREAM name AS _key.name, amount AS _key.n, country FROM f-sales;
INSERT INTO f-xml-keys STORE KEY AS XML SELECT STREAM name AS _key.name, amount AS _key._n, country FROM f-sales;
INSERT INTO f-xml-groups STORE KEY AS XML VALUE AS XML SELECT TABLE SUM(amount) AS s FROM f-sales
GROUP BY name, country;
INSERT INTO f-groups STORE KEY AS CSV SELECT TABLE SUM(amount) AS s FROM f-sales GROUP BY name, country;
INSERT INTO f-tags SELECT STREAM COUNT(*) AS n, SUM(amount) AS sum, MAX(tag) AS last
FROM f-sales LATERAL tags AS tag WHERE amount > 1 WINDOW BY TUMBLE 1m GROUP BY tag;
INSERT INTO f-pairs SELECT STREAM a.name, tag FROM f-sales AS a JOIN f-sales AS b ON a._key = b._key WITHIN 1m
LATERAL b.tags AS tag WHERE tag IS NOT NULL;
INSERT INTO f-real STORE VALUE AS STRING SELECT STREAM CAST(amount AS DOUBLE) / 2 AS _key, name AS _value FROM f-sales;
INSERT INTO f-truth SELECT STREAM amount > 2 AS _key, amount > 3 AS _value FROM f-sales;
"""


def test_formats(session: Connection[tuple[Any, ...]], broker: Broker, kafka_broker: KafkaBroker) -> None:
    broker.put("f-blobs", (b"\xff\0", b"\x80 text", 0), (b"{}", b"", 1))
    broker.put(
        "f-sales",
        (b"1", as_json({"name": 'a"<b', "country": "gr", "amount": 5, "tags": ["x", None]}), 0),
        (b"2", as_json({"name": 'a"<b', "country": "gr", "amount": -3}), 1),
        (b"3", as_json({"name": "c", "country": None, "amount": 2, "tags": ["y"]}), 2),
    )
    run(session, FORMATS)
    address = kafka_broker.bootstrap
    assert [(key, value) for key, value, _ in headed(address, "f-bytes", 2)] == [
        (b"\x80 text", b"\xff\0"), (b"", b"{}")
    ]  # fmt: skip
    nil = b'<tags xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>'
    assert [(key, value) for key, value, _ in headed(address, "f-xml", 3)] == [
        (b"1", b'<record country="gr"><name>a"&lt;b</name><amount>5</amount><tags>x</tags>' + nil + b"</record>"),
        (b"2", b'<record country="gr"><name>a"&lt;b</name><amount>-3</amount></record>'),
        (b"3", b"<record><name>c</name><amount>2</amount><tags>y</tags></record>"),
    ]
    assert [(key, value) for key, value, _ in headed(address, "f-csv", 3)] == [
        (b'"a""<b",5', b'"gr"'), (b'"a""<b",-3', b'"gr"'), (b'"c",2', b"")
    ]  # fmt: skip
    broker.rows("f-groups", {b'"a""<b","gr"': {"s": 2}})  # a group of NULL is none
    assert broker.records("f-xml-keys", 3) == [
        (b'<record n="5"><name>a"&lt;b</name></record>', {"country": "gr"}),
        (b'<record n="-3"><name>a"&lt;b</name></record>', {"country": "gr"}),
        (b'<record n="2"><name>c</name></record>', {"country": None}),
    ]
    broker.rows(
        "f-xml-groups",
        {b'<record><name>a"&lt;b</name><country>gr</country></record>': b"<record><s>2</s></record>"},
    )
    assert [(key, value) for key, value, _ in headed(address, "f-real", 3)] == [
        (struct.pack(">d", 2.5), b'a"<b'), (struct.pack(">d", -1.5), b'a"<b'), (struct.pack(">d", 1.0), b"c")
    ]  # fmt: skip
    assert [(key, value) for key, value, _ in headed(address, "f-truth", 3)] == [
        (b"\1", b"\1"), (b"\0", b"\0"), (b"\0", b"\0")
    ]  # fmt: skip
    minute = '"window_start":"2023-11-14 22:13:00.000000","window_end":"2023-11-14 22:14:00.000000"'
    of_tag = lambda tag: f'{{"tag":"{tag}",{minute}}}'.encode()  # noqa: E731
    broker.rows("f-tags", {of_tag("x"): {"n": 1, "sum": 5, "last": "x"}, of_tag("y"): {"n": 1, "sum": 2, "last": "y"}})
    assert broker.records("f-pairs", 2) == [(b"1", {"name": 'a"<b', "tag": "x"}), (b"3", {"name": "c", "tag": "y"})]
    # What was written is read, and what is none of it is a rejected row.
    broker.put("f-xml", (b"4", b"<record><name>d</name><amount>many</amount></record>", 3), (b"5", b"<record>", 4))
    broker.put("f-xml", (b"6", b"<?xml version='1.0'?><r><NAME>e</NAME><other/></r>", 5))
    broker.put("f-csv", (b'"d', b'"fr"', 3), (b'"e",7', b'"fr"', 4))
    run(
        session,
        """
        SET defaults.topic.autocreate = true;
        INSERT INTO f-xml-back STORE VALUE AS JSON SELECT STREAM * FROM f-xml;
        INSERT INTO f-xml-sums SELECT TABLE SUM(amount) AS s FROM f-xml GROUP BY name;
        INSERT INTO f-csv-back STORE KEY AS JSON VALUE AS JSON SELECT STREAM _key.n + 1 AS more, country FROM f-csv;
        INSERT INTO f-csv-kept STORE VALUE AS JSON SELECT STREAM _key.n AS n, country FROM f-csv;
        INSERT INTO f-xml-keys-back STORE KEY AS JSON SELECT STREAM _key._n + 1 AS more FROM f-xml-keys;
        INSERT INTO f-xml-groups-back SELECT TABLE COUNT(*) AS n FROM f-xml-groups GROUP BY _key.country;
        INSERT INTO f-groups-back SELECT TABLE COUNT(*) AS n, SUM(s) AS s FROM f-groups GROUP BY _key.name;
        INSERT INTO f-real-back SELECT STREAM _key * 2 AS twice FROM f-real;
        """,
    )
    assert broker.records("f-xml-back", 4) == [
        (b"1", {"name": 'a"<b', "amount": 5, "tags": ["x", None], "_country": "gr"}),
        (b"2", {"name": 'a"<b', "amount": -3, "tags": None, "_country": "gr"}),
        (b"3", {"name": "c", "amount": 2, "tags": ["y"], "_country": None}),
        (b"6", {"name": "e", "amount": None, "tags": None, "_country": None}),
    ]
    of_sum = lambda inside: f"<record>{inside}</record>".encode()  # noqa: E731
    broker.rows("f-xml-sums", {b'a"<b': of_sum("<s>2</s>"), b"c": of_sum("<s>2</s>"), b"e": of_sum("")})
    back = [(json.loads(key or b"null"), value) for key, value in broker.records("f-csv-back", 4)]
    assert back == [
        ({"name": 'a"<b', "n": 5}, {"more": 6, "country": "gr"}),
        ({"name": 'a"<b', "n": -3}, {"more": -2, "country": "gr"}),
        ({"name": "c", "n": 2}, {"more": 3, "country": None}),
        ({"name": "e", "n": 7}, {"more": 8, "country": "fr"}),
    ]
    assert broker.records("f-csv-kept", 4) == [  # keys have the format of the source's
        (b'"a""<b",5', {"n": 5, "country": "gr"}), (b'"a""<b",-3', {"n": -3, "country": "gr"}),
        (b'"c",2', {"n": 2, "country": None}), (b'"e",7', {"n": 7, "country": "fr"}),
    ]  # fmt: skip
    assert [(json.loads(key or b"null"), value) for key, value in broker.records("f-xml-keys-back", 3)] == [
        ({"name": 'a"<b', "_n": 5}, {"more": 6}), ({"name": 'a"<b', "_n": -3}, {"more": -2}),
        ({"name": "c", "_n": 2}, {"more": 3}),
    ]  # fmt: skip
    assert [value for _, value in broker.records("f-xml-groups-back", 1)][-1] == b"<record><n>1</n></record>"
    broker.rows("f-groups-back", {b'a"<b': {"n": 1, "s": 2}})
    assert [value for _, value in broker.records("f-real-back", 3)] == [{"twice": 5.0}, {"twice": -3.0}, {"twice": 2.0}]
    rejected = session.execute("SELECT DISTINCT position, reason FROM mv_catalog.rejected_rows ORDER BY 1").fetchall()
    reasons = {reason for _, reason in rejected}
    assert "the key is not a CSV line of 2 fields" in reasons
    assert 'column "amount" is not of type BIGINT: many' in reasons
    assert any(reason.startswith("the value is not one XML element: ") for reason in reasons)


def test_the_first_dialect_has_the_formats_too(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    session.execute(
        "CREATE STREAM orders_of_xml (_id BIGINT, item STRUCT<_unit VARCHAR, _value DECIMAL(5, 2)>, "
        "parts ARRAY<VARCHAR>) "
        "WITH ('topic' = 'f-orders', 'value.format' = 'xml', 'topic.partitions' = 1, 'topic.replicas' = 1)"
    )
    session.execute("CREATE STREAM orders_again WITH ('topic' = 'f-again') AS SELECT * FROM orders_of_xml "
                    "WITH ('starting.position' = 'earliest')")  # fmt: skip
    broker.put("f-orders", (None, b"<o id='1'><item unit='kg'>1.50</item><parts>a</parts></o>", 0))
    assert broker.records("f-again", 1) == [
        (None, b'<record id="1"><item unit="kg">1.50</item><parts>a</parts></record>')
    ]


def test_dead_letters_are_written_once_with_what_they_were(
    server: LiveServer, session: Connection[tuple[Any, ...]], broker: Broker, kafka_broker: KafkaBroker
) -> None:
    mark = uuid.uuid4().hex[:8]
    topic, dead, sums, copies = (f"{name}-{mark}" for name in ("read", "dead", "sums", "copies"))
    session.execute(
        f"CREATE STREAM reads_{mark} (id BIGINT, note VARCHAR) WITH ('topic' = '{topic}', 'value.format' = 'json', "
        "'key.format' = 'primitive', 'key.type' = 'VARCHAR', 'topic.partitions' = 1, 'topic.replicas' = 1)".encode()
    )
    broker.put(topic, (b"a", as_json({"id": 1, "note": "x"}), 0))
    broker.put(topic, (b"b", b"\xff no text", 1), headers=[("trace", b"\x00\xff"), ("trace", None)])
    broker.put(topic, (None, as_json({"id": "much"}), 2), (b"c", None, 3), (b"d", as_json({"id": 4}), 4))
    session.execute(
        f"""CREATE PROCESSOR letters_{mark} AS $$
        SET defaults.topic.autocreate = true;
        SET error.policy = dlq;
        SET dead.letter.queue = '{dead}';
        WITH all_of AS (SELECT STREAM * FROM {topic});
        INSERT INTO {copies} SELECT STREAM id, note FROM all_of;
        INSERT INTO {sums} SELECT TABLE SUM(id) AS s FROM all_of GROUP BY note;
        $$""".encode()
    )
    session.execute(f"START PROCESSOR letters_{mark}".encode())
    moments = [str(NOW_MS + second * 1000).encode() for second in range(10)]

    def letter(offset: int, reason: str, second: int) -> list[tuple[str, bytes]]:
        told = {"topic": topic, "partition": "0", "offset": str(offset), "timestamp": moments[second].decode()}
        return [(f"error.{name}", value.encode()) for name, value in (told | {"reason": reason}).items()]

    wanted = [
        (b"b", b"\xff no text", [("trace", b"\x00\xff"), ("trace", None),
                                  *letter(1, "the value is not valid UTF-8", 1)]),
        (None, b'{"id": "much"}', letter(2, 'column "id" is not of type BIGINT: much', 2)),
        (b"c", None, letter(3, "the value is null", 3)),
    ]  # fmt: skip
    assert headed(kafka_broker.bootstrap, dead, 3) == wanted
    assert broker.records(copies, 2) == [(b"a", {"id": 1, "note": "x"}), (b"d", {"id": 4, "note": None})]
    broker.rows(sums, {b"x": {"s": 1}})
    server.kill()
    server.start()
    broker.put(topic, (b"e", b"{", 5), (b"f", as_json({"id": 6, "note": "x"}), 6))
    wanted.append((b"e", b"{", letter(5, "the value is not one JSON object", 5)))
    assert headed(kafka_broker.bootstrap, dead, 4) == wanted
    broker.rows(sums, {b"x": {"s": 7}})
    rows = server.query(f"DESCRIBE PROCESSOR letters_{mark}")
    assert [row[0] for row in rows if row[1] == "DEAD LETTERS"] == [dead]
    # They are read as any stream, and what rejected them is among its headers. One without a value is rejected again.
    with server.connect() as connection:
        connection.execute("USE STORE k")
        reading = f"SELECT STREAM _meta.headers.`error.offset` AS at FROM {dead}"
        program = f"SET defaults.topic.autocreate = true; INSERT INTO {dead}-again {reading}"
        connection.execute(f"LENSES $${program}$$".encode())
    again = broker.records(f"{dead}-again", 3)
    assert [(key, value["at"]) for key, value in again] == [(b"b", "1"), (None, "2"), (b"e", "5")]
    kept = f"SELECT count(*) FROM mv_catalog.rejected_rows WHERE relation LIKE '%letters_{mark}%'"
    assert server.query(kept) == [(4,)]
    server.run(f"DROP PROCESSOR letters_{mark}")
    gone = "SELECT count(*) FROM mv_catalog.rejected_rows WHERE relation NOT LIKE 'postgres.%'"
    assert server.query(kept) + server.query(gone) == [(0,), (0,)]
