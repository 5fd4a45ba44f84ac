"""What the suite needs of each kind of stores: records that come in, records that a query has written, and a store that
goes away."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from moto.server import ThreadedMotoServer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import free_port
from tests.file.services import Bucket, Service
from tests.services.google import GoogleEmulator
from tests.services.kinesis import KinesisEmulator, Stream
from tests.services.postgres import LogicalPostgres

KINDS = ("FILE", "S3", "KAFKA", "KINESIS", "POSTGRESQL")
BY_NIGHT = ("GCS",)
WRITTEN = ("FILE", "S3", "GCS", "KAFKA", "KINESIS")
"""Kinds that a query writes to; the output of others goes to topics."""
AT_ADDRESSES = ("KINESIS", "S3", "POSTGRESQL")
"""Kinds that have one address; brokers say themselves where they are. The replication slot of PostgreSQL is free again
a minute after its reader has fallen silent, when the server gives up that connection."""
OF_FILES = ("FILE", "S3", "GCS")
"""Stores of type FILE: in a directory, in S3, and in Google's storage."""
NOTHING_WRONG, WRONG = "1.00", "none"
Written = tuple[int, str | None]
_COLUMNS = "(n BIGINT, price DECIMAL(6, 2))"


@dataclass
class StoreUnderTest:
    """``put`` adds records, ``bad`` one that cannot be decoded. ``make`` makes an entity, where the server does not;
    ``read`` gives what was written, each record as its number and its identity, where it has one.

    ``entity`` are the properties of an entity that is made, ``declared`` the columns of a stream, and ``n`` is the
    number in a record of such a stream.
    """

    kind: str
    properties: str
    put: Callable[[str, Sequence[int]], None]
    bad: Callable[[str], None]
    away: Callable[[], AbstractContextManager[None]]
    make: Callable[[str], None] | None = None
    read: Callable[[str], list[Written]] | None = None
    entity: str = ""
    declared: str = _COLUMNS
    format: str = ", 'value.format' = 'json'"
    n: str = "n"
    exactly_once: bool = True
    keyed: str = ""  # properties of a stream that a query writes to, by which the number is the key
    sent: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of the store, and of the suite's own relations in it."""
        return self.kind.lower()

    def send(self, entity: str, numbers: Sequence[int]) -> None:
        self.put(entity, numbers)
        self.sent += numbers


def address_of(properties: str) -> tuple[str, str, int]:
    """The property of a store that has its address, its value, and the port in it."""
    found = re.search(r"'([^']+)' = '([^']*127\.0\.0\.1:(\d+)[^']*)'", properties)
    assert found is not None
    return found[1], found[2], int(found[3])


def _values(numbers: Sequence[int]) -> list[bytes]:
    return [json.dumps({"n": number, "price": NOTHING_WRONG}).encode() for number in numbers]


_BAD = json.dumps({"n": 0, "price": WRONG}).encode()


def _number(value: bytes, key: bytes | None = None, expected: Callable[[int], bytes] | None = None) -> Written:
    content = json.loads(value)
    assert expected is None or key == expected(content["n"])
    return content["n"], content.get("_mv_id")


def _of_json(kind: str, properties: str, write: Callable[[str, Sequence[bytes]], None], **more: Any) -> StoreUnderTest:
    """Of a kind whose records are bytes."""
    return StoreUnderTest(
        kind,
        properties,
        put=lambda entity, numbers: write(entity, _values(numbers)),
        bad=lambda entity: write(entity, [_BAD]),
        **more,
    )


def _eight_bytes(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _digits(number: int) -> bytes:
    return str(number).encode()


@contextmanager
def _paused(service: KafkaBroker | KinesisEmulator | GoogleEmulator) -> Iterator[None]:
    service.pause()
    try:
        yield
    finally:
        service.resume()


# --- directories ----------------------------------------------------------------------------------------------------
def files(root: Path) -> StoreUnderTest:
    directory = root / "store"
    directory.mkdir(parents=True)

    def write(entity: str, values: Sequence[bytes]) -> None:
        aside = directory / entity / f".{uuid.uuid4().hex}"
        aside.write_bytes(b"".join(value + b"\n" for value in values))
        aside.rename(directory / entity / f"{time.time_ns()}-{aside.name[1:9]}.json")

    def read(entity: str) -> list[Written]:
        found = sorted(path for path in (directory / entity).iterdir() if not path.name.startswith("."))
        return [_number(line) for path in found for line in path.read_bytes().splitlines()]

    @contextmanager
    def away() -> Iterator[None]:
        elsewhere = directory.with_name("away")
        directory.rename(elsewhere)
        try:
            yield
        finally:
            elsewhere.rename(directory)

    return _of_json("FILE", f"'type' = FILE, 'uris' = '{directory}'", write, away=away, read=read)


# --- objects --------------------------------------------------------------------------------------------------------
def objects() -> tuple[StoreUnderTest, Callable[[], None]]:
    """And what ends the service."""
    port = free_port()

    def started() -> ThreadedMotoServer:
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=port)
        server.start()
        return server

    running = [started()]

    @contextmanager
    def away() -> Iterator[None]:
        """What it has stays in this process."""
        running.pop().stop()
        try:
            yield
        finally:
            running.append(started())

    bucket = Service("s3", f"http://127.0.0.1:{port}").place()
    return _of_objects("S3", bucket, away), lambda: running.pop().stop()


