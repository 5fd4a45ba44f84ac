"""Topics and streams whose records have no id of a schema, by descriptors from files: one server, end to end."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from confluent_kafka import Consumer, Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server
from tests.services.kafka import create_topic
from tests.services.kinesis import KinesisEmulator, Stream
from tests.streaming.avro_records import of_fields, record
from tests.streaming.protobuf_records import message

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.kinesis]

HEADER = 5
PROTO = """syntax = "proto3";
message Other { string unused = 1; }
message Visit { int64 userId = 1; Where where = 2; message Where { string url = 1; } }
message Key { int64 userId = 1; }
message Told { int64 userId = 1; string _mv_id = 2; }
message Odd { int64 userId = 1; int64 _mv_id = 2; }
"""
USER = of_fields(("id", "long"), ("name", ["null", "string"]), name="User")


def visit(user: int, url: str) -> bytes:
    return message(PROTO, "Visit", {"userId": user, "where": {"url": url}})[HEADER + 1 :]


def send(broker: KafkaBroker, topic: str, *records: tuple[bytes | None, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for key, value in records:
        producer.produce(topic, key=key, value=value)
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def server(kafka_broker: KafkaBroker, kinesis: KinesisEmulator) -> Iterator[LiveServer]:
    with temporary_server() as live:
        live.start()
        folder = live.data / "store-config"
        folder.mkdir(exist_ok=True)
        (folder / "visits.proto").write_text(PROTO)
        (folder / "user.avsc").write_text(json.dumps(USER))
        live.run(
            f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
            f"CREATE STORE w WITH ({kinesis.properties})",
            "CREATE DESCRIPTOR_SOURCE pb WITH ('file' = '@visits.proto')",
            "CREATE DESCRIPTOR_SOURCE users WITH ('file' = 'user.avsc')",
        )
        yield live


def refused(server: LiveServer, statement: str) -> tuple[str | None, str | None]:
    with pytest.raises(psycopg.Error) as caught:
        server.run(statement)
    return caught.value.sqlstate, caught.value.diag.message_primary


def topic_of(broker: KafkaBroker) -> str:
    return create_topic(broker, f"t_{uuid.uuid4().hex[:10]}")


def rows(server: LiveServer, select: str) -> dict[Any, Any]:
    return {row[:1]: row[1:] for row in server.query(select)}


def test_protobuf_from_a_topic(server: LiveServer, kafka_broker: KafkaBroker) -> None:
    """Columns are inferred; a record that is not of the message is rejected, and a restart changes nothing."""
    topic = topic_of(kafka_broker)
    server.run(
        f"CREATE STREAM visits WITH ('store' = k, 'topic' = '{topic}', 'value.format' = protobuf, "
        "'value.descriptor.name' = pb.\"Visit\")",
        'CREATE MATERIALIZED VIEW per_url AS SELECT "where"->url AS url, count(*) AS n, sum(userid) AS users '
        'FROM visits GROUP BY "where"->url',
    )
    columns = [row[1:3] for row in server.query("DESCRIBE RELATION COLUMNS visits")]
    assert columns == [("userid", "BIGINT"), ("where", 'STRUCT<"url" VARCHAR>')]
    send(kafka_broker, topic, (None, visit(7, "./a")), (None, b"\xff\xff"), (None, visit(300, "./b")), (None, b""))
    expected = {("./a",): (1, 7), ("./b",): (1, 300), (None,): (1, 0)}
    server.wait_for(lambda: rows(server, "SELECT url, n, users FROM per_url") == expected, 120, "not counted")
    rejected = server.query("SELECT position, reason FROM mv_catalog.rejected_rows WHERE relation LIKE '%visits'")
    assert [position for position, _ in rejected] == ["0:1"]
    assert rejected[0][1].startswith("the value is not of the descriptor: ")
    assert server.stop() == 0
    server.start()
    send(kafka_broker, topic, (None, visit(1, "./a")))
    expected["./a",] = (2, 8)
    server.wait_for(lambda: rows(server, "SELECT url, n, users FROM per_url") == expected, 120, "not counted")
    assert refused(server, "DROP DESCRIPTOR_SOURCE pb") == (
        "2BP01",
        "cannot drop descriptor source pb because other objects depend on it",
    )
    server.run("DROP STREAM visits CASCADE")


def test_queries_write_by_descriptors(server: LiveServer, kafka_broker: KafkaBroker) -> None:
    """A stream, an INSERT INTO it, and a changelog with keys by a descriptor, read back as what they are."""
    topic, copies, totals = (topic_of(kafka_broker) for _ in range(3))
    pb = "'value.format' = protobuf, 'value.descriptor.name' = pb.\"Visit\""
    server.run(
        'CREATE STREAM given (userid BIGINT, "where" STRUCT<url VARCHAR>) '
        f"WITH ('store' = k, 'topic' = '{topic}', 'value.format' = json)",
        f"CREATE STREAM copied WITH ('store' = k, 'topic' = '{copies}', {pb}) AS "
        "SELECT userid, \"where\" FROM given WITH ('starting.position' = 'earliest')",
        'CREATE MATERIALIZED VIEW back AS SELECT userid, "where"->url AS url FROM copied '
        "WITH ('starting.position' = 'earliest')",
        f"CREATE CHANGELOG totals WITH ('store' = k, 'topic' = '{totals}', 'value.format' = avro, "
        "'value.descriptor.name' = users, 'key.format' = protobuf, 'key.descriptor.name' = pb.\"Key\", "
        "'value.columns.exclude' = 'userid') AS SELECT userid, count(*) AS id, max(\"where\"->url) AS name FROM given "
        "WITH ('starting.position' = 'earliest') GROUP BY userid",
        "CREATE MATERIALIZED VIEW totals_back AS SELECT userid, id, name FROM totals",
    )
    send(
        kafka_broker,
        topic,
        *((None, json.dumps({"userid": n % 2, "where": {"url": f"./{n}"}}).encode()) for n in range(5)),
    )
    server.wait_equal("SELECT url, userid FROM back", {(f"./{n}",): n % 2 for n in range(5)})
    server.wait_equal("SELECT userid, id FROM totals_back", {(0,): 3, (1,): 2})
    assert server.query("SELECT name FROM totals_back ORDER BY userid") == [("./4",), ("./3",)]
    values = sorted(value for _, value in raw(kafka_broker, copies, 5))
    assert values == sorted(visit(n % 2, f"./{n}") for n in range(5))
    assert {key for key, _ in raw(kafka_broker, totals, None)} == {b"", b"\x08\x01"}  # a field's default is left out
    server.run(
        "INSERT INTO copied SELECT userid + 10 AS userid, \"where\" FROM given WITH ('starting.position' = 'earliest')",
    )
    server.wait_equal("SELECT userid, count(*) AS n FROM back GROUP BY userid", {(0,): 3, (1,): 2, (10,): 3, (11,): 2})
    missing = f"CREATE STREAM wrong WITH ('store' = k, 'topic' = '{copies}', {pb}) AS SELECT "
    assert refused(server, missing + 'userid, "where"->url AS url FROM given') == (
        "42703",
        'descriptor "pb.Visit" has no field "url"',
    )
    assert refused(server, missing + '"where"->url AS userid FROM given') == (
        "42804",
        'column "userid" of type VARCHAR does not fit its field in descriptor "pb.Visit"',
    )
    missing = missing.replace(pb, "'value.format' = avro, 'value.descriptor.name' = users")
    assert refused(server, missing + '"where"->url AS name FROM given') == (
        "42703",
        'no column is written to field "id" of descriptor "users.User", which each record must have',
    )
    server.run("DROP STREAM copied CASCADE", "DROP CHANGELOG totals CASCADE", "DROP STREAM given CASCADE")


def raw(broker: KafkaBroker, topic: str, count: int | None) -> list[tuple[bytes | None, bytes | None]]:
    """The first so many records of a topic, or all that are there."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    found: list[tuple[bytes | None, bytes | None]] = []
    deadline = time.monotonic() + 60
    at_end = False
    while (not at_end if count is None else len(found) < count) and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append((message.key(), message.value()))
        elif message is not None:
            at_end = True
    consumer.close()
    return found


