"""Spark's connector under our reader, on a real broker: exact starts and ends, and named failures."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from mvserver.demo.kafka_broker import KafkaBroker
from mvserver.errors import SqlError
from mvserver.sql.types import parse_type
from mvserver.streaming.spark.types import spark_type
from spark_sinks.base import Position, SinkRecords
from spark_sinks.jars import Connector, Jar, default_ivy_home
from spark_sinks.kafka import source
from spark_sinks.kafka.client import KafkaClient
from spark_sinks.kafka.jars import CONNECTOR
from spark_sinks.kafka.metadata import METADATA_TYPE
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.positions import offsets_of
from spark_sinks.kafka.sink import KafkaSink
from spark_sinks.kafka.source import KafkaReader
from tests.services.spark import session_of

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
MakeTopic = Callable[..., str]


@pytest.fixture(scope="module")
def kafka_spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraJavaOptions", "-Xss8m")
        .config("spark.driver.host", "127.0.0.1")
    )
    with session_of(builder.getOrCreate) as session:
        yield session


def options(broker: KafkaBroker) -> KafkaOptions:
    return KafkaOptions.from_properties({"uris": broker.bootstrap})


def produce(broker: KafkaBroker, topic: str, partition: int, first: int, last: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(first, last):
        producer.produce(topic, str(number), key=f"k{number % 7}", partition=partition, timestamp=1_700_000_000_000)
    assert producer.flush(20) == 0


class Follower:
    """A streaming query whose batches are collected with the range that the reader gives for each."""

    def __init__(self, spark: SparkSession, reader: KafkaReader, start: Position, checkpoint: Path, limit: int) -> None:
        self.values: list[str] = []
        self.ranges: list[tuple[Position, Position, int]] = []
        self.position = start
        frame = reader.stream(spark, start, records_per_trigger=limit).__enter__()

        def take(batch: DataFrame, batch_id: int) -> None:
            end = reader.batch_end(str(checkpoint), batch_id, self.position)
            rows = batch.selectExpr("CAST(value AS STRING) AS v", "partition", "offset").collect()
            begun, ended = offsets_of(self.position), offsets_of(end)
            for row in rows:
                assert begun.get(row["partition"], 0) <= row["offset"] < ended[row["partition"]]
            reader.confirm(end)
            self.values += [row["v"] for row in rows]
            self.ranges.append((self.position, end, len(rows)))
            self.position = end

        self.query: StreamingQuery = (
            frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()
        )

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 90
        while not condition():
            assert self.query.exception() is None, str(self.query.exception())
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def failure(self) -> BaseException:
        with pytest.raises(Exception) as caught:
            self.query.awaitTermination(90)
        return caught.value


def test_columns_and_bounded_range(
    kafka_spark: SparkSession, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    topic = kafka_topic(2)
    produce(kafka_broker, topic, 0, 0, 10)
    produce(kafka_broker, topic, 1, 100, 103)
    client = KafkaClient("k", options(kafka_broker))
    reader = KafkaReader("k", options(kafka_broker), topic)
    start, end = client.position(topic, "earliest"), client.position(topic, "latest")
    frame = reader.batch(kafka_spark, start, end)
    assert frame.schema["metadata"].dataType == spark_type(parse_type(METADATA_TYPE))
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("key", "binary"),
        ("value", "binary"),
        ("position", "string"),
        ("record_time", "timestamp"),
        ("metadata", frame.schema["metadata"].dataType.simpleString()),
        ("headers", "array<struct<key:string,value:binary>>"),
        ("partition", "int"),
        ("offset", "bigint"),
    ]
    found = {row["position"]: (bytes(row["key"]), bytes(row["value"])) for row in frame.collect()}
    expected = {f"0:{number}": (f"k{number % 7}".encode(), str(number).encode()) for number in range(10)}
    expected |= {f"1:{n - 100}": (f"k{n % 7}".encode(), str(n).encode()) for n in range(100, 103)}
    assert found == expected
    for row in frame.collect():
        partition, offset = map(int, row["position"].split(":"))
        assert tuple(row["metadata"]) == (topic, partition, offset, 1_700_000_000_000, "CreateTime", None)
    assert frame.selectExpr("CAST(record_time AS DOUBLE) AS t").distinct().collect()[0]["t"] == 1_700_000_000.0
    middle = reader.positions.limit(start, end, 6)
    assert reader.positions.distance(start, middle) + reader.positions.distance(middle, end) == 13
    assert reader.batch(kafka_spark, start, middle).count() == reader.positions.distance(start, middle)
    assert reader.batch(kafka_spark, middle, end).count() == reader.positions.distance(middle, end)
    assert reader.batch(kafka_spark, end, end).count() == 0


def test_headers_and_times_of_records(
    kafka_spark: SparkSession, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    topic = kafka_topic(1, message_timestamp_type="LogAppendTime")
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    headers: list[tuple[str, bytes | None]] = [("trace", b"one"), ("kind", "caf\u00e9".encode()), ("trace", b"two")]
    producer.produce(topic, "a", headers=headers, timestamp=1_700_000_000_000)
    producer.produce(topic, "b", headers=[("none", None), ("bytes", b"\xff\x00x"), ("", b"")])
    producer.produce(topic, "c")
    assert producer.flush(20) == 0
    client = KafkaClient("k", options(kafka_broker))
    reader = KafkaReader("k", options(kafka_broker), topic)
    frame = reader.batch(kafka_spark, client.position(topic, "earliest"), client.position(topic, "latest"))
    rows = {bytes(row["value"]): row for row in frame.collect()}
    assert {value: row["metadata"]["headers"] for value, row in rows.items()} == {
        b"a": {"trace": "two", "kind": "caf\u00e9"},
        b"b": {"none": None, "bytes": "\ufffd\ufffdx", "": ""},
        b"c": None,
    }
    assert {row["metadata"]["timestamp_type"] for row in rows.values()} == {"LogAppendTime"}
    appended = rows[b"a"]["metadata"]["timestamp"]
    assert abs(appended / 1000 - time.time()) < 600  # the broker's clock, not the producer's
    assert rows[b"a"]["record_time"].timestamp() * 1000 == pytest.approx(appended, abs=1)


def test_restarts_with_new_checkpoints_lose_and_double_nothing(
    kafka_spark: SparkSession, kafka_broker: KafkaBroker, kafka_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = kafka_topic(2)
    produce(kafka_broker, topic, 0, 0, 50)  # before the start: not read
    client = KafkaClient("k", options(kafka_broker))
    position = client.position(topic, "latest")
    reader = KafkaReader("k", options(kafka_broker), topic)
    values: list[str] = []
    sent = 1000
    for generation in range(3):
        follower = Follower(kafka_spark, reader, position, tmp_path / str(generation), 70)
        for _ in range(2):
            produce(kafka_broker, topic, 0, sent, sent + 100)
            produce(kafka_broker, topic, 1, sent + 100, sent + 200)
            sent += 200
            follower.until(lambda taken=follower, wanted=100: len(taken.values) >= wanted)  # type: ignore[misc]
        follower.query.stop()
        follower.query.awaitTermination(30)
        assert all(count <= 72 for _, _, count in follower.ranges)
        values += follower.values
        position = follower.position
    last = Follower(kafka_spark, reader, position, tmp_path / "last", 1000)
    last.until(lambda: reader.positions.reached(last.position, client.position(topic, "latest")))
    last.query.stop()
    values += last.values
    assert sorted(map(int, values)) == list(range(1000, sent))


def test_gaps_of_compaction_and_transactions(
    kafka_spark: SparkSession, kafka_broker: KafkaBroker, kafka_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = kafka_topic(1)
    client = KafkaClient("k", options(kafka_broker))
    reader = KafkaReader("k", options(kafka_broker), topic)
    start = client.position(topic, "earliest")
    sink = KafkaSink("k", options(kafka_broker), topic, uuid.uuid4().hex)
    follower = Follower(kafka_spark, reader, start, tmp_path / "c", 1000)
    for number in range(3):
        sink.write(SinkRecords([None], [str(number).encode()], [None]), start)
    aborted = Producer({"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": topic})
    aborted.init_transactions(10)
    aborted.begin_transaction()
    aborted.produce(topic, "aborted")
    aborted.flush()
    sink.write(SinkRecords([None], [b"3"], [None]), start)
    follower.until(lambda: len(follower.values) == 3)
    assert offsets_of(follower.position) == {0: 6}  # before the open transaction, though a committed one follows
    aborted.abort_transaction(10)
    follower.until(lambda: offsets_of(follower.position) == {0: 10})  # the last offset is a marker that no row shows
    follower.query.stop()
    sink.close()
    assert follower.values == ["0", "1", "2", "3"]
    assert reader.batch(kafka_spark, start, follower.position).count() == 4


def test_added_partition_joins_the_running_stream(
    kafka_spark: SparkSession, kafka_broker: KafkaBroker, kafka_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = kafka_topic(1)
    client = KafkaClient("k", options(kafka_broker))
    reader = KafkaReader("k", options(kafka_broker), topic)
    start = client.position(topic, "latest")
    follower = Follower(kafka_spark, reader, start, tmp_path / "c", 1000)
    produce(kafka_broker, topic, 0, 0, 3)
    follower.until(lambda: len(follower.values) == 3)
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(10)
    deadline = time.monotonic() + 10
    while len(client.position(topic, "latest")["partitions"]) < 2:
        assert time.monotonic() < deadline
    produce(kafka_broker, topic, 1, 3, 9)
    follower.until(lambda: len(follower.values) == 9)
    follower.query.stop()
    assert offsets_of(follower.position) == {0: 3, 1: 6}
    # a position from before the partition was added starts it at its beginning
    second = Follower(kafka_spark, reader, start, tmp_path / "d", 1000)
    second.until(lambda: len(second.values) == 9)
    second.query.stop()
    assert sorted(map(int, second.values)) == list(range(9))


def test_backlog_of_one_partition_is_spread_over_the_cores(
    kafka_spark: SparkSession, kafka_broker: KafkaBroker, kafka_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = kafka_topic(1)
    produce(kafka_broker, topic, 0, 0, 200)
    start = KafkaClient("k", options(kafka_broker)).position(topic, "earliest")
    reader = KafkaReader("k", options(kafka_broker), topic)
    tasks: list[tuple[int, int]] = []

    def take(batch: DataFrame, batch_id: int) -> None:
        tasks.append((batch.count(), batch.rdd.getNumPartitions()))

    query = (
        reader.stream(kafka_spark, start, records_per_trigger=150)
        .__enter__()
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert sum(count for count, _ in tasks) == 200
    assert tasks == [(150, 2), (50, 1)] or all(parts == (2 if count > 75 else 1) for count, parts in tasks)


def test_lost_range_is_named_at_the_start(
    kafka_spark: SparkSession, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    topic = kafka_topic(1)
    client = KafkaClient("k", options(kafka_broker))
    start = client.position(topic, "earliest")
    produce(kafka_broker, topic, 0, 0, 100)
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 40)]).values():
        future.result(10)
    reader = KafkaReader("k", options(kafka_broker), topic)
    for read in (
        lambda: reader.stream(kafka_spark, start, records_per_trigger=10).__enter__(),
        lambda: reader.batch(kafka_spark, start, client.position(topic, "latest")),
    ):
        with pytest.raises(SqlError) as caught:
            read()
        assert caught.value.sqlstate == "55000"
        assert caught.value.message == f'offsets 0 to 39 are gone from partition 0 of topic "{topic}" in store "k"'


def test_range_lost_while_running_fails_by_name(
    kafka_spark: SparkSession, kafka_broker: KafkaBroker, kafka_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = kafka_topic(1)
    client = KafkaClient("k", options(kafka_broker))
    reader = KafkaReader("k", options(kafka_broker), topic)
    start = client.position(topic, "earliest")
    produce(kafka_broker, topic, 0, 0, 100)
    frame = reader.stream(kafka_spark, start, records_per_trigger=1000).__enter__()
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 40)]).values():
        future.result(10)
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(Exception) as caught:
        query.awaitTermination(90)
    explained = reader.health.explain_failure(caught.value, start)
    assert isinstance(explained, SqlError)
    assert explained.message == f'offsets 0 to 39 are gone from partition 0 of topic "{topic}" in store "k"'


def test_topic_deleted_while_running_fails_by_name(
    kafka_spark: SparkSession, kafka_broker: KafkaBroker, kafka_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = kafka_topic(1)
    client = KafkaClient("k", options(kafka_broker))
    reader = KafkaReader("k", options(kafka_broker), topic)
    produce(kafka_broker, topic, 0, 0, 10)
    follower = Follower(kafka_spark, reader, client.position(topic, "earliest"), tmp_path / "c", 1000)
    follower.until(lambda: len(follower.values) == 10)
    client.drop_entity(topic, {})
    explained = reader.health.explain_failure(follower.failure(), follower.position)
    assert isinstance(explained, SqlError)
    assert (explained.sqlstate, explained.message) == ("42704", f'topic "{topic}" does not exist in store "k"')


def test_errors_that_are_not_the_sources(kafka_spark: SparkSession, kafka_broker: KafkaBroker) -> None:
    reader = KafkaReader("k", options(kafka_broker), "t")
    own = SqlError("22012", "division by zero")
    other = ValueError("something else")
    nowhere = {"topic_id": "x", "partitions": {"0": 0}}
    assert reader.health.explain_failure(own, nowhere) is own
    assert reader.health.explain_failure(other, nowhere) is other
    missing = reader.health.explain_failure(
        Exception("[KAFKA_DATA_SOURCE_NOT_ENABLED] Failed ... SQLSTATE: 42K02"), nowhere
    )
    assert isinstance(missing, SqlError)
    assert missing.sqlstate == "58000"


def test_jars_are_added_once(kafka_spark: SparkSession) -> None:
    CONNECTOR.add_to(kafka_spark, None)
    before = kafka_spark.sql("LIST JARS").count()
    started = time.monotonic()
    CONNECTOR.add_to(kafka_spark, None)
    assert time.monotonic() - started < 0.1
    assert kafka_spark.sql("LIST JARS").count() == before


def test_jars_from_a_folder(kafka_spark: SparkSession, tmp_path: Path) -> None:
    CONNECTOR.add_to(kafka_spark, None)  # so that they are in the cache
    for jar in CONNECTOR.jars:
        cached = default_ivy_home() / "cache" / jar.group / jar.artifact / "jars" / jar.file_name
        (tmp_path / jar.file_name).symlink_to(cached)
    session = kafka_spark.newSession()
    CONNECTOR.add_to(session, tmp_path)
    added = " ".join(str(row[0]) for row in session.sql("LIST JARS").collect())
    assert all(jar.file_name in added for jar in CONNECTOR.jars)
    assert CONNECTOR.missing(tmp_path, ivy_home=tmp_path) == ()


def test_jars_that_were_fetched_before_are_not_looked_up_again(
    kafka_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    CONNECTOR.add_to(kafka_spark, None)  # so that they are in the cache
    session, asked = kafka_spark.newSession(), []
    monkeypatch.setattr(SparkSession, "sql", lambda self, text: asked.append(text))
    CONNECTOR.add_to(session, None)
    cache = default_ivy_home() / "cache"
    assert asked == [f"ADD JAR '{jar.ivy_path(default_ivy_home())}'" for jar in CONNECTOR.jars]
    assert all(str(cache) in text for text in asked)


def test_jars_that_cannot_be_had_are_named(kafka_spark: SparkSession, tmp_path: Path) -> None:
    unknown = Connector(CONNECTOR.name, (Jar("no group", "no-artifact", "1"),))
    with pytest.raises(SqlError) as caught:
        unknown.add_to(kafka_spark.newSession(), tmp_path)
    assert (caught.value.sqlstate, caught.value.message) == ("58000", "the Kafka connector of Spark is not available")
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("Missing: no-artifact-1.jar. The attempt to fetch them said: ")
    assert caught.value.hint is not None
    assert str(tmp_path) in caught.value.hint


def test_a_log_in_that_needs_the_jars_from_the_start_is_told_so(
    kafka_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that was given them while it ran has none of their files on the class path."""
    monkeypatch.setattr(source, "CONNECTOR", replace(CONNECTOR, marks=("of/a/jar/that/came/later.class",)))
    tokens = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "x",
    }
    reader = KafkaReader("k", KafkaOptions.from_properties({"uris": "127.0.0.1:1", **tokens}), "clicks")
    position = {"topic_id": "t", "partitions": {"0": 0}}
    with pytest.raises(SqlError) as caught:
        reader.batch(kafka_spark, position, position)
    assert (caught.value.sqlstate, caught.value.hint) == ("58000", "Restart the server. The jars are there now.")
