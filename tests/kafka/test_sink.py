"""Output exactly once, on a real broker: killed, fenced, refused and cut-off writers."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from mvserver.demo.kafka_broker import KafkaBroker
from mvserver.errors import SqlError
from spark_sinks.base import Refusal, Refusals, RefusedLetterError, SinkRecords
from spark_sinks.kafka.client import KafkaClient
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.positions import make_position
from spark_sinks.kafka.sink import KafkaSink
from tests.services.kafka import create_topic

pytestmark = pytest.mark.kafka
MakeTopic = Callable[..., str]


def options(broker: KafkaBroker) -> KafkaOptions:
    return KafkaOptions.from_properties({"uris": broker.bootstrap})


def sink_on(broker: KafkaBroker, topic: str, query: str, **more: Any) -> KafkaSink:
    return KafkaSink("k", options(broker), topic, query, **more)


def at(offset: int) -> dict[str, object]:
    return dict(make_position("source", {0: offset}))


def committed(broker: KafkaBroker, topic: str, count: int) -> list[Message]:
    """All committed records: ``count`` of them and then none. Markers may follow a commit's answer."""
    partitions = KafkaClient("k", options(broker)).position(topic, "earliest")["partitions"]
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "test", "isolation.level": "read_committed",
         "enable.partition.eof": True, "log_level": 0, "max.partition.fetch.bytes": 20_000_000}
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, int(partition), 0) for partition in partitions])
    found: list[Message] = []
    ended: set[int | None] = set()
    deadline = time.monotonic() + 20
    while len(ended) < len(partitions) or len(found) < count:
        assert time.monotonic() < deadline, found
        for message in consumer.consume(1000, 0.2):
            error = message.error()
            if error is None:
                ended.discard(message.partition())
                found.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF
                ended.add(message.partition())
    consumer.close()
    return found


def committed_values(broker: KafkaBroker, topic: str, count: int) -> list[bytes]:
    values: list[bytes] = []
    for message in committed(broker, topic, count):
        value = message.value()
        assert isinstance(value, bytes)
        values.append(value)
    return values


def numbered(first: int, last: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, last)]


def write(sink: KafkaSink, first: int, last: int) -> None:
    values = numbered(first, last)
    sink.write(SinkRecords([None] * len(values), values, [None] * len(values)), at(last))


