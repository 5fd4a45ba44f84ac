"""Output to a stream, each record at least once: the service has no transactions.

How far the source is written stands in the server's ledger, and is put there when all records are acknowledged. What
was written and not noted is written again after a stop; readers tell by a record's identity, which it has where its
format has a place for one (``spark_sinks.encode.identified_sink``).

The service may refuse some records of a request. They are sent again, and behind them all later ones of the same
partition key that it has taken: so the last record of a key is always the last.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import KeptPosition, Position, SinkRecords
from spark_sinks.kinesis.api import Service
from spark_sinks.kinesis.errors import could_not_connect
from spark_sinks.kinesis.limits import (
    KINESIS_BACKOFF_LEAST_S,
    KINESIS_BACKOFF_MOST_S,
    KINESIS_PARTITION_KEY_CHARACTERS_MAX,
    KINESIS_PUT_BYTES_MAX,
    KINESIS_PUT_RECORDS_MAX,
    KINESIS_RECORD_BYTES_MAX,
    KINESIS_TIMEOUT_S,
)
from spark_sinks.kinesis.options import KinesisOptions


@dataclass(frozen=True)
class Outgoing:
    partition_key: str
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data) + len(self.partition_key.encode())


class KinesisSink:
    """For one thread at a time."""

    def __init__(
        self,
        store: str,
        options: KinesisOptions,
        stream: str,
        query_id: str,
        kept: KeptPosition,
        *,
        timeout_s: float = KINESIS_TIMEOUT_S,
    ) -> None:
        self._store = store
        self._stream = stream
        self._query_id = query_id
        self._kept = kept
        self._timeout_s = timeout_s
        self._service = Service(store, options, timeout_s=timeout_s)

    def committed_position(self, *, expected: bool = False) -> Position | None:
        """The source position of the last write that was noted."""
        self._service.summary(self._stream)
        return self._kept.read()

    def renew(self, position: Position) -> None:
        """The ledger forgets nothing."""

    def write(self, records: SinkRecords, position: Position) -> None:
        """Returns when all records are acknowledged and the position is noted. The service gives records their time."""
        parts = zip(records.keys, records.values, records.places, strict=True)
        self._send([self._outgoing(*each) for each in parts])
        self._kept.write(position)

    def close(self) -> None:
        self._service.close()

    # --- records ----------------------------------------------------------------------------------------------------
    def _outgoing(self, key: bytes | None, value: bytes | None, place: str) -> Outgoing:
        if value is None:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'a record without a value cannot be written to stream "{self._stream}" in store "{self._store}"',
            )
        identity = f"{self._query_id}/{place}"
        record = Outgoing(_partition_key(key, identity), value)
        if record.size > KINESIS_RECORD_BYTES_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                f'a record is too large for stream "{self._stream}" in store "{self._store}"',
                detail=f"It has {record.size} bytes with its key; it may have {KINESIS_RECORD_BYTES_MAX}.",
            )
        return record

    def _send(self, records: Sequence[Outgoing]) -> None:
        left, refused, deadline = list(records), 0, time.monotonic() + self._timeout_s
        while left:
            count = _request_length(left)
            answers = self._service.put_all(self._stream, [(r.partition_key, r.data) for r in left[:count]])
            codes = [code for code in answers if code is not None]
            again = _to_send_again(left[:count], answers)
            if len(again) < count:
                deadline, refused = time.monotonic() + self._timeout_s, 0  # slow is not dead
            left = [*again, *left[count:]]
            if not codes:
                continue
            if time.monotonic() > deadline:
                raise could_not_connect(self._store, f'Stream "{self._stream}" takes no records: {codes[0]}')
            pause = min(KINESIS_BACKOFF_MOST_S, KINESIS_BACKOFF_LEAST_S * 2**refused)
            refused = min(refused + 1, 16)
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads requests


def _request_length(records: Sequence[Outgoing]) -> int:
    """How many of the first records go into one request."""
    size = 0
    for count, record in enumerate(records[:KINESIS_PUT_RECORDS_MAX]):
        size += record.size
        if size > KINESIS_PUT_BYTES_MAX:
            return count
    return min(len(records), KINESIS_PUT_RECORDS_MAX)


def _to_send_again(sent: Sequence[Outgoing], answers: Sequence[str | None]) -> list[Outgoing]:
    """What was refused, and all behind it of the same partition keys."""
    behind: set[str] = set()
    again = []
    for record, code in zip(sent, answers, strict=True):
        if code is not None:
            behind.add(record.partition_key)
        if record.partition_key in behind:
            again.append(record)
    return again


def _partition_key(key: bytes | None, identity: str) -> str:
    """The record's key, or its digest where the service takes no such key; records without a key are spread."""
    if not key:
        return hashlib.sha256(identity.encode()).hexdigest()
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(key).hexdigest()
    return text if len(text) <= KINESIS_PARTITION_KEY_CHARACTERS_MAX else hashlib.sha256(key).hexdigest()
