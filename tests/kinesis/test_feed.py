"""The reading of a stream as it grows, on a real emulator: nothing lost, nothing doubled, each key's records in order,
through splits, merges, stops at any place, refusals and shards that expire."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.kinesis.api import Service
from spark_sinks.kinesis.client import KinesisClient
from spark_sinks.kinesis.feed import Feed, Taken
from spark_sinks.kinesis.limits import KINESIS_READS_PER_S
from spark_sinks.kinesis.positions import KinesisPositions, marks_of
from spark_sinks.kinesis.ranges import RangeReader
from spark_sinks.kinesis.source import KinesisReader
from tests.kinesis.faulty import Faulty, made_faulty, options, refusal
from tests.services.kinesis import KinesisEmulator, Stream

pytestmark = pytest.mark.kinesis
MakeStream = Callable[..., Stream]
LONG_S = 60.0
FIRST = "shardId-000000000000"
POSITIONS = KinesisPositions()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service's quota is not the emulator's, and pauses after errors are not what is waited for."""
    monkeypatch.setattr("spark_sinks.kinesis.budget.KINESIS_READS_PER_S", 50)
    for pause in ("_RETRY_S", "_RELIST_S"):
        monkeypatch.setattr(f"spark_sinks.kinesis.feed.{pause}", 0.1)


@pytest.fixture
def service(kinesis: KinesisEmulator) -> Iterator[Service]:
    made = Service("k", options(kinesis), timeout_s=10)
    yield made
    made.close()


@pytest.fixture
def client(kinesis: KinesisEmulator) -> Iterator[KinesisClient]:
    made = KinesisClient("k", options(kinesis), poll_s=0.05)
    yield made
    made.close()


class Consumer:
    """Takes batches as a pipeline does, and knows what it has committed."""

    def __init__(self, service: Service, stream: Stream, start: Position, **settings: Any) -> None:
        self.service, self.stream, self.position = service, stream, start
        self.settings: dict[str, Any] = {"poll_s": 0.02, **settings}
        self.values: list[bytes] = []
        self.feed: Feed | None = None

    def open(self) -> Feed:
        if self.feed is None:
            self.feed = Feed(self.service, self.stream.name, self.position, **self.settings)
            self.feed.start()
        return self.feed

    def take(self, records: int = 10_000) -> Taken:
        taken = self.open().take(records)
        self.position = taken.end
        self.values.extend(part.data for entry in taken.entries for part in entry.parts)
        return taken

    def crash(self) -> None:
        """With a batch under way that is not committed."""
        if self.feed is not None:
            self.feed.take(3)
            self.feed.stop()
            self.feed = None

    def until(self, condition: Callable[[], bool], records: int = 10_000) -> None:
        deadline = time.monotonic() + LONG_S
        while not condition():
            assert time.monotonic() < deadline, f"{len(self.values)} records, {self.position}"
            self.open().wait(0.05)
            self.take(records)

    def close(self) -> None:
        if self.feed is not None:
            self.feed.stop()
            self.feed = None


@pytest.fixture
def consume(service: Service, client: KinesisClient) -> Iterator[Callable[..., Consumer]]:
    made: list[Consumer] = []

    def consumer(stream: Stream, start: Position | None = None, **settings: Any) -> Consumer:
        made.append(Consumer(service, stream, start or client.position(stream.name, "earliest"), **settings))
        return made[-1]

    yield consumer
    for each in made:
        each.close()


def numbered(keys: int, count: int, first: int = 0) -> list[tuple[str, bytes]]:
    return [(f"k{n % keys}", b"%d:%d" % (n % keys, n)) for n in range(first, first + count)]


def put_ten(stream: Stream, consumer: Consumer) -> None:
    """Records of five keys, and waits until they are read."""
    stream.put(numbered(5, 10))
    consumer.until(lambda: len(consumer.values) == 10)


