"""One stream as Spark reads it: in rounds of what the feed has fetched, and in closed ranges.

Spark has no connector for it. A streaming source in Python would fetch every record twice, once to know where a batch
ends and once in the task, at twice the price in the shard's quota. Here a record is fetched once, a batch ends exactly
at the last one that was fetched, and all queries over the stream share that reading.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position, RecordOrder
from spark_sinks.kinesis.api import Service
from spark_sinks.kinesis.failures import RecordsExpired, stream_gone, stream_recreated
from spark_sinks.kinesis.feed import Feed, Taken
from spark_sinks.kinesis.frames import PLACE, SHARD, frame_of
from spark_sinks.kinesis.gaps import beyond_gaps
from spark_sinks.kinesis.health import StreamHealth
from spark_sinks.kinesis.limits import KINESIS_TIMEOUT_S
from spark_sinks.kinesis.options import KinesisOptions
from spark_sinks.kinesis.positions import KinesisPositions, created_of
from spark_sinks.kinesis.ranges import RangeReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROUNDS_KEPT = 2  # ranges that were read for their end and are to be evaluated


class KinesisReader:
    """A :class:`spark_sinks.base.SourceReader` over one stream, and its own rounds."""

    logged = held = schemas = live = None

    def __init__(
        self,
        store: str,
        options: KinesisOptions,
        stream: str,
        *,
        poll_s: float,
        record_bytes_max: int,
        timeout_s: float = KINESIS_TIMEOUT_S,
    ) -> None:
        self._stream = stream
        self._poll_s = poll_s
        self._record_bytes_max = record_bytes_max
        self._service = Service(store, options, timeout_s=timeout_s)
        self.positions = KinesisPositions()
        self.health = StreamHealth(self._service, stream, self.positions, lambda: self._feed)
        self._skips = options.skips_expired
        self._lock = threading.Lock()
        self._feed: Feed | None = None
        self._given_up = threading.Event()
        self._ranges = RangeReader(self._service, stream, self._given_up.is_set)
        self._live: tuple[Position, Taken] | None = None
        self._read: OrderedDict[str, tuple[Position, Taken]] = OrderedDict()

    # --- as it grows ------------------------------------------------------------------------------------------------
    @property
    def rounds(self) -> KinesisReader:
        return self

    def wait(self, timeout_s: float) -> None:
        feed = self._feed
        if feed is not None:
            feed.wait(timeout_s)

    def next_batch(self, start: Position, records: int) -> Position:
        try:
            taken = self._take(start, records)
        except RecordsExpired as expired:
            if self._skips:
                self._stop_feed()  # it has ended; without the setting it goes on saying why
            taken = self._gaps(expired, start)
        if taken.end != start:
            self.positions.remember(start, taken.end, taken.records)
            self._live = (start, taken)
        return taken.end

    def _gaps(self, expired: RecordsExpired, start: Position, end: Position | None = None) -> Taken:
        """What is there instead of the records, where the store says so; else the error stands."""
        found = beyond_gaps(self._service, self._stream, start, end) if self._skips else None
        if found is None:
            raise expired
        return found

    def _take(self, start: Position, records: int) -> Taken:
        feed = self._feed
        failure = None if feed is None else feed.failure
        told = isinstance(failure, RecordsExpired) and self._skips  # by the feed itself
        if feed is None or feed.base != start or (failure is not None and not told):
            self._stop_feed()
            feed = self._feed = Feed(self._service, self._stream, start, poll_s=self._poll_s)
            feed.start()
        return feed.take(records)

    def batch_end(self, checkpoint: str, batch_id: int, start: Position) -> Position:
        return start if self._live is None else self._live[1].end

    def bounded(self, start: Position, end: Position, records: int) -> Position:
        try:
            taken = self._ranges.read(start, end, records)
        except RecordsExpired as expired:
            taken = self._gaps(expired, start, end)
        self.positions.remember(start, taken.end, taken.records)
        with self._lock:
            self._read[_name(start, taken.end)] = (start, taken)
            while len(self._read) > _ROUNDS_KEPT:
                self._read.popitem(last=False)
        return taken.end

    def batch(self, spark: SparkSession, start: Position, end: Position) -> DataFrame:
        live = self._live
        if live is not None and live[0] == start and live[1].end == end:
            taken = live[1]
        else:
            with self._lock:
                known = self._read.pop(_name(start, end), None)
            taken = self._ranges.read(start, end) if known is None else known[1]
        return frame_of(spark, self._stream, taken.entries, self._record_bytes_max)

    def stream(
        self, spark: SparkSession, start: Position, *, records_per_trigger: int
    ) -> AbstractContextManager[DataFrame]:
        raise SqlError(sqlstates.INTERNAL_ERROR, "a Kinesis stream is read in rounds", detail=f"Stream {self._stream}.")

    # --- the rest ---------------------------------------------------------------------------------------------------
    def adopt(self, position: Position, *, fresh: bool) -> Position:
        return position

    def confirm(self, position: Position) -> None:
        """The stream is still the one that the position belongs to; asked after a batch was read and before it counts,
        since an iterator may go on in a stream that was made anew. One short request."""
        feed = self._feed
        if feed is not None:
            first = self._service.first_shard(self._stream)
            if first is not None and feed.knows(first):
                return
        summary = self._service.summary_or_none(self._stream)
        if summary is None:
            raise stream_gone(self._service.store, self._stream)
        if summary.created_ms != created_of(position):
            raise stream_recreated(self._service.store, self._stream)

    @property
    def record_order(self) -> RecordOrder:
        return RecordOrder(SHARD, PLACE, SHARD)

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]

    def give_up(self) -> None:
        self._given_up.set()

    def close(self) -> None:
        self._stop_feed()
        self._live = None
        with self._lock:
            self._read.clear()
        self._service.close()
        self._given_up.clear()

    def _stop_feed(self) -> None:
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.stop()


def _name(start: Position, end: Position) -> str:
    return f"{sorted(start['shards'].items())} {sorted(end['shards'].items())}"
