"""One shard, read behind a mark: the iterator, the quota, and the records taken apart.

The service's own errors are told apart here, once: refused for the quota, an iterator that is too old, a shard that is
gone, an address that does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from mvserver.errors import SqlError
from spark_sinks.kinesis.aggregated import UserRecord, user_records
from spark_sinks.kinesis.api import Record, Service, Shard, Summary
from spark_sinks.kinesis.budget import SHARED
from spark_sinks.kinesis.errors import EXPIRED_ITERATOR, MISSING, code_of, reported, throttled, words_of_service
from spark_sinks.kinesis.failures import place_refused, records_expired
from spark_sinks.kinesis.limits import KINESIS_GET_RECORDS_MAX
from spark_sinks.kinesis.marks import Mark, ended

HOUR_MS = 3_600_000
_CLOCK_MARGIN_MS = 5_000  # by which the service's clock may go back
_EDGE_MS = 60_000  # so close to what expires, a reading that began with the oldest records may lose some of them


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of the service and the user records in it, which may be none."""

    shard: str
    record: Record
    parts: Sequence[UserRecord]

    @property
    def size(self) -> int:
        return len(self.record.data) + len(self.record.partition_key)


class QuotaExceededError(Exception):
    """The shard's quota is used up, by whomever. ``until`` is a moment of time.monotonic."""

    def __init__(self, until: float, words: str) -> None:
        super().__init__(words)
        self.until = until


class ShardGoneError(Exception):
    """The service does not have the shard, or the stream, any more."""


@dataclass(frozen=True)
class Found:
    """``mark`` is behind the entries; ``is_all`` says that nothing more was there."""

    entries: Sequence[Entry]
    mark: Mark
    is_all: bool


class ShardReading:
    """For one thread at a time. ``sleep_until`` waits for a moment of time.monotonic. ``floor`` is a mark of which all
    before its moment is known to be read, or was not promised: the shard's own, or those of its parents.

    ``tip_ms`` is a moment of which the same is known since an answer had nothing behind it; 0 before there was one.
    """

    def __init__(
        self,
        service: Service,
        summary: Summary,
        shard: Shard,
        mark: Mark,
        *,
        floor: Mark,
        sleep_until: Callable[[float], None],
    ) -> None:
        self.mark = mark
        self.summary = summary
        self.tip_ms = 0
        self._service = service
        self._shard = shard
        self._floor = floor
        self._is_promised = floor.moment_ms > 0  # all that is there now, and not only what is there when it is read
        self._sleep_until = sleep_until
        self._budget = SHARED.of(service.options.place, summary.arn or summary.name, shard.id)
        self._iterator: str | None = None

    def read(self, limit: int = KINESIS_GET_RECORDS_MAX) -> Found:
        """The next answer. Raises QuotaExceededError, ShardGoneError, or SqlError: 08006 where another try may do.
        After any error the next answer is the one behind the mark."""
        self._sleep_until(self._budget.reserve())
        began_ms = self._service.now_ms() - _CLOCK_MARGIN_MS
        iterator, self._iterator = self._iterator, None
        try:
            if iterator is None or self._is_promised:
                self._check_kept()
            if iterator is None:
                iterator = self._service.iterator(self.summary.name, self._shard.id, self.mark)
            answer = self._service.read(iterator, limit)
        except (ClientError, BotoCoreError) as error:
            if throttled(error):
                self._iterator = iterator
            if code_of(error) == EXPIRED_ITERATOR:
                return Found((), self.mark, is_all=False)
            raise self._named(error) from error
        self._budget.answered(answer.size)
        entries = [self._entry(record) for record in answer.records]
        if answer.records:
            newest = max(record.arrived_ms for record in answer.records)
            self.mark = self.mark.behind(answer.records[-1].sequence, newest)
        if answer.following is None:
            # Not the present moment: the shard was closed before, and its children have had records since then.
            self.mark = ended(max(self.mark.moment_ms, self._floor.moment_ms))
        elif answer.is_all:
            self.tip_ms = began_ms
        self._is_promised = self._is_promised or self.tip_ms > 0 or self._is_ahead()
        self._iterator = answer.following
        return Found(entries, self.mark, answer.is_all or answer.following is None)

    def _entry(self, record: Record) -> Entry:
        return Entry(self._shard.id, record, user_records(record.partition_key, record.data, self._shard.hash_keys))

    def _is_ahead(self) -> bool:
        """Of what expires."""
        return self.mark.moment_ms > 0 and not expired(self.mark, self.summary, self._service.now_ms() + _EDGE_MS)

    def _check_kept(self) -> None:
        """55000 where records behind the mark may have expired. One that is there says that all behind it are."""
        floor, name = self._floor.renewed(max(self.mark.moment_ms, self.tip_ms)), self.summary.name
        if expired(floor, self.summary, self._service.now_ms()):
            sequence = self.mark.sequence
            if not sequence or not still_there(self._service, name, self._shard.id, sequence):
                raise records_expired(self._service.store, name, self._shard.id, floor, self.summary.retention_hours)

    def _named(self, error: ClientError | BotoCoreError) -> Exception:
        if throttled(error):
            return QuotaExceededError(self._budget.refused(), words_of_service(error))
        code = code_of(error)
        if code == MISSING:
            return ShardGoneError(words_of_service(error))
        if code == "InvalidArgumentException":
            return place_refused(self._service.store, self.summary.name, self._shard.id, words_of_service(error))
        return reported(self._service.store, self.summary.name, error)


def expired(floor: Mark, summary: Summary, now_ms: int) -> bool:
    """Whether the stream may have lost records that arrived at the mark's moment or later."""
    return 0 < floor.moment_ms < now_ms - summary.retention_hours * HOUR_MS


def still_there(service: Service, stream: str, shard: str, sequence: int) -> bool:
    """Whether the service still has this record, and so all behind it. Raises the service's own errors."""
    iterator: str | None = service.iterator_at(stream, shard, sequence)
    while iterator is not None:
        answer = service.read(iterator, 1)
        if answer.records:
            return answer.records[0].sequence == sequence
        iterator = None if answer.is_all else answer.following
    return False


def lasting(error: SqlError) -> bool:
    """Another try does not mend it."""
    return error.sqlstate in ("55000", "42704", "XX001")
