"""Going on behind records that have expired unread: each gap is told, and nothing else is lost or doubled."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.kinesis.client import KinesisClient
from spark_sinks.kinesis.frames import table_of
from spark_sinks.kinesis.options import KinesisOptions
from spark_sinks.kinesis.positions import KinesisPositions, marks_of
from spark_sinks.kinesis.source import KinesisReader
from spark_sinks.oversize import unmarked
from tests.faults.live import temporary_server
from tests.kinesis.faulty import Faulty, made_faulty, options
from tests.kinesis.test_feed import FIRST, keeping_nothing, numbered, open_ones, without_known_records
from tests.services.kinesis import KinesisEmulator, Stream

pytestmark = pytest.mark.kinesis
MakeStream = Callable[..., Stream]
POSITIONS = KinesisPositions()
SECOND = "shardId-000000000001"


class Reading:
    """A reader as a pipeline uses it: what it has of records, and what it was told of gaps."""

    def __init__(self, kinesis: KinesisEmulator, stream: Stream, start: Position) -> None:
        skipping = replace(options(kinesis), skips_expired=True)
        self.reader = KinesisReader("k", skipping, stream.name, poll_s=0.05, record_bytes_max=1000, timeout_s=5)
        self.faulty: Faulty = made_faulty(self.reader._service)
        self.position = start
        self.values: list[bytes] = []
        self.gaps: list[tuple[str, str]] = []

    def take(self) -> None:
        end = self.reader.next_batch(self.position, 10_000)
        if end == self.position:
            self.reader.wait(0.1)
            return
        assert POSITIONS.reached(end, self.position)
        assert self.reader._live is not None
        self.position = end
        self.keep(self.reader._live[1].entries)

    def keep(self, entries: Any) -> None:
        for row in table_of("s", entries, 1000).select(["position", "value"]).to_pylist():
            told = unmarked(row["value"])
            if told is None:
                self.values.append(row["value"])
            else:
                self.gaps.append((row["position"], told[2]))

    def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(600):
            if condition():
                return
            self.take()
        raise AssertionError(f"{len(self.values)} records, {self.gaps}, {self.position}")


@pytest.fixture
def begin(kinesis: KinesisEmulator) -> Iterator[Callable[..., Reading]]:
    made: list[Reading] = []

    def reading(stream: Stream, start: Position | None = None) -> Reading:
        if start is None:
            client = KinesisClient("k", options(kinesis), poll_s=0.05)
            start = client.position(stream.name, "earliest")
            client.close()
        made.append(Reading(kinesis, stream, start))
        return made[-1]

    yield reading
    for each in made:
        each.reader.close()


def test_the_setting() -> None:
    given = {"access.region": "us-east-2"}
    assert not KinesisOptions.from_properties(given).skips_expired
    assert KinesisOptions.from_properties({**given, "kinesis.expired.records": "skip"}).skips_expired
    with pytest.raises(SqlError) as refused:
        KinesisOptions.from_properties({**given, "kinesis.expired.records": "ignore"})
    assert refused.value.sqlstate == "22023"


def test_a_shard_is_read_on_from_what_is_kept(kinesis_stream: MakeStream, begin: Callable[..., Reading]) -> None:
    stream = kinesis_stream()
    first = begin(stream)
    stream.put(numbered(5, 10))
    first.until(lambda: len(first.values) == 10)
    again = begin(stream, first.position)
    keeping_nothing(again.faulty)
    again.faulty.faults["get_shard_iterator"] = without_known_records
    again.until(lambda: len(again.gaps) == 1)
    ((place, words),) = again.gaps
    moment_ms = marks_of(first.position)[FIRST].moment_ms
    assert place == f"{FIRST}:{moment_ms}"
    assert words.startswith("records that arrived since ")
    assert "may have expired unread, before " in words
    again.faulty.faults.clear()
    stream.put(numbered(5, 10, 10))
    again.until(lambda: len(again.values) >= 10)
    assert again.values == [value for _, value in numbered(5, 10, 10)]
    assert len(again.gaps) == 1


def test_without_the_setting_the_reader_fails_and_says_so(
    kinesis: KinesisEmulator, kinesis_stream: MakeStream, begin: Callable[..., Reading]
) -> None:
    stream = kinesis_stream()
    first = begin(stream)
    stream.put(numbered(5, 10))
    first.until(lambda: len(first.values) == 10)
    reader = KinesisReader("k", options(kinesis), stream.name, poll_s=0.05, record_bytes_max=1000, timeout_s=5)
    try:
        faulty = made_faulty(reader._service)
        keeping_nothing(faulty)
        faulty.faults["get_shard_iterator"] = without_known_records
        assert reader.next_batch(first.position, 10) == first.position
        assert reader._feed is not None
        with reader._feed._changed:
            assert reader._feed._changed.wait_for(lambda: reader._feed is not None and reader._feed.failure, 60)
        seen = reader.health.look(first.position)
        assert (seen.state, "may have expired unread" in (seen.cause or "")) == ("failed", True)
    finally:
        reader.close()


def test_what_expires_while_it_is_read_is_a_gap_too(kinesis_stream: MakeStream, begin: Callable[..., Reading]) -> None:
    """A look at the source meanwhile does not say that it has failed."""
    stream = kinesis_stream()
    reading = begin(stream)
    stream.put(numbered(5, 10))
    reading.until(lambda: len(reading.values) == 10)
    reading.faulty.faults["get_shard_iterator"] = without_known_records
    keeping_nothing(reading.faulty)
    feed = reading.reader._feed
    assert feed is not None
    feed.note(reading.reader._service.summary(stream.name))
    with feed._changed:
        assert feed._changed.wait_for(lambda: feed.failure, 60)
    assert reading.reader.health.look(reading.position).state == "ok"
    reading.until(lambda: len(reading.gaps) == 1)


def test_the_last_record_that_is_still_there_is_no_gap(
    kinesis_stream: MakeStream, begin: Callable[..., Reading]
) -> None:
    stream = kinesis_stream()
    first = begin(stream)
    stream.put(numbered(5, 10))
    first.until(lambda: len(first.values) == 10)
    again = begin(stream, first.position)
    keeping_nothing(again.faulty)
    stream.put(numbered(5, 1, 10))
    again.until(lambda: len(again.values) == 1)
    assert again.gaps == []


def test_shards_that_are_gone_are_told_and_the_others_are_read(
    kinesis_stream: MakeStream, begin: Callable[..., Reading]
) -> None:
    """One that was read in part, and one that came and went unseen."""
    stream = kinesis_stream()
    first = begin(stream)
    alone = stream.client.list_shards(StreamName=stream.name)
    stream.put(numbered(5, 10))
    first.faulty.faults["list_shards"] = lambda true, arguments: alone
    first.until(lambda: len(first.values) == 10)
    stream.split()
    stream.split()
    stream.put(numbered(5, 20, 10))
    again = begin(stream, first.position)
    again.faulty.faults["list_shards"] = open_ones
    again.until(lambda: len(again.values) == 20)
    assert sorted(again.values) == sorted(value for _, value in numbered(5, 20, 10))
    assert [place.partition(":")[0] for place, _ in again.gaps] == [FIRST, SECOND]
    assert all(words.endswith("and the shard is gone") for _, words in again.gaps)
    assert SECOND not in again.position["shards"]


def test_a_view_that_catches_up_goes_on_too(kinesis_stream: MakeStream, begin: Callable[..., Reading]) -> None:
    """In closed ranges, up to where the others are."""
    stream = kinesis_stream()
    first = begin(stream)
    stream.put(numbered(5, 10))
    first.until(lambda: len(first.values) == 10)
    start = first.position
    stream.split()
    stream.put(numbered(5, 10, 10))
    first.until(lambda: len(first.values) == 20)
    late = begin(stream, start)
    late.faulty.faults["list_shards"] = open_ones
    position, rounds = start, 0
    while not POSITIONS.reached(position, first.position):
        position = late.reader.bounded(position, first.position, 1000)
        late.keep(late.reader._read.popitem()[1][1].entries)
        rounds += 1
        assert rounds < 10
    assert [place.partition(":")[0] for place, _ in late.gaps] == [FIRST]
    assert sorted(late.values) == sorted(value for _, value in numbered(5, 10, 10))
    assert POSITIONS.reached(first.position, position)


# --- a whole server ---------------------------------------------------------------------------------------------------
@contextmanager
def in_between(service: str) -> Iterator[tuple[str, threading.Event]]:
    """An address of the same service, which keeps nothing that was read while the event is set."""
    forgetful, true = threading.Event(), urlsplit(service)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked = self.headers["X-Amz-Target"].partition(".")[2]
            if forgetful.is_set() and asked == "GetShardIterator":
                given = json.loads(body)
                if given["ShardIteratorType"] == "AT_SEQUENCE_NUMBER":
                    del given["StartingSequenceNumber"]
                    body = json.dumps({**given, "ShardIteratorType": "LATEST"}).encode()
            connection = http.client.HTTPConnection(str(true.hostname), true.port, timeout=60)
            headers = {**dict(self.headers.items()), "Content-Length": str(len(body))}
            connection.request("POST", "/", body, headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if forgetful.is_set() and asked == "DescribeStreamSummary" and answer.status == 200:
                found = json.loads(content)
                found["StreamDescriptionSummary"]["RetentionPeriodHours"] = 0
                content = json.dumps(found).encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", forgetful
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.spark
def test_a_gap_is_a_rejected_row_and_the_view_goes_on(kinesis: KinesisEmulator, kinesis_stream: MakeStream) -> None:
    stream = kinesis_stream()
    with in_between(kinesis.endpoint) as (address, forgetful), temporary_server() as live:
        live.start()
        properties = kinesis.properties.replace(kinesis.endpoint, address)
        live.run(
            f"CREATE STORE k WITH ({properties}, 'kinesis.expired.records' = SKIP)",
            f"CREATE STREAM s (n BIGINT) WITH ('store' = 'k', 'topic' = '{stream.name}', 'value.format' = 'json')",
            "CREATE MATERIALIZED VIEW v AS SELECT n % 2 AS odd, count(*) AS c FROM s GROUP BY n % 2",
        )
        stream.put([(str(n), b'{"n": %d}' % n) for n in range(20)])
        live.wait_equal("SELECT odd, c FROM v", {(0,): 10, (1,): 10})
        assert live.stop() == 0
        forgetful.set()
        live.start()
        told = "SELECT position, reason FROM mv_catalog.rejected_rows ORDER BY position"
        live.wait_for(lambda: live.query(told) != [], 120, "no gap was told")
        forgetful.clear()
        stream.put([(str(n), b'{"n": %d}' % n) for n in range(20, 40)])
        live.wait_equal("SELECT odd, c FROM v", {(0,): 20, (1,): 20})
        position, reason = live.query(told)[0]
        assert position.startswith(f"{FIRST}:")
        assert reason.startswith("records that arrived since ")
        assert live.states()["v"][0] == "RUNNING"