def test_records_and_position_are_committed_together(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic, query = kafka_topic(2), uuid.uuid4().hex
    sink = sink_on(kafka_broker, topic, query)
    assert sink.committed_position() is None
    sink.write(SinkRecords([b"a", None, b"c"], [b"1", b"2", None], [1_700_000_000_123, None, -5]), at(3))
    assert sink.committed_position() == at(3)
    write(sink, 3, 5)
    sink.close()
    again = sink_on(kafka_broker, topic, query)
    assert again.committed_position(expected=True) == at(5)
    again.renew(at(5))
    assert again.committed_position() == at(5)
    again.close()
    client = KafkaClient("k", options(kafka_broker))
    deadline = time.monotonic() + 15
    records = list(
        client.print_entity(topic, from_beginning=True, limit=5, stopped=lambda: time.monotonic() > deadline)
    )
    assert sorted((record.key or b"", record.value or b"") for record in records) == [
        (b"", b"2"),
        (b"", b"3"),
        (b"", b"4"),
        (b"a", b"1"),
        (b"c", b""),
    ]
    times = {record.key: record.timestamp_ms for record in records if record.key}
    assert times[b"a"] == 1_700_000_000_123
    assert times[b"c"] is not None
    assert times[b"c"] > 1_700_000_000_123


def test_equal_keys_go_where_java_puts_them(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic(4)
    sink = sink_on(kafka_broker, topic, uuid.uuid4().hex)
    keys = [b"21", b"foobar", b"a-little-bit-long-string"]
    sink.write(SinkRecords(keys, keys, [None] * 3), at(3))
    sink.close()
    client = KafkaClient("k", options(kafka_broker))
    found = client.print_entity(topic, from_beginning=True, limit=3, stopped=lambda: False)
    partitions = {record.key: int(record.position.split(":")[0]) for record in found}
    # murmur2 of these keys (-973932308, -790332482, -985981536, from Kafka's own unit test) without the sign, modulo 4
    assert partitions == {
        b"21": (-973932308 & 0x7FFFFFFF) % 4,
        b"foobar": (-790332482 & 0x7FFFFFFF) % 4,
        b"a-little-bit-long-string": (-985981536 & 0x7FFFFFFF) % 4,
    }


def test_queries_do_not_see_each_others_positions(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic()
    first, second = (sink_on(kafka_broker, topic, uuid.uuid4().hex) for _ in range(2))
    write(first, 0, 2)
    assert second.committed_position() is None
    with pytest.raises(SqlError) as caught:
        second.committed_position(expected=True)
    assert caught.value.sqlstate == "55000"
    write(second, 2, 3)
    assert (first.committed_position(), second.committed_position()) == (at(2), at(3))
    first.close()
    second.close()


def test_long_position_is_spread_over_partitions(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic, query = kafka_topic(3), uuid.uuid4().hex
    long = make_position("source", {partition: 10**9 + partition * 7919**2 for partition in range(900)})
    sink = sink_on(kafka_broker, topic, query)
    sink.write(SinkRecords([None], [b"x"], [None]), long)
    assert sink.committed_position() == long
    sink.write(SinkRecords([None], [b"y"], [None]), at(1))
    assert sink.committed_position() == at(1)
    sink.close()
    narrow = kafka_topic(1)
    refusing = sink_on(kafka_broker, narrow, query)
    with pytest.raises(SqlError) as caught:
        refusing.write(SinkRecords([None], [b"x"], [None]), long)
    assert caught.value.sqlstate == "54000"
    refusing.close()
    assert committed_values(kafka_broker, narrow, 0) == []


CHILD = textwrap.dedent("""
    import sys, time
    from spark_sinks.base import SinkRecords
    from spark_sinks.kafka.options import KafkaOptions
    from spark_sinks.kafka.sink import KafkaSink

    bootstrap, topic, query, step = sys.argv[1:]

    def hang(*_):
        print("reached", flush=True)
        time.sleep(600)

    class Hanging(KafkaSink):
        def _carry(self, producer, notes):
            if step == "after produce":
                producer.flush(10)
                hang()
            super()._carry(producer, notes)

        def _commit(self, producer):
            producer.flush(10)
            if step == "before commit":
                hang()
            super()._commit(producer)
            hang()

    sink = Hanging("k", KafkaOptions.from_properties({"uris": bootstrap}), topic, query)
    done = (sink.committed_position() or {"partitions": {"0": 0}})["partitions"]["0"]
    values = [str(number).encode() for number in range(done, done + 100)]
    records = SinkRecords([None] * 100, values, [None] * 100)
    sink.write(records, {"topic_id": "source", "partitions": {"0": done + 100}})
""")


def test_killed_at_each_step(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic, query = kafka_topic(2), uuid.uuid4().hex
    expected = 0
    for step in ("after produce", "before commit", "after commit", "before commit", "after commit"):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, kafka_broker.bootstrap, topic, query, step], stdout=subprocess.PIPE
        )
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"reached\n"
        finally:
            child.kill()
            child.wait()
        expected += 100 if step == "after commit" else 0
        reader = sink_on(kafka_broker, topic, query)  # ends what the dead one left open
        assert reader.committed_position() == (at(expected) if expected else None)
        reader.close()
        assert sorted(map(int, committed_values(kafka_broker, topic, expected))) == list(range(expected))
    sink = sink_on(kafka_broker, topic, query)
    write(sink, expected, expected + 10)
    sink.close()
    assert sorted(map(int, committed_values(kafka_broker, topic, expected + 10))) == list(range(expected + 10))


def test_zombie_is_fenced(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic, query = kafka_topic(), uuid.uuid4().hex
    zombie = sink_on(kafka_broker, topic, query)
    write(zombie, 0, 2)
    heir = sink_on(kafka_broker, topic, query)
    assert heir.committed_position() == at(2)
    for _ in range(2):  # and it stays so
        with pytest.raises(SqlError) as caught:
            write(zombie, 2, 4)
        assert caught.value.sqlstate == "55006"
        assert caught.value.message == f'another writer has taken over the output to topic "{topic}" in store "k"'
    write(heir, 2, 3)
    assert heir.committed_position() == at(3)
    zombie.close()
    heir.close()
    assert committed_values(kafka_broker, topic, 3) == numbered(0, 3)


def test_writer_that_comes_back_late_writes_nothing(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic, query = kafka_topic(1, max_message_bytes="10000"), uuid.uuid4().hex
    late = sink_on(kafka_broker, topic, query)
    write(late, 0, 2)
    with pytest.raises(SqlError):  # an error that ends its producer
        late.write(SinkRecords([None], [random.Random(1).randbytes(50_000)], [None]), at(3))
    heir = sink_on(kafka_broker, topic, query)
    assert heir.committed_position() == at(2)
    write(heir, 2, 4)
    with pytest.raises(SqlError) as caught:
        write(late, 2, 4)
    assert caught.value.sqlstate == "55006"
    late.close()
    heir.close()
    assert committed_values(kafka_broker, topic, 4) == numbered(0, 4)


def test_refused_record_aborts_and_the_sink_goes_on(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic(1, max_message_bytes="10000")
    sink = sink_on(kafka_broker, topic, uuid.uuid4().hex)
    write(sink, 0, 2)
    for size in (200_000, 20_000_000):  # refused by the broker, refused by the client
        with pytest.raises(SqlError) as caught:
            sink.write(SinkRecords([None, None], [b"2", random.Random(size).randbytes(size)], [None, None]), at(9))
        assert caught.value.sqlstate == "54000"
        assert sink.committed_position() == at(2)
    write(sink, 2, 4)
    assert sink.committed_position() == at(4)
    sink.close()
    assert committed_values(kafka_broker, topic, 4) == numbered(0, 4)


def test_missing_topic_is_not_made(kafka_broker: KafkaBroker) -> None:
    sink = sink_on(kafka_broker, "absent-sink", "q")
    with pytest.raises(SqlError) as caught:
        sink.open()
    assert (caught.value.sqlstate, caught.value.message) == (
        "42704",
        'entity "absent-sink" does not exist in store "k"',
    )
    assert not KafkaClient("k", options(kafka_broker)).entity_exists("absent-sink")


@pytest.mark.night
def test_cluster_away_then_back(own_kafka_broker: KafkaBroker) -> None:
    topic, query = create_topic(own_kafka_broker, "t"), uuid.uuid4().hex
    sink = sink_on(own_kafka_broker, topic, query, timeout_s=2.0)
    write(sink, 0, 2)
    assert committed_values(own_kafka_broker, topic, 2) == numbered(0, 2)
    own_kafka_broker.kill()
    with pytest.raises(SqlError) as caught:
        write(sink, 2, 4)
    assert caught.value.sqlstate == "08006"
    unreached = sink_on(own_kafka_broker, topic, query, timeout_s=1.0)
    with pytest.raises(SqlError) as caught:
        unreached.open()
    assert (caught.value.sqlstate, caught.value.message) == ("08006", 'could not connect to store "k"')
    sink.close()
    own_kafka_broker.start()
    again = sink_on(own_kafka_broker, topic, query)
    assert again.committed_position(expected=True) == at(2)
    write(again, 2, 4)
    again.close()
    assert committed_values(own_kafka_broker, topic, 4) == numbered(0, 4)


def test_many_records_are_more_than_the_queue_holds(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic(4)
    sink = sink_on(kafka_broker, topic, uuid.uuid4().hex)
    write(sink, 0, 150_000)
    sink.close()
    assert sorted(map(int, committed_values(kafka_broker, topic, 150_000))) == list(range(150_000))


def test_position_in_a_transaction_that_does_not_end(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic, query = kafka_topic(), uuid.uuid4().hex
    sink = sink_on(kafka_broker, topic, query, timeout_s=1.0)
    write(sink, 0, 2)
    other = Producer({"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": uuid.uuid4().hex})
    group = Consumer({"bootstrap.servers": kafka_broker.bootstrap, "group.id": f"mvserver-{query}"})
    other.init_transactions(10)
    other.begin_transaction()
    other.send_offsets_to_transaction([TopicPartition(topic, 0, 0, "x")], group.consumer_group_metadata(), 10)
    with pytest.raises(SqlError) as caught:
        sink.committed_position()
    assert caught.value.sqlstate == "08006"
    assert caught.value.detail == "An earlier transaction of this query does not end."
    other.abort_transaction(10)
    assert sink.committed_position() == at(2)
    write(sink, 2, 3)
    sink.close()
    group.close()
    assert committed_values(kafka_broker, topic, 3) == numbered(0, 3)


@pytest.mark.night
def test_broker_killed_right_after_commits(own_kafka_broker: KafkaBroker) -> None:
    """A broker that dies before it has written a transaction's markers may drop them when it starts again."""
    topic, query = create_topic(own_kafka_broker, "t", 2), uuid.uuid4().hex
    went_back = 0
    known = 0
    for _ in range(10):
        sink = sink_on(own_kafka_broker, topic, query)
        position = sink.committed_position()
        done = 0 if position is None else position["partitions"]["0"]
        assert done in (known, known - 4)
        went_back += done < known
        assert sorted(map(int, committed_values(own_kafka_broker, topic, done))) == list(range(done))
        write(sink, done, done + 4)
        known = done + 4
        own_kafka_broker.kill()
        sink.close()
        own_kafka_broker.start()
    print("transactions undone:", went_back)


# --- records that may be refused one by one --------------------------------------------------------------------------
def refusing(
    keys: list[bytes | None],
    values: list[bytes | None],
    *,
    keyed: bool = False,
    found: dict[int, Refusal] | None = None,
) -> SinkRecords:
    refusals = Refusals([(found or {}).get(number) for number in range(len(keys))], keyed)
    return SinkRecords(keys, values, [None] * len(keys), refusals=refusals)


def read(broker: KafkaBroker, topic: str, count: int) -> list[tuple[bytes | None, bytes | None, dict[str, Any]]]:
    """Keys, values and headers of the committed records of a topic with one partition, in their order."""
    found = committed(broker, topic, count)
    return [(message.key(), message.value(), dict(message.headers() or ())) for message in found]


def test_what_is_too_large_goes_to_the_letters_alone(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    chance = random.Random(3)
    topic, letters = kafka_topic(max_message_bytes="5000"), kafka_topic()
    large = [chance.randbytes(size) for size in (9000, 20_000_000, 7000)]
    values: list[bytes | None] = [b"1", b"2", large[0], b"3", large[2], b"4"]
    sink = sink_on(kafka_broker, topic, uuid.uuid4().hex, letters=letters)
    sink.write(refusing([b"k"] * 6, values), at(6))
    assert [each[1] for each in read(kafka_broker, topic, 4)] == [b"1", b"2", b"3", b"4"]
    found = read(kafka_broker, letters, 2)
    assert [(key, value, told["error.topic"]) for key, value, told in found] == [
        (b"k", large[0], topic.encode()), (b"k", large[2], topic.encode()),
    ]  # fmt: skip
    assert b"too large" in found[0][2]["error.reason"].lower() or b"larger" in found[0][2]["error.reason"].lower()
    assert sink.committed_position() == at(6)
    # what no topic takes fails, and changes nothing
    with pytest.raises(RefusedLetterError, match=f'the topic of dead letters "{letters}" refuses a record'):
        sink.write(refusing([b"k", b"k"], [b"5", large[1]]), at(8))
    assert sink.committed_position() == at(6)
    sink.write(refusing([b"k"], [b"6"]), at(9))
    assert [each[1] for each in read(kafka_broker, topic, 5)] == [b"1", b"2", b"3", b"4", b"6"]
    sink.close()


def test_records_that_are_refused_together_are_all_written(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    """A topic's bound is one of batches: here all records of a batch that was refused can be written."""
    topic, letters = kafka_topic(max_message_bytes="2000"), kafka_topic()
    values: list[bytes | None] = [random.Random(number).randbytes(400) for number in range(20_000)]
    large = random.Random(0).randbytes(9000)
    sink = sink_on(kafka_broker, topic, uuid.uuid4().hex, letters=letters)
    sink.write(refusing([b"k"] * 20_001, [*values, large]), at(20_001))
    assert [each[1] for each in read(kafka_broker, topic, 20_000)] == values
    assert [each[1] for each in read(kafka_broker, letters, 1)] == [large]
    sink.close()


def test_a_row_that_is_refused_is_gone(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic(max_message_bytes="5000", cleanup_policy="compact")
    letters = kafka_topic()
    large = random.Random(4).randbytes(9000)
    sink = sink_on(kafka_broker, topic, uuid.uuid4().hex, letters=letters)
    sink.write(refusing([b"a", b"b"], [b"1", b"2"], keyed=True), at(2))
    refused = {1: Refusal("no such value"), 2: Refusal("no such key", in_key=True)}
    sink.write(refusing([b"a", b"b", b"c", None], [large, b"{}", b"{}", b"no key"], keyed=True, found=refused), at(6))
    rows = read(kafka_broker, topic, 4)
    assert [each[:2] for each in rows] == [(b"a", b"1"), (b"b", b"2"), (b"a", None), (b"b", None)]
    told = [(key, value, headers["error.reason"]) for key, value, headers in read(kafka_broker, letters, 4)]
    assert [each[:2] for each in told] == [(b"a", large), (b"b", b"{}"), (b"c", b"{}"), (None, b"no key")]
    assert [told[1][2], told[2][2]] == [b"no such value", b"no such key"]
    sink.close()


def test_without_letters_what_is_refused_is_left_out(kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    topic = kafka_topic(max_message_bytes="5000")
    sink = sink_on(kafka_broker, topic, uuid.uuid4().hex)
    sink.write(refusing([None] * 3, [b"1", random.Random(5).randbytes(9000), b"2"]), at(3))
    assert [each[1] for each in read(kafka_broker, topic, 2)] == [b"1", b"2"]
    sink.close()