def check_once_and_in_order(found: list[bytes], count: int) -> None:
    by_key: dict[bytes, list[int]] = defaultdict(list)
    for value in found:
        key, number = value.split(b":")
        by_key[key].append(int(number))
    assert len(found) == count
    assert sum(len(set(numbers)) for numbers in by_key.values()) == count
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


# --- splits, merges and stops ---------------------------------------------------------------------------------------
def shaken(stream: Stream, consumer: Consumer, seed: int, changes: int) -> None:
    """A producer, ``changes`` splits and merges, and as many stops of the consumer, at the same time."""
    chance = random.Random(seed)
    written, over = 0, threading.Event()

    def produce() -> None:
        nonlocal written
        while not over.is_set():
            stream.put(numbered(37, 23, written))
            written += 23

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        reshaping = Stream(stream.client, stream.name)
        for _ in range(changes):
            shards = len(reshaping.open_shards())
            if shards > 1 and (shards > 5 or chance.random() < 0.45):
                reshaping.merge(chance.randrange(shards - 1))
            else:
                reshaping.split(chance.randrange(shards))
            for _ in range(chance.randrange(4)):
                consumer.open().wait(0.02)
                consumer.take(chance.choice([1, 5, 50, 10_000]))
            consumer.crash()
    finally:
        over.set()
        thread.join()
    consumer.until(lambda: len(consumer.values) >= written)
    tips = consumer.open().tips(time.monotonic(), LONG_S)
    assert tips is not None
    consumer.until(lambda: POSITIONS.reached(consumer.position, tips.end))
    check_once_and_in_order(consumer.values, written)