def test_avro_from_kinesis(server: LiveServer, kinesis_stream: Callable[..., Stream]) -> None:
    stream = kinesis_stream()
    stream.put([("a", record(USER, {"id": number, "name": name})[HEADER:]) for number, name in ((1, "ann"), (2, None))])
    server.run(
        f"CREATE STREAM people WITH ('store' = w, 'topic' = '{stream.name}', 'value.format' = avro, "
        "'value.descriptor.name' = users)",
        "CREATE MATERIALIZED VIEW names AS SELECT id, name FROM people",
    )
    server.wait_equal("SELECT id, name FROM names", {(1,): "ann", (2,): None})
    stream.put([("a", record(USER, {"id": 3, "name": "cid"})[HEADER:] + b"more")])
    server.wait_for(
        lambda: (
            server.query("SELECT reason FROM mv_catalog.rejected_rows WHERE relation LIKE '%people'")
            == [("the value has more bytes than the descriptor says",)]
        ),
        120,
        "not rejected",
    )
    server.run("DROP STREAM people CASCADE")


def test_queries_write_by_descriptors_to_kinesis(
    server: LiveServer, kinesis: KinesisEmulator, kinesis_stream: Callable[..., Stream]
) -> None:
    """A message with a field for it has the record's identity; where there is none, it is said."""
    given = kinesis_stream(2)
    told, bare = (Stream(kinesis.client(), f"{name}-{given.name}") for name in ("told", "bare"))
    by_pb = "'value.format' = protobuf, 'value.descriptor.name' = pb.\"Told\""
    by_avro = "'value.format' = avro, 'value.descriptor.name' = users"
    first = "WITH ('starting.position' = 'earliest')"
    server.run(
        f"CREATE STREAM given (userid BIGINT, name VARCHAR) WITH ('store' = w, 'topic' = '{given.name}', "
        "'value.format' = json)",
    )
    assert noticed(
        server,
        f"CREATE STREAM told WITH ('store' = w, 'topic' = '{told.name}', {by_pb}) AS SELECT userid FROM given {first}",
    ) == ["records are written at least once"]
    assert noticed(
        server,
        f"CREATE STREAM bare WITH ('store' = w, 'topic' = '{bare.name}', {by_avro}) AS "
        f"SELECT userid AS id, name FROM given {first}",
    ) == ['records of stream "bare" do not tell which are written again', "records are written at least once"]
    given.put([(f"u{n}", json.dumps({"userid": n, "name": f"n{n}"}).encode()) for n in range(20)])
    server.run(
        f"CREATE STREAM told_back WITH ('store' = w, 'topic' = '{told.name}', {by_pb})",
        "CREATE MATERIALIZED VIEW identities AS SELECT _mv_id AS identity, count(*) AS records FROM told_back "
        "GROUP BY _mv_id",
        f"CREATE MATERIALIZED VIEW told_users AS SELECT userid, count(*) AS n FROM told_back {first} GROUP BY userid",
        f"CREATE MATERIALIZED VIEW bare_users AS SELECT id, name FROM bare {first}",
    )
    server.wait_equal("SELECT userid, n FROM told_users", dict.fromkeys(((n,) for n in range(20)), 1))
    server.wait_equal("SELECT id, name FROM bare_users", {(n,): f"n{n}" for n in range(20)})
    found = server.query("SELECT identity, records FROM identities")
    ((query,),) = server.query("SELECT id FROM mv_catalog.queries WHERE sink = 'postgres.public.told'")
    assert len(found) == 20
    assert {records for _, records in found} == {1}
    assert all(identity.startswith(f"{query}/shardId-") for identity, _ in found)
    assert sorted(key for key, _ in told.keyed_values()) == sorted(f"u{n}" for n in range(20))
    server.run("INSERT INTO bare SELECT userid + 100 AS id, name FROM given " + first)
    server.wait_equal("SELECT count(*) AS n, max(id) AS most FROM bare_users", {(40,): 119})
    for name in ("given", "told", "told_back", "bare"):
        server.run(f"DROP STREAM {name} CASCADE")


