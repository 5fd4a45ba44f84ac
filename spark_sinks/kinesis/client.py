"""A KINESIS store without Spark: its streams as entities, their records as bytes."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Entity, EntityRecord, Position
from spark_sinks.kinesis.api import Service, Shard, Summary
from spark_sinks.kinesis.errors import could_not_connect, entity_exists
from spark_sinks.kinesis.feed import Feed, identified
from spark_sinks.kinesis.frames import place_of
from spark_sinks.kinesis.limits import (
    KINESIS_PARTITION_KEY_CHARACTERS_MAX,
    KINESIS_RECORD_BYTES_MAX,
    KINESIS_TIMEOUT_S,
)
from spark_sinks.kinesis.marks import TRIM, Mark, ended
from spark_sinks.kinesis.options import KinesisOptions
from spark_sinks.kinesis.positions import make_position
from spark_sinks.kinesis.properties import shards_of
from spark_sinks.kinesis.shard_reading import Entry, QuotaExceededError, ShardGoneError, ShardReading, expired

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_VISIBLE_POLL_S = 0.05
_MADE_TIMEOUT_S = 120.0  # the service takes some tens of seconds to make a stream, or to delete one
_STOP_CHECK_S = 0.1
_RECENT_MS = 5_000  # by which the clocks of the service's machines may differ
_READY = ("ACTIVE", "UPDATING")


class KinesisClient:
    """A :class:`spark_sinks.base.StoreClient` over the streams of one account and region."""

    def __init__(
        self, store: str, options: KinesisOptions, *, poll_s: float, timeout_s: float = KINESIS_TIMEOUT_S
    ) -> None:
        self._store = store
        self._poll_s = poll_s
        self._timeout_s = timeout_s
        self._service = Service(store, options, timeout_s=timeout_s)

    def check(self) -> None:
        self._service.streams()

    def list_entities(self) -> Sequence[Entity]:
        return [Entity(name) for name in self._service.streams()]

    def describe_entity(self, name: str) -> Entity:
        found = self._service.summary(name)
        details = [
            ("shards", str(found.open_shards)),
            ("status", found.status),
            ("retention_hours", str(found.retention_hours)),
            ("arn", found.arn),
            ("created", str(found.created_ms)),
        ]
        if found.mode is not None:
            details.append(("mode", found.mode))
        return Entity(name, tuple(details))

    def entity_exists(self, name: str) -> bool:
        return _NAME.fullmatch(name) is not None and self._service.summary_or_none(name) is not None

    def check_create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        shards_of(properties)
        _check_name(name)
        if self.entity_exists(name):
            raise entity_exists(self._store, name)

    def create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        """Returns when the stream can be used."""
        shards = shards_of(properties)
        _check_name(name)
        try:
            self._service.create(name, shards)
        except SqlError as error:
            if error.sqlstate == sqlstates.OBJECT_IN_USE:
                raise entity_exists(self._store, name) from error
            raise
        self._wait_until(name, self._is_ready, "made")

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        for key in properties:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{key}" is not known for DROP ENTITY in a store of type KINESIS',
            )
        self._service.summary(name)
        self._service.delete(name)
        self._wait_until(name, self._is_gone, "deleted")

    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        # Where it starts is fixed here and not at the first look at the iterator, so that what is written in between is
        # printed.
        start = self.position(name, "earliest" if from_beginning else "latest")
        feed = Feed(self._service, name, start, poll_s=self._poll_s)
        return self._follow(feed, limit, stopped)

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        for unknown in properties:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{unknown}" is not known for INSERT INTO ENTITY in a store of type KINESIS',
            )
        if value is None:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "a record without a value is not supported in a store of type KINESIS",
                hint="Records of such a store always have a value.",
            )
        data, partition_key = value.encode(), uuid.uuid4().hex if key is None else key
        if not 0 < len(partition_key) <= KINESIS_PARTITION_KEY_CHARACTERS_MAX:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f"the key of a record has {len(partition_key)} characters",
                detail=f"A partition key has 1 to {KINESIS_PARTITION_KEY_CHARACTERS_MAX}.",
            )
        if len(data) + len(partition_key.encode()) > KINESIS_RECORD_BYTES_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                f'a record is too large for store "{self._store}"',
                detail=f"It has {len(data)} bytes; with its key it may have {KINESIS_RECORD_BYTES_MAX}.",
            )
        self._service.put(name, partition_key, data)

    def write_records(self, writes: Sequence[tuple[str, Iterable[bytes]]]) -> None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "writing many records as one is not supported in a store of type KINESIS",
            hint="The service has no transactions: write them one by one.",
        )

    def position(self, name: str, starting: str) -> Position:
        moment_ms = int(starting) if starting.isascii() and starting.isdigit() else None
        if moment_ms is None and starting not in ("earliest", "latest"):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'unrecognized starting position "{starting}"',
                hint="It is earliest, latest or a moment.",
            )
        summary = self._service.summary(name)
        summary, shards = identified(self._service, name, summary.created_ms)
        if moment_ms is not None:
            self._check_moment(summary, moment_ms)
            first = Mark(None, moment_ms) if moment_ms > summary.created_ms else TRIM
            return make_position(summary.created_ms, dict.fromkeys(shards, first))
        marks = {shard.id: TRIM if starting == "earliest" else self._tip(summary, shard) for shard in shards.values()}
        return make_position(summary.created_ms, marks)

    def _check_moment(self, summary: Summary, moment_ms: int) -> None:
        if moment_ms > self._service.now_ms():
            raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, "the property 'starting.position' is in the future")
        created = Mark(None, summary.created_ms)
        now_ms = self._service.now_ms()
        if expired(Mark(None, moment_ms), summary, now_ms) and expired(created, summary, now_ms):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f"the property 'starting.position' is before all that stream \"{summary.name}\" keeps",
                detail=f"It keeps {summary.retention_hours} hours.",
                hint="Use 'starting.position' = 'earliest'.",
            )

    def close(self) -> None:
        self._service.close()

    # --- positions --------------------------------------------------------------------------------------------------
    def _tip(self, summary: Summary, shard: Shard) -> Mark:
        """Where the shard ends now. The service does not tell the last sequence number, so what has arrived in the last
        seconds is read; where that is nothing, the end is known by the moment at which these begin."""
        if shard.closed:
            return ended(self._service.now_ms())
        # A shard without records so recent begins, or stands still, before that moment.
        mark = Mark(None, max(1, self._service.now_ms() - _RECENT_MS))
        reading = ShardReading(
            self._service, summary, shard, mark, floor=TRIM, sleep_until=lambda moment: _sleep_until(moment)
        )
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                found = reading.read()
            except QuotaExceededError as refused:
                if refused.until > deadline:
                    raise could_not_connect(self._store, str(refused)) from refused
                continue
            except ShardGoneError as gone:
                raise could_not_connect(self._store, str(gone)) from gone
            if found.is_all:
                return found.mark
            if time.monotonic() > deadline:
                raise could_not_connect(self._store, f"The end of shard {shard.id} was not found in time")

    # --- waiting ----------------------------------------------------------------------------------------------------
    def _is_ready(self, name: str) -> bool:
        found = self._service.summary_or_none(name)
        return found is not None and found.status in _READY

    def _is_gone(self, name: str) -> bool:
        """The name can be given again: a stream that is still being deleted is listed."""
        return name not in self._service.streams()

    def _wait_until(self, name: str, condition: Callable[[str], bool], what: str) -> None:
        deadline = time.monotonic() + max(self._timeout_s, _MADE_TIMEOUT_S)
        while not condition(name):
            if time.monotonic() > deadline:
                raise could_not_connect(self._store, f'Stream "{name}" is not {what} yet')
            time.sleep(_VISIBLE_POLL_S)

    # --- printing ---------------------------------------------------------------------------------------------------
    def _follow(self, feed: Feed, limit: int | None, stopped: Callable[[], bool]) -> Iterator[EntityRecord]:
        sent = 0
        feed.start()
        silent_since: float | None = None
        try:
            while (limit is None or sent < limit) and not stopped():
                for entry in feed.take(500).entries:
                    for record in _printed(entry):
                        if limit is None or sent < limit:
                            yield record
                            sent += 1
                problem = feed.problem
                silent_since = None if problem is None else (silent_since or time.monotonic())
                if silent_since is not None and time.monotonic() - silent_since > self._timeout_s:
                    raise could_not_connect(self._store, problem)
                feed.wait(_STOP_CHECK_S)
        finally:
            feed.stop()


def _printed(entry: Entry) -> Iterator[EntityRecord]:
    for part in entry.parts:
        yield EntityRecord(
            part.partition_key.encode(), part.data, place_of(entry, part.number), entry.record.arrived_ms
        )


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'invalid entity name "{name}"',
            detail="A stream's name has 1 to 128 letters, digits, dots, underscores and hyphens.",
        )
