"""What is asked of the service about one store: streams, shards, records. Each request has a bound.

Requests are not repeated here but for those that say nothing about records. Errors of :meth:`Service.read` are the
service's own, since its readers tell them apart; all others are SqlErrors.
"""

from __future__ import annotations

import datetime as dt
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.kinesis.errors import could_not_connect, no_entity, not_understood, reported, throttled
from spark_sinks.kinesis.limits import KINESIS_GET_RECORDS_MAX, KINESIS_TIMEOUT_S
from spark_sinks.kinesis.marks import Mark
from spark_sinks.kinesis.options import KinesisOptions

_RETRY_PAUSE_S = 0.2
_CONNECTIONS_MAX = 16
_CLOCK_ERROR_MS = 2_000  # the service tells its time in whole seconds
_ANSWERS = {
    "list_streams": "StreamNames", "describe_stream_summary": "StreamDescriptionSummary", "list_shards": "Shards",
    "put_record": "SequenceNumber", "put_records": "Records",
}  # fmt: skip
"""What an answer has at least. One of something else that is read as JSON has nothing."""


@dataclass(frozen=True)
class Summary:
    """``created_ms`` tells a stream from one that was deleted and made again under the same name."""

    name: str
    arn: str
    status: str
    created_ms: int
    retention_hours: int
    open_shards: int
    mode: str | None


@dataclass(frozen=True)
class Shard:
    """``first`` is its first sequence number, which no other shard has; ``hash_keys`` its range."""

    id: str
    parents: tuple[str, ...]
    first: int
    closed: bool
    hash_keys: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Record:
    sequence: int
    partition_key: str
    data: bytes
    arrived_ms: int


@dataclass(frozen=True)
class Read:
    """An answer. ``following`` is the next iterator, None at the end of a closed shard; ``is_all`` says that nothing
    more was there."""

    records: Sequence[Record]
    following: str | None
    is_all: bool

    @property
    def size(self) -> int:
        return sum(len(record.data) + len(record.partition_key) for record in self.records)