def noticed(server: LiveServer, statement: str) -> list[str]:
    with server.connect() as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        connection.execute(statement.encode())
    return [notice for notice in notices if not notice.startswith("query ")]


def test_a_changelog_with_a_described_key(server: LiveServer, kafka_broker: KafkaBroker) -> None:
    topic = topic_of(kafka_broker)
    server.run(
        f"CREATE CHANGELOG last_visits WITH ('store' = k, 'topic' = '{topic}', 'value.format' = protobuf, "
        "'value.descriptor.name' = pb.\"Visit\", 'key.format' = protobuf, 'key.descriptor.name' = 'pb.Key')",
        'CREATE MATERIALIZED VIEW last_urls AS SELECT userid, "where"->url AS url FROM last_visits',
    )
    keys = [message(PROTO, "Key", {"userId": number})[HEADER + 1 :] for number in (1, 2)]
    send(kafka_broker, topic, (keys[0], visit(1, "./a")), (keys[1], visit(2, "./b")), (keys[0], visit(1, "./c")))
    server.wait_equal("SELECT userid, url FROM last_urls", {(1,): "./c", (2,): "./b"})
    send(kafka_broker, topic, (keys[0], None))
    server.wait_equal("SELECT userid, url FROM last_urls", {(2,): "./b"})
    server.run("DROP CHANGELOG last_visits CASCADE")