def google_objects() -> tuple[StoreUnderTest, Callable[[], None]]:
    """And what ends the service."""
    emulator = GoogleEmulator()
    bucket = Service("google", emulator.address).place()
    return _of_objects("GCS", bucket, lambda: _paused(emulator)), emulator.stop


def _of_objects(kind: str, bucket: Bucket, away: Callable[[], AbstractContextManager[None]]) -> StoreUnderTest:
    def write(entity: str, values: Sequence[bytes]) -> None:
        name = f"{time.time_ns()}-{uuid.uuid4().hex[:8]}.json"
        bucket.put(f"lake/in/{entity}/{name}", b"".join(value + b"\n" for value in values))

    def read(entity: str) -> list[Written]:
        found = sorted(bucket.contents(f"lake/in/{entity}/").items())
        return [_number(line) for key, content in found if "/." not in key for line in content.splitlines()]

    return _of_json(kind, bucket.statement, write, away=away, read=read)


# --- topics ---------------------------------------------------------------------------------------------------------
def topics(broker: KafkaBroker) -> StoreUnderTest:
    def write(entity: str, values: Sequence[bytes]) -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "log_level": 0})
        for number, value in enumerate(values):
            producer.produce(entity, value, key=str(number))
        assert producer.flush(60) == 0

    def read(entity: str) -> list[Written]:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        try:
            partitions = list(consumer.list_topics(entity, timeout=30).topics[entity].partitions)
            consumer.assign([TopicPartition(entity, partition, 0) for partition in partitions])
            found, ended = [], 0
            while ended < len(partitions):
                message = consumer.poll(30)
                assert message is not None
                if message.error() is not None:
                    ended += 1
                else:
                    found.append(_number(message.value() or b"", message.key(), _eight_bytes))
            return found
        finally:
            consumer.close()

    return _of_json(
        "KAFKA",
        f"'type' = KAFKA, 'uris' = '{broker.bootstrap}'",
        write,
        away=lambda: _paused(broker),
        read=read,
        entity="'topic.partitions' = 2, 'topic.replicas' = 1",
        keyed=", 'key.columns' = 'n'",
    )


# --- streams --------------------------------------------------------------------------------------------------------
def streams(emulator: KinesisEmulator) -> StoreUnderTest:
    def write(entity: str, values: Sequence[bytes]) -> None:
        Stream(emulator.client(), entity).put([(str(number), value) for number, value in enumerate(values)])

    def read(entity: str) -> list[Written]:
        return [_number(data, key.encode(), _digits) for key, data in Stream(emulator.client(), entity).keyed_values()]

    return _of_json(
        "KINESIS",
        emulator.properties,
        write,
        away=lambda: _paused(emulator),
        read=read,
        entity="'topic.shards' = 2",
        keyed=", 'key.columns' = 'n'",
        exactly_once=False,
    )


# --- tables ---------------------------------------------------------------------------------------------------------
def tables(server: LogicalPostgres) -> StoreUnderTest:
    def make(entity: str) -> None:
        with server.connect() as connection:
            connection.execute(f"CREATE TABLE {entity} (n bigint PRIMARY KEY, price numeric(6, 2))")

    def put(entity: str, numbers: Sequence[int]) -> None:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {entity} VALUES (%s, 1.00)", [(number,) for number in numbers])

    def bad(entity: str) -> None:
        with server.connect() as connection:
            connection.execute(f"INSERT INTO {entity} VALUES (0, 'NaN')")

    return StoreUnderTest(
        "POSTGRESQL",
        f"'type' = POSTGRESQL, 'uris' = '{server.uris}', 'postgres.username' = 'postgres', 'tls.disabled' = true",
        put=put,
        bad=bad,
        make=make,
        away=server.frozen,
        declared="",
        format="",
        n="after->n",
        exactly_once=False,
    )


@contextmanager
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="mvserver-conformance-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        assert not os.path.lexists(made)
