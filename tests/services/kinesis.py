"""A real Kinesis emulator (kinesalite, by npm) for the whole test run, and streams of their own for its tests.

It is installed once, beside the user's other caches. One of its answers is mended there: asked for a moment behind the
last record of a shard, it would not answer at all, where the service gives the shard's end. And it would end with a
client that is killed amid a request.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.services.installed import installed
from tests.services.registries import UNREACHABLE

VERSION = "3.3.3"
REGION, KEY, SECRET = "us-east-1", "AKIATEST", "test-secret"
_INSTALL_TIMEOUT_S, _START_TIMEOUT_S, _VISIBLE_TIMEOUT_S = 300.0, 60.0, 30.0
_NO_ANSWER = """        .head(function(item) {
          iteratorSeq = item.key.split('/')[1]
          cb(null, {ShardIterator: db.createShardIterator(data.StreamName, shardId, iteratorSeq)})
        })
"""
_ANSWER = """        .take(1)
        .join(function(items) {
          iteratorSeq = items.length ? items[0].key.split('/')[1] : db.stringifySequence({
            shardCreateTime: shardSeqObj.shardCreateTime,
            seqIx: stream._seqIx[Math.floor(shardIx / 5)],
            seqTime: Math.max(now, shardSeqObj.seqTime),
            shardIx: shardSeqObj.shardIx,
          })
          cb(null, {ShardIterator: db.createShardIterator(data.StreamName, shardId, iteratorSeq)})
        })
"""
_PROGRAM = """
const options = {createStreamMs: 20, deleteStreamMs: 20, updateStreamMs: 20, shardLimit: 1000000};
process.on('uncaughtException', (error) => {
  if (error.code !== 'ECONNRESET') throw error;
});
const server = require('kinesalite')(options).listen(Number(process.argv[1]), '127.0.0.1', () => {
  console.log('port ' + server.address().port);
});
"""


def npm_install(folder: Path, package: str) -> None:
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--prefix", str(folder),
         package],
        check=False, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S,
    )  # fmt: skip
    if done.returncode != 0 and UNREACHABLE.search(done.stderr):
        pytest.skip(f"the registry of npm cannot be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr


def _install(folder: Path) -> None:
    npm_install(folder, f"kinesalite@{VERSION}")
    source = folder / "node_modules" / "kinesalite" / "actions" / "getShardIterator.js"
    text = source.read_text()
    assert _NO_ANSWER in text
    source.write_text(text.replace(_NO_ANSWER, _ANSWER))


def modules() -> Path:
    """The folder of the emulator's modules."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    return installed(f"kinesalite-{VERSION}", _install) / "node_modules"


class KinesisEmulator:
    """Records are in its memory: what is killed has lost them. Not for use by two threads at once."""

    def __init__(self) -> None:
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> KinesisEmulator:
        self._process = subprocess.Popen(
            ["node", "-e", _PROGRAM, str(self.port)],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "NODE_PATH": str(modules())},
        )  # fmt: skip
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("port "), f"the emulator did not start: {line!r}"
        self.port = int(line.split()[1])
        return self

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def properties(self) -> str:
        """Of a store, as CREATE STORE takes them."""
        return (
            f"'type' = KINESIS, 'uris' = '{self.endpoint}', 'access.region' = '{REGION}', "
            f"'kinesis.access_key_id' = '{KEY}', 'kinesis.secret_access_key' = '{SECRET}'"
        )

    def client(self) -> Any:
        return boto3.client(
            "kinesis",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=Config(retries={"total_max_attempts": 1}, max_pool_connections=16),
        )

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()


class Stream:
    """One stream, as a producer has it. What was acknowledged is known to be there."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name

    def create(self, shards: int = 1) -> Stream:
        self.client.create_stream(StreamName=self.name, ShardCount=shards)
        self.settle()
        return self

    def put(self, records: Sequence[tuple[str, bytes]]) -> None:
        for first in range(0, len(records), 500):
            answer = self.client.put_records(
                StreamName=self.name,
                Records=[{"PartitionKey": key, "Data": data} for key, data in records[first : first + 500]],
            )
            assert answer["FailedRecordCount"] == 0

    def open_shards(self) -> list[dict[str, Any]]:
        shards = self.client.list_shards(StreamName=self.name)["Shards"]
        found = [shard for shard in shards if "EndingSequenceNumber" not in shard["SequenceNumberRange"]]
        return sorted(found, key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))

    def split(self, number: int = 0) -> None:
        """The open shard of this number, by hash keys, in its middle."""
        shard = self.open_shards()[number]
        keys = shard["HashKeyRange"]
        middle = (int(keys["StartingHashKey"]) + int(keys["EndingHashKey"])) // 2
        self.client.split_shard(StreamName=self.name, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(middle))
        self.settle()

    def merge(self, number: int = 0) -> None:
        """The open shard of this number with the one beside it."""
        shards = self.open_shards()
        first, second = shards[number]["ShardId"], shards[number + 1]["ShardId"]
        self.client.merge_shards(StreamName=self.name, ShardToMerge=first, AdjacentShardToMerge=second)
        self.settle()

    def settle(self) -> None:
        deadline = time.monotonic() + _VISIBLE_TIMEOUT_S
        while (
            self.client.describe_stream_summary(StreamName=self.name)["StreamDescriptionSummary"]["StreamStatus"]
            != "ACTIVE"
        ):
            assert time.monotonic() < deadline, f"stream {self.name} does not become active"
            time.sleep(0.005)

    def values(self) -> list[tuple[str, bytes]]:
        """Shard and data of all that is there, each shard's in its order."""
        return [(shard, record["Data"]) for shard, record in self._records()]

    def keyed_values(self) -> list[tuple[str, bytes]]:
        """Partition key and data of the same."""
        return [(record["PartitionKey"], record["Data"]) for _, record in self._records()]

    def _records(self) -> list[tuple[str, Any]]:
        found = []
        for shard in self.client.list_shards(StreamName=self.name)["Shards"]:
            iterator = self.client.get_shard_iterator(
                StreamName=self.name, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            while iterator is not None:
                answer = self.client.get_records(ShardIterator=iterator)
                found.extend((shard["ShardId"], record) for record in answer["Records"])
                iterator = answer.get("NextShardIterator") if answer["Records"] else None
        return found


@pytest.fixture(scope="session")
def kinesis() -> Iterator[KinesisEmulator]:
    """Shared by all tests: leave it running. Tests that stop or pause one use ``own_kinesis``."""
    emulator = KinesisEmulator()
    try:
        yield emulator.start()
    finally:
        emulator.stop()


@pytest.fixture
def own_kinesis() -> Iterator[KinesisEmulator]:
    """An emulator that the test may treat as it likes."""
    emulator = KinesisEmulator()
    try:
        yield emulator.start()
    finally:
        emulator.stop()


@pytest.fixture
def kinesis_stream(kinesis: KinesisEmulator) -> Callable[..., Stream]:
    """Makes a stream on the shared emulator, under a name that no other test uses."""

    def make(shards: int = 1) -> Stream:
        return Stream(kinesis.client(), f"s-{uuid.uuid4().hex[:12]}").create(shards)

    return make