def test_what_is_listed_and_refused(server: LiveServer, kafka_broker: KafkaBroker) -> None:
    assert [row[:4] for row in server.query("LIST DESCRIPTOR_SOURCES")] == [
        ("pb", "PROTOBUF", "visits.proto", "postgres"),
        ("users", "AVRO", "user.avsc", "postgres"),
    ]
    assert server.query("LIST DESCRIPTORS") == [
        ("Other", "pb", "PROTOBUF", "postgres"),
        ("Visit", "pb", "PROTOBUF", "postgres"),
        ("Visit.Where", "pb", "PROTOBUF", "postgres"),
        ("Key", "pb", "PROTOBUF", "postgres"),
        ("Told", "pb", "PROTOBUF", "postgres"),
        ("Odd", "pb", "PROTOBUF", "postgres"),
        ("User", "users", "AVRO", "postgres"),
    ]
    topic = topic_of(kafka_broker)
    place = f"'store' = k, 'topic' = '{topic}'"
    created = f"CREATE STREAM odd WITH ({place}, 'value.format' = {{}}, 'value.descriptor.name' = {{}})"
    assert refused(server, created.format("protobuf", "nope")) == ("42704", 'descriptor source "nope" does not exist')
    assert refused(server, created.format("protobuf", "pb")) == (
        "42704",
        'descriptor source "pb" has several descriptors',
    )
    assert refused(server, created.format("protobuf", 'pb."visit"'))[0] == "42704"
    assert refused(server, created.format("avro", 'pb."Visit"')) == (
        "42804",
        'descriptor source "pb" has schemas of kind PROTOBUF',
    )
    assert refused(server, "CREATE DESCRIPTOR_SOURCE x WITH ('file' = '../data.log')")[0] == "42501"
    assert refused(server, "CREATE DESCRIPTOR_SOURCE x WITH ('file' = '/etc/passwd')")[0] == "42501"
    assert refused(server, "CREATE DESCRIPTOR_SOURCE x WITH ('file' = 'gone.proto')")[0] == "F0000"
    assert refused(server, "CREATE DESCRIPTOR_SOURCE pb WITH ('file' = 'visits.proto')")[0] == "42710"
    described = "'value.format' = protobuf, 'value.descriptor.name' = pb.\"Visit\""
    server.run(f"CREATE STREAM visits (userid BIGINT) WITH ({place}, {described})")
    written = "CREATE STREAM again WITH ('store' = w, 'topic.shards' = 1, {}) AS SELECT userid FROM visits"
    assert refused(server, written.format("'value.format' = protobuf")) == (
        "0A000",
        'value.format "protobuf" is not supported in a store of type KINESIS that a query writes to',
    )
    assert refused(server, written.format(described.replace("Visit", "Odd"))) == (
        "42804",
        'column "_mv_id" of type VARCHAR does not fit its field in descriptor "pb.Odd"',
    )
    server.run("DROP STREAM visits")


def test_privileges(server: LiveServer, kafka_broker: KafkaBroker) -> None:
    """A role needs USAGE to read by a source, CREATESTORE to make one, and owns what it drops."""
    topic = topic_of(kafka_broker)
    created = (
        f"CREATE STREAM theirs WITH ('store' = k, 'topic' = '{topic}', 'value.format' = avro, "
        "'value.descriptor.name' = users)"
    )
    made = "CREATE DESCRIPTOR_SOURCE x WITH ('file' = 'user.avsc')"
    server.run("CREATE ROLE ben LOGIN", "GRANT USAGE ON STORE k TO ben", "GRANT CREATE ON SCHEMA public TO ben")
    with server.connect(user="ben") as connection:
        for statement in (created, "DROP DESCRIPTOR_SOURCE users", made):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
        assert connection.execute("LIST DESCRIPTORS").fetchall() == []
        server.run("GRANT USAGE ON DESCRIPTOR_SOURCE users TO ben")
        connection.execute(created.encode())
        assert connection.execute("LIST DESCRIPTORS").fetchall() == [("User", "users", "AVRO", "postgres")]
        connection.execute("DROP STREAM theirs")
    server.run("REVOKE USAGE ON DESCRIPTOR_SOURCE users FROM ben", "DROP OWNED BY ben", "DROP ROLE ben")
    server.run(
        "CREATE DESCRIPTOR_SOURCE spare WITH ('file' = 'user.avsc')",
        "DROP DESCRIPTOR_SOURCE spare",
        "DROP DESCRIPTOR_SOURCE IF EXISTS spare",
    )