def test_twenty_splits_and_merges_with_twenty_stops(
    kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    stream = kinesis_stream(2)
    shaken(stream, consume(stream), seed=1, changes=20)


@pytest.mark.night
@pytest.mark.parametrize("seed", range(2, 7))
def test_a_hundred_splits_and_merges_with_a_hundred_stops(
    seed: int, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    stream = kinesis_stream(2)
    shaken(stream, consume(stream), seed, changes=100)


def test_split_twice_merged_and_empty_while_it_is_stopped(
    kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    """Parents, some of them without a record, and their children's children, are there when reading goes on."""
    stream = kinesis_stream()
    consumer = consume(stream)
    put_ten(stream, consumer)
    consumer.close()
    stream.split()
    stream.split(1)
    stream.merge(0)
    stream.put(numbered(5, 10, 10))
    stream.split()
    stream.merge()
    stream.put(numbered(5, 10, 20))
    consumer.until(lambda: len(consumer.values) == 30)
    check_once_and_in_order(consumer.values, 30)
    ended = [shard for shard, mark in marks_of(consumer.position).items() if mark.ended]
    assert len(ended) == len(stream.client.list_shards(StreamName=stream.name)["Shards"]) - len(stream.open_shards())


def test_a_batch_takes_parents_before_their_children(
    kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    stream = kinesis_stream()
    stream.put(numbered(5, 50))
    stream.split()
    stream.put(numbered(5, 50, 50))
    consumer = consume(stream)
    feed = consumer.open()
    assert feed.tips(time.monotonic(), LONG_S) is not None  # all is in memory
    consumer.until(lambda: len(consumer.values) == 100, records=7)
    check_once_and_in_order(consumer.values, 100)


def test_latest_begins_in_shards_that_are_made_later(
    kinesis_stream: MakeStream, consume: Callable[..., Consumer], client: KinesisClient
) -> None:
    """By a moment, since the shard was empty; it is older than the children."""
    stream = kinesis_stream()
    for before in ([], numbered(5, 10)):
        stream.put(before)
        latest = client.position(stream.name, "latest")
        stream.split()
        stream.put(numbered(5, 10, 100))
        stream.merge()
        stream.put(numbered(5, 10, 110))
        consumer = consume(stream, latest)
        consumer.until(lambda consumer=consumer: len(consumer.values) >= 20)
        assert sorted(consumer.values) == sorted(value for _, value in numbered(5, 20, 100))


def test_a_moment_that_is_older_than_the_shards(
    kinesis_stream: MakeStream, consume: Callable[..., Consumer], client: KinesisClient
) -> None:
    """The parent is read from that moment on, and the children, which are newer, from their beginning."""
    stream = kinesis_stream()
    stream.put(numbered(5, 10))
    threading.Event().wait(0.05)
    moment = str(int(time.time() * 1000))
    threading.Event().wait(0.05)
    stream.put(numbered(5, 10, 10))
    stream.split()
    stream.put(numbered(5, 10, 20))
    stream.merge()
    stream.put(numbered(5, 10, 30))
    consumer = consume(stream, client.position(stream.name, moment))
    consumer.until(lambda: len(consumer.values) >= 30)
    check_once_and_in_order(consumer.values, 30)
    assert sorted(consumer.values) == sorted(value for _, value in numbered(5, 30, 10))


# --- what the service says --------------------------------------------------------------------------------------------
def some_times(count: int, fault: Callable[[], Any]) -> Callable[..., Any]:
    left = [count]

    def answer(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        if left[0] > 0:
            left[0] -= 1
            return fault()
        return true(**arguments)

    return answer


def raising(error: Exception) -> Callable[[], Any]:
    def fault() -> Any:
        raise error

    return fault


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("get_records", "ProvisionedThroughputExceededException"),
        pytest.param("get_shard_iterator", "ProvisionedThroughputExceededException", marks=pytest.mark.night),
        ("get_records", "ExpiredIteratorException"),
        pytest.param("get_records", "InternalFailure", marks=pytest.mark.night),
        pytest.param("list_shards", "LimitExceededException", marks=pytest.mark.night),
    ],
)
def test_refusals_that_pass(
    operation: str, code: str, service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    stream = kinesis_stream()
    faulty = made_faulty(service)
    consumer = consume(stream)
    stream.put(numbered(5, 10))
    stream.split()
    stream.put(numbered(5, 10, 10))
    error = refusal(code, operation)
    error.response["ResponseMetadata"] = {"HTTPStatusCode": 500 if code == "InternalFailure" else 400}
    faulty.faults[operation] = some_times(2, raising(error))
    consumer.until(lambda: len(consumer.values) == 20)
    check_once_and_in_order(consumer.values, 20)


@pytest.mark.parametrize("operation", ["get_records", "list_shards"])
def test_answers_that_make_no_sense(
    operation: str, service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    """They are tried again, as all that goes wrong once."""
    stream = kinesis_stream()
    faulty = made_faulty(service)
    consumer = consume(stream)
    feed = consumer.open()
    faulty.faults[operation] = lambda true, arguments: {}
    stream.put(numbered(5, 10))
    stream.split()
    stream.put(numbered(5, 10, 10))
    consumer.until(lambda: feed.problem is not None)
    without_shards = 'store "k" gave an answer that is not understood: It has no Shards.'
    assert feed.problem == ("KeyError: 'Records'" if operation == "get_records" else without_shards)
    faulty.faults.clear()
    consumer.until(lambda: len(consumer.values) == 20)
    check_once_and_in_order(consumer.values, 20)
    assert feed.problem is None


def test_a_shard_that_cannot_be_read_is_said_while_others_are(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    stream = kinesis_stream(2)
    faulty = made_faulty(service)
    error = refusal("InternalFailure", "GetShardIterator")
    error.response["ResponseMetadata"] = {"HTTPStatusCode": 500}

    def first_alone(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        if arguments["ShardId"] != FIRST:
            raise error
        return true(**arguments)

    faulty.faults["get_shard_iterator"] = first_alone
    consumer = consume(stream)
    feed = consumer.open()
    consumer.until(lambda: feed.problem is not None)
    asked = faulty.calls.get("get_records", 0)
    while faulty.calls.get("get_records", 0) < asked + 4:
        assert feed.problem == 'could not connect to store "k": InternalFailure by the test.'
        feed.wait(0.02)
    faulty.faults.clear()
    stream.put(numbered(7, 20))
    consumer.until(lambda: len(consumer.values) == 20)
    assert feed.problem is None


def silent_for(faulty: Faulty, seconds: float) -> None:
    """Until nothing was asked for so long."""
    deadline, known = time.monotonic() + LONG_S, -1
    while known != (asked := sum(faulty.calls.values())):
        assert time.monotonic() < deadline
        known = asked
        threading.Event().wait(seconds)


def test_a_stream_of_which_nobody_takes_anything_is_left_in_peace(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_sinks.kinesis.feed.KINESIS_UNREAD_S", 0.3)
    stream = kinesis_stream()
    faulty = made_faulty(service)
    consumer = consume(stream)
    put_ten(stream, consumer)
    silent_for(faulty, 1.0)
    stream.put(numbered(5, 10, 10))
    consumer.until(lambda: len(consumer.values) == 20)
    check_once_and_in_order(consumer.values, 20)


def test_a_stream_that_has_failed_is_left_in_peace(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    stream = kinesis_stream()
    faulty = made_faulty(service)
    consumer = consume(stream)
    consumer.open()

    def another(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        answer = true(**arguments)
        answer["StreamDescriptionSummary"]["StreamCreationTimestamp"] += 1000
        return answer

    faulty.faults["describe_stream_summary"] = another
    stream.split()
    with pytest.raises(SqlError) as refused:
        consumer.until(lambda: False)
    assert refused.value.sqlstate == "55000"
    silent_for(faulty, 1.5)


@pytest.mark.night
def test_a_shard_is_asked_five_times_a_second_by_all_readers(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_sinks.kinesis.budget.KINESIS_READS_PER_S", KINESIS_READS_PER_S)
    stream = kinesis_stream()
    faulty = made_faulty(service)
    readers = [consume(stream, poll_s=0.001).open() for _ in range(3)]
    began, before = time.monotonic(), faulty.calls.get("get_records", 0)
    stopped = threading.Event()
    stopped.wait(2.0)
    asked = faulty.calls["get_records"] - before
    assert asked <= 5 * (time.monotonic() - began) + 2
    assert readers[0].problem is None


@pytest.mark.night
def test_a_quota_that_others_use_up_is_said(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_sinks.kinesis.feed._SILENCE_S", 0.5)
    stream = kinesis_stream()
    faulty = made_faulty(service)
    refused = refusal("ProvisionedThroughputExceededException")
    faulty.faults["get_records"] = some_times(10**9, raising(refused))
    consumer = consume(stream)
    feed = consumer.open()
    deadline = time.monotonic() + LONG_S
    while feed.problem is None:
        assert time.monotonic() < deadline
        feed.wait(0.05)
    assert feed.problem == f'other readers use up the quota of stream "{stream.name}"'
    assert faulty.calls["get_records"] < 10  # each refusal doubles the pause
    faulty.faults.clear()
    stream.put(numbered(1, 1))
    consumer.until(lambda: len(consumer.values) == 1)
    assert feed.problem is None


def test_children_that_are_listed_late(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    stream = kinesis_stream()
    consumer = consume(stream)
    faulty = made_faulty(service)
    alone = stream.client.list_shards(StreamName=stream.name)
    stream.put(numbered(5, 10))
    stream.split()
    stream.put(numbered(5, 10, 10))
    faulty.faults["list_shards"] = some_times(3, lambda: alone)
    consumer.until(lambda: len(consumer.values) == 20)
    check_once_and_in_order(consumer.values, 20)


@pytest.mark.night
def test_what_waits_in_memory_has_a_bound(kinesis_stream: MakeStream, consume: Callable[..., Consumer]) -> None:
    stream = kinesis_stream()
    stream.put([("k", b"%d:" % 0 + b"%04d" % n + b" " * 1000) for n in range(400)])
    consumer = consume(stream, buffer_bytes_max=100_000)
    made_faulty(consumer.service).faults["get_records"] = lambda true, arguments: true(**{**arguments, "Limit": 50})
    feed = consumer.open()
    deadline = time.monotonic() + LONG_S
    while feed._buffered < 100_000:
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
    threading.Event().wait(0.5)
    assert feed._buffered < 200_000
    consumer.until(lambda: len(consumer.values) == 400)
    assert [int(value.split(b":")[1]) for value in consumer.values] == list(range(400))


# --- what expires -----------------------------------------------------------------------------------------------------
def keeping_nothing(faulty: Faulty) -> None:
    """The stream keeps records for no time at all: whatever is not read at once may have expired."""

    def summary(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        answer = true(**arguments)
        answer["StreamDescriptionSummary"]["RetentionPeriodHours"] = 0
        return answer

    faulty.faults["describe_stream_summary"] = summary


def without_known_records(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """The record that was read last has expired."""
    if arguments["ShardIteratorType"] == "AT_SEQUENCE_NUMBER":
        arguments = {k: v for k, v in arguments.items() if k != "StartingSequenceNumber"}
        arguments["ShardIteratorType"] = "LATEST"
    return true(**arguments)


def open_ones(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Closed shards have expired, and are listed no more."""
    answer = true(**arguments)
    answer["Shards"] = [s for s in answer["Shards"] if "EndingSequenceNumber" not in s["SequenceNumberRange"]]
    return answer


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def pass_by(moment_ms: int) -> None:
    while now_ms() <= moment_ms:
        threading.Event().wait(0.005)


@pytest.fixture
def exact_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator has this machine's clock."""
    for module in ("feed", "shard_reading"):
        monkeypatch.setattr(f"spark_sinks.kinesis.{module}._CLOCK_MARGIN_MS", 0)


def test_expired_records_are_a_named_error(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    stream = kinesis_stream()
    consumer = consume(stream)
    put_ten(stream, consumer)
    consumer.close()
    faulty = made_faulty(service)
    keeping_nothing(faulty)
    stream.put(numbered(5, 1, 10))
    consumer.until(lambda: len(consumer.values) == 11)  # the last record that was read is still there
    consumer.close()

    faulty.faults["get_shard_iterator"] = without_known_records
    with pytest.raises(SqlError) as refused:
        consumer.until(lambda: False)
    assert refused.value.sqlstate == "55000"
    assert refused.value.message == (
        f'records may have expired unread from shard {FIRST} of stream "{stream.name}" in store "k"'
    )


@pytest.mark.parametrize("fault", [None, "ExpiredIteratorException"])
def test_what_expires_while_it_is_read_is_a_named_error(
    fault: str | None, service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    """Of a reading that comes too late for what follows, and of one that goes on after a long pause."""
    stream = kinesis_stream()
    faulty = made_faulty(service)
    consumer = consume(stream)
    put_ten(stream, consumer)
    faulty.faults["get_shard_iterator"] = without_known_records
    keeping_nothing(faulty)
    consumer.open().note(service.summary(stream.name))
    if fault is not None:
        faulty.faults["get_records"] = some_times(1, raising(refusal(fault)))
    with pytest.raises(SqlError) as refused:
        consumer.until(lambda: False)
    assert refused.value.sqlstate == "55000"
    assert refused.value.message.startswith(f"records may have expired unread from shard {FIRST}")


def test_the_end_of_a_shard_has_a_moment_at_which_it_was_open(
    exact_clock: None,
    kinesis_stream: MakeStream,
    consume: Callable[..., Consumer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its children have records since it was closed, which may be long before its end is read."""
    stream = kinesis_stream()
    consumer = consume(stream)
    put_ten(stream, consumer)
    consumer.close()
    stream.split()
    closed_ms = now_ms()
    pass_by(closed_ms + 100)
    monkeypatch.setattr("spark_sinks.kinesis.feed._OPEN_S", 0.2)
    consumer.until(lambda: marks_of(consumer.position)[FIRST].ended)
    assert 0 < marks_of(consumer.position)[FIRST].moment_ms <= closed_ms
    # While it is read the moment is a late one.
    quiet_ms = now_ms() + 100
    pass_by(quiet_ms)
    cursor = consumer.open()._cursors["shardId-000000000001"]
    consumer.until(lambda: cursor.open_ms > quiet_ms)
    stream.merge()
    closed_ms = now_ms()
    pass_by(closed_ms + 100)
    consumer.until(lambda: marks_of(consumer.position)[cursor.shard].ended)
    assert quiet_ms < marks_of(consumer.position)[cursor.shard].moment_ms <= closed_ms


def test_children_whose_parents_are_listed_no_more(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    """They were promised from the moment on up to which their parents were read."""
    stream = kinesis_stream()
    consumer = consume(stream)
    put_ten(stream, consumer)
    stream.split()
    consumer.until(lambda: len(marks_of(consumer.position)) == 3 and marks_of(consumer.position)[FIRST].ended)
    consumer.close()
    known = marks_of(consumer.position)
    children = [mark for shard, mark in known.items() if shard != FIRST]
    assert all(mark.is_beginning and mark.moment_ms >= known[FIRST].moment_ms > 0 for mark in children)
    faulty = made_faulty(service)
    faulty.faults["list_shards"] = open_ones
    stream.put(numbered(5, 10, 10))
    again = consume(stream, consumer.position)
    again.until(lambda: len(again.values) == 10)  # they are still there
    assert FIRST not in again.position["shards"]
    keeping_nothing(faulty)
    late = consume(stream, consumer.position)
    with pytest.raises(SqlError) as refused:
        late.until(lambda: False)
    assert refused.value.sqlstate == "55000"
    assert late.values == []


def test_shards_that_come_and_go_while_nobody_reads(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer], client: KinesisClient
) -> None:
    """A position was committed before the child of its only shard was listed; the child was split, and has expired."""
    stream = kinesis_stream()
    earliest = client.position(stream.name, "earliest")
    alone = stream.client.list_shards(StreamName=stream.name)
    consumer = consume(stream)
    faulty = made_faulty(service)
    put_ten(stream, consumer)
    faulty.faults["list_shards"] = lambda true, arguments: alone  # before the split: shards are listed at any time
    stream.split()
    consumer.until(lambda: marks_of(consumer.position)[FIRST].ended)
    consumer.close()
    assert set(consumer.position["shards"]) == {FIRST}
    stream.put(numbered(5, 10, 10))
    stream.split()
    faulty.faults["list_shards"] = open_ones
    lost = f'records may have expired unread from shard shardId-000000000001 of stream "{stream.name}" in store "k"'
    end = client.position(stream.name, "latest")
    reader = KinesisReader("k", service.options, stream.name, poll_s=0.05, record_bytes_max=1000, timeout_s=5)
    made_faulty(reader._service).faults["list_shards"] = open_ones
    for read in (
        consumer.open,
        lambda: RangeReader(service, stream.name, lambda: False).read(consumer.position, end),
        lambda: reader.health.check_history(consumer.position),
    ):
        with pytest.raises(SqlError) as refused:
            read()
        assert (refused.value.sqlstate, refused.value.message) == ("55000", lost)
    _, note = reader.health.remaining(consumer.position)
    assert note == "rebuilt without records that may have expired in shardId-000000000001"
    reader.close()
    fresh = consume(stream, earliest)  # to which nothing was promised
    fresh.until(lambda: len(fresh.values) > 0)


def test_earliest_promises_nothing_that_has_expired(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer]
) -> None:
    """Neither before the first record is read, nor while the oldest ones are."""
    stream = kinesis_stream()
    faulty = made_faulty(service)
    keeping_nothing(faulty)
    faulty.faults["get_shard_iterator"] = without_known_records

    def slowly(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        return {**true(**{**arguments, "Limit": 3}), "MillisBehindLatest": 1000}

    faulty.faults["get_records"] = slowly
    consumer = consume(stream)
    feed = consumer.open()
    asked = faulty.calls.get("get_records", 0)
    consumer.until(lambda: faulty.calls.get("get_records", 0) > asked + 1)  # it is empty first
    put_ten(stream, consumer)
    assert feed.failure is None


def test_shards_that_are_listed_no_more(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer], client: KinesisClient
) -> None:
    """Those that were read to their end leave the position; one that was not is an error, or nothing at all where it
    was to be read from its beginning."""
    stream = kinesis_stream()
    earliest = client.position(stream.name, "earliest")
    stream.put(numbered(5, 10))
    consumer = consume(stream)
    consumer.until(lambda: len(consumer.values) == 10)
    partly = consumer.position
    stream.split()
    stream.put(numbered(5, 10, 10))
    consumer.until(lambda: len(consumer.values) == 20)
    consumer.close()
    before = consumer.position

    made_faulty(service).faults["list_shards"] = open_ones
    stream.put(numbered(5, 10, 20))
    consumer.until(lambda: len(consumer.values) == 30)
    assert FIRST in before["shards"]
    assert FIRST not in consumer.position["shards"]
    assert POSITIONS.reached(consumer.position, before)
    check_once_and_in_order(consumer.values, 30)
    with pytest.raises(SqlError) as refused:
        consume(stream, partly).open()
    assert refused.value.sqlstate == "55000"
    fresh = consume(stream, earliest)
    fresh.until(lambda: len(fresh.values) == 20)
    assert sorted(fresh.values) == sorted(value for _, value in numbered(5, 20, 10))


def test_a_stream_that_is_gone_or_made_anew(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer], client: KinesisClient
) -> None:
    stream = kinesis_stream()
    consumer = consume(stream)
    put_ten(stream, consumer)
    client.drop_entity(stream.name, {})
    with pytest.raises(SqlError) as refused:
        consumer.until(lambda: False)
    assert (refused.value.sqlstate, refused.value.message) == (
        "42704", f'stream "{stream.name}" does not exist in store "k"')  # fmt: skip
    consumer.close()
    created = consumer.position["created"]
    while True:  # the emulator tells the moment of the making in seconds
        stream.create()
        if service.summary(stream.name).created_ms != created:
            break
        client.drop_entity(stream.name, {})
    with pytest.raises(SqlError) as refused:
        consumer.open()
    assert (refused.value.sqlstate, refused.value.message) == (
        "55000", f'stream "{stream.name}" in store "k" was deleted and created again')  # fmt: skip


# --- closed ranges ----------------------------------------------------------------------------------------------------
def test_rounds_read_each_record_once_and_end_where_the_feed_is(
    service: Service, kinesis_stream: MakeStream, consume: Callable[..., Consumer], client: KinesisClient
) -> None:
    stream = kinesis_stream(2)
    start = client.position(stream.name, "earliest")
    consumer = consume(stream)
    written = 0
    for change in (stream.split, stream.merge, lambda: None):
        stream.put(numbered(7, 100, written))
        written += 100
        change()
        consumer.until(lambda written=written: len(consumer.values) == written)  # type: ignore[misc]
    ranges = RangeReader(service, stream.name, lambda: False)
    found: list[bytes] = []
    position, rounds = start, 0
    while not POSITIONS.reached(position, consumer.position):
        taken = ranges.read(position, consumer.position, 150)
        assert taken.records <= 150
        again = ranges.read(position, taken.end)
        assert [entry.record for entry in again.entries] == [entry.record for entry in taken.entries]
        found.extend(part.data for entry in taken.entries for part in entry.parts)
        position, rounds = taken.end, rounds + 1
    check_once_and_in_order(found, written)
    assert position == consumer.position
    assert rounds > 300 // 150


@pytest.mark.night
def test_rounds_of_large_records_are_bounded_by_their_size(
    service: Service, kinesis_stream: MakeStream, client: KinesisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_sinks.kinesis.ranges.KINESIS_BUFFER_BYTES_MAX", 50_000)
    stream = kinesis_stream(2)
    start = client.position(stream.name, "earliest")
    stream.put([(f"k{n}", b"%05d" % n + b"x" * 10_000) for n in range(30)])
    end, found, rounds = client.position(stream.name, "latest"), [], 0
    ranges = RangeReader(service, stream.name, lambda: False)
    while not POSITIONS.reached(start, end):
        taken = ranges.read(start, end, 1000)
        assert sum(entry.size for entry in taken.entries) <= 50_000 + 2 * 10_010
        found.extend(entry.record.data[:5] for entry in taken.entries)
        start, rounds = taken.end, rounds + 1
    assert sorted(found) == [b"%05d" % n for n in range(30)]
    assert rounds >= 5


def test_a_range_that_is_given_up(service: Service, kinesis_stream: MakeStream, client: KinesisClient) -> None:
    stream = kinesis_stream()
    start = client.position(stream.name, "earliest")
    stream.put(numbered(1, 1))
    end = client.position(stream.name, "latest")
    with pytest.raises(SqlError) as refused:
        RangeReader(service, stream.name, lambda: True).read(start, end)
    assert refused.value.sqlstate == "57014"


# --- the reader's health ----------------------------------------------------------------------------------------------
def test_health(kinesis: KinesisEmulator, kinesis_stream: MakeStream, client: KinesisClient) -> None:
    stream = kinesis_stream(2)
    start = client.position(stream.name, "earliest")
    reader = KinesisReader("k", options(kinesis), stream.name, poll_s=0.05, record_bytes_max=1000, timeout_s=5)
    try:
        assert reader.health.look(start).latest is None  # nobody reads yet
        stream.put(numbered(5, 10))
        end = reader.next_batch(start, 1000)
        while (latest := reader.health.look(end).latest) is None or not reader.positions.reached(end, latest):
            reader.wait(0.1)
            end = reader.next_batch(end, 1000)
        assert reader.positions.distance(start, end) == 10
        stream.put(numbered(5, 10, 10))
        seen = reader.health.look(end)
        assert seen.state == "ok"
        assert seen.latest is not None
        assert reader.positions.distance(end, seen.latest) == 10
        reader.confirm(end)
        reader.health.check_history(start)
        keeping_nothing(made_faulty(reader._service))
        with pytest.raises(SqlError) as refused:
            reader.health.check_history(start)
        assert refused.value.sqlstate == "55000"
        position, note = reader.health.remaining(start)
        assert position == start
        assert note == f"rebuilt without records that may have expired in {FIRST}, shardId-000000000001"
        client.drop_entity(stream.name, {})
        assert reader.health.look(end).state == "failed"
        with pytest.raises(SqlError) as refused:
            reader.confirm(end)
        assert refused.value.sqlstate == "42704"
    finally:
        reader.close()


def test_a_service_that_is_silent_for_a_while(own_kinesis: KinesisEmulator) -> None:
    stream = Stream(own_kinesis.client(), "s").create()
    client = KinesisClient("k", options(own_kinesis), poll_s=0.05)
    start = client.position("s", "earliest")
    reader = KinesisReader("k", options(own_kinesis), "s", poll_s=0.05, record_bytes_max=1000, timeout_s=1)
    try:
        end = reader.next_batch(start, 10)
        own_kinesis.pause()
        seen = reader.health.look(end)
        assert (seen.state, (seen.cause or "")[:31]) == ("stalled", 'could not connect to store "k":')
        own_kinesis.resume()
        stream.put(numbered(1, 1))
        deadline = time.monotonic() + LONG_S
        while (following := reader.next_batch(end, 10)) == end:
            assert time.monotonic() < deadline
            reader.wait(0.5)
        assert reader.positions.distance(end, following) <= 1
        assert reader.health.look(following).state == "ok"
    finally:
        own_kinesis.resume()
        reader.close()
        client.close()