class Service:
    """May be used by several threads. Nothing connects before the first request."""

    def __init__(self, store: str, options: KinesisOptions, *, timeout_s: float = KINESIS_TIMEOUT_S) -> None:
        self.store = store
        self.options = options
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._client: Any = None
        self._ahead_ms = 0  # the service's clock, where it is not the server's

    def now_ms(self) -> int:
        """By the service's clock, to some seconds."""
        return time.time_ns() // 1_000_000 + self._ahead_ms

    # --- streams ----------------------------------------------------------------------------------------------------
    def streams(self) -> list[str]:
        """Names, in order."""
        names: list[str] = []
        last: str | None = None
        while True:
            after = {} if last is None else {"ExclusiveStartStreamName": last}
            found = self._ask(None, "list_streams", **after)
            names.extend(found["StreamNames"])
            if not found.get("HasMoreStreams") or not found["StreamNames"]:
                return sorted(names)
            last = found["StreamNames"][-1]

    def summary(self, stream: str) -> Summary:
        """42704 for a stream that is not there, or is being deleted."""
        found = self.summary_or_none(stream)
        if found is None:
            raise no_entity(self.store, stream)
        return found

    def summary_or_none(self, stream: str) -> Summary | None:
        try:
            answer = self._ask(stream, "describe_stream_summary", StreamName=stream)
        except SqlError as error:
            if error.sqlstate == sqlstates.UNDEFINED_OBJECT:
                return None
            raise
        found = answer["StreamDescriptionSummary"]
        if found["StreamStatus"] == "DELETING":
            return None
        self._check_account(stream, found["StreamARN"])
        return Summary(
            name=stream,
            arn=found["StreamARN"],
            status=found["StreamStatus"],
            created_ms=found["StreamCreationTimestamp"],
            retention_hours=int(found["RetentionPeriodHours"]),
            open_shards=int(found["OpenShardCount"]),
            mode=found.get("StreamModeDetails", {}).get("StreamMode"),
        )

    def shards(self, stream: str) -> list[Shard]:
        """All that the service still has, closed ones too, in the order of their making."""
        found: list[Shard] = []
        answer = self._ask(stream, "list_shards", StreamName=stream)
        while True:
            found.extend(map(_shard, answer["Shards"]))
            token = answer.get("NextToken")
            if not token:
                return sorted(found, key=lambda shard: shard.id)
            answer = self._ask(stream, "list_shards", NextToken=token)

    def first_shard(self, stream: str) -> Shard | None:
        """The oldest one that the service still has. A question that may be asked often."""
        answer = self._ask(stream, "list_shards", StreamName=stream, MaxResults=1)
        return _shard(answer["Shards"][0]) if answer["Shards"] else None

    def create(self, stream: str, shards: int) -> None:
        self._ask(stream, "create_stream", StreamName=stream, ShardCount=shards)

    def delete(self, stream: str) -> None:
        self._ask(stream, "delete_stream", StreamName=stream, EnforceConsumerDeletion=False)

    def put(self, stream: str, partition_key: str, data: bytes) -> None:
        self._ask(stream, "put_record", StreamName=stream, PartitionKey=partition_key, Data=data)

    def put_all(self, stream: str, records: Sequence[tuple[str, bytes]]) -> list[str | None]:
        """One request; for each record the service's code where it was not taken, else None."""
        answer = self._ask(
            stream,
            "put_records",
            StreamName=stream,
            Records=[{"PartitionKey": key, "Data": data} for key, data in records],
        )
        return [record.get("ErrorCode") for record in answer["Records"]]

    # --- records ----------------------------------------------------------------------------------------------------
    def iterator(self, stream: str, shard: str, mark: Mark) -> str:
        """Where reading goes on behind a mark. Raises the service's own errors, as ``read`` does."""
        if mark.is_beginning:
            return self._iterator(stream, shard, "TRIM_HORIZON")
        if mark.sequence is None:
            return self._iterator(stream, shard, "AT_TIMESTAMP", Timestamp=_moment(mark.moment_ms))
        return self._iterator(stream, shard, "AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=str(mark.sequence))

    def iterator_at(self, stream: str, shard: str, sequence: int) -> str:
        return self._iterator(stream, shard, "AT_SEQUENCE_NUMBER", StartingSequenceNumber=str(sequence))

    def read(self, iterator: str, limit: int = KINESIS_GET_RECORDS_MAX) -> Read:
        answer = self._connected().get_records(ShardIterator=iterator, Limit=limit)
        records = [
            Record(int(r["SequenceNumber"]), r["PartitionKey"], r["Data"], r["ApproximateArrivalTimestamp"])
            for r in answer["Records"]
        ]
        # An emulator may say at all times that nothing is behind; a full answer is then told by its length.
        is_all = answer.get("MillisBehindLatest", 0) == 0 and len(records) < limit
        return Read(records, answer.get("NextShardIterator"), is_all)

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    # --- requests ---------------------------------------------------------------------------------------------------
    def _iterator(self, stream: str, shard: str, kind: str, **further: Any) -> str:
        answer = self._connected().get_shard_iterator(
            StreamName=stream, ShardId=shard, ShardIteratorType=kind, **further
        )
        return str(answer["ShardIterator"])

    def _ask(self, stream: str | None, operation: str, **arguments: Any) -> Mapping[str, Any]:
        """A request that was refused for its rate is made again until the time is over."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                answer: Mapping[str, Any] = getattr(self._connected(), operation)(**arguments)
            except (ClientError, BotoCoreError) as error:
                if throttled(error) and operation != "create_stream" and time.monotonic() < deadline:
                    time.sleep(_RETRY_PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 - spreads requests
                    continue
                raise reported(self.store, stream, error) from error
            if (wanted := _ANSWERS.get(operation)) is not None and wanted not in answer:
                raise not_understood(self.store, wanted)
            self._note_clock(answer)
            return answer

    def _note_clock(self, answer: Mapping[str, Any]) -> None:
        told = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if told is None:
            return
        try:
            ahead_ms = round(parsedate_to_datetime(told).timestamp() * 1000) - time.time_ns() // 1_000_000
        except ValueError:
            return
        self._ahead_ms = ahead_ms if abs(ahead_ms) > _CLOCK_ERROR_MS else 0

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                options = self.options
                try:
                    botocore = get_session()
                    # Moments as numbers: botocore's own are objects with the local time zone, and cost half of a read.
                    botocore.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_ms)
                    session = boto3.session.Session(
                        botocore_session=botocore,
                        aws_access_key_id=options.access_key_id,
                        aws_secret_access_key=options.secret_access_key,
                        aws_session_token=options.session_token,
                        region_name=options.region,
                    )
                    self._client = session.client(
                        "kinesis",
                        endpoint_url=options.endpoint,
                        config=Config(
                            connect_timeout=self._timeout_s,
                            read_timeout=self._timeout_s,
                            retries={"total_max_attempts": 1, "mode": "standard"},
                            max_pool_connections=_CONNECTIONS_MAX,
                        ),
                    )
                except (BotoCoreError, ValueError) as error:
                    raise could_not_connect(self.store, str(error)) from error
            return self._client

    def _check_account(self, stream: str, arn: str) -> None:
        account = self.options.account_id
        found = arn.split(":")[4] if arn.count(":") >= 5 else ""
        if account is not None and found != account:
            raise SqlError(
                sqlstates.INSUFFICIENT_PRIVILEGE,
                f'entity "{stream}" of store "{self.store}" belongs to another account',
                detail=f"The store is of account {account}; the stream is of account {found}.",
            )


def _shard(found: Mapping[str, Any]) -> Shard:
    parents = tuple(found[key] for key in ("ParentShardId", "AdjacentParentShardId") if found.get(key))
    numbers, keys = found["SequenceNumberRange"], found["HashKeyRange"]
    return Shard(
        id=found["ShardId"],
        parents=parents,
        first=int(numbers["StartingSequenceNumber"]),
        closed=numbers.get("EndingSequenceNumber") is not None,
        hash_keys=(int(keys["StartingHashKey"]), int(keys["EndingHashKey"])),
    )


def _ms(told: float | str) -> int:
    """Seconds since 1970, as the service writes them."""
    return round(float(told) * 1000)


def _moment(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
