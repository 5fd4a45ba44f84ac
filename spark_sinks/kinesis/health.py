"""The health of a stream: whether it is the one that was read, whether it answers, and what it still has."""

from __future__ import annotations

import time
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.base import Position, SourceHealth
from spark_sinks.kinesis.api import Service, Shard, Summary
from spark_sinks.kinesis.errors import reported
from spark_sinks.kinesis.failures import RecordsExpired, history_unknown, records_expired, stream_gone, stream_recreated
from spark_sinks.kinesis.feed import Feed, identified, words_of_error
from spark_sinks.kinesis.lineage import check_none_expired_between, expired_between
from spark_sinks.kinesis.marks import TRIM, Mark
from spark_sinks.kinesis.positions import (
    KinesisPositions,
    created_of,
    last_number,
    make_position,
    marks_of,
    shard_number,
)
from spark_sinks.kinesis.shard_reading import expired, lasting, still_there

_TIPS_TIMEOUT_S = 2.0


class StreamHealth:
    """A :class:`spark_sinks.base.Health` of one stream. ``feed`` is its reading as it grows, while there is one."""

    def __init__(
        self, service: Service, stream: str, positions: KinesisPositions, feed: Callable[[], Feed | None]
    ) -> None:
        self._service = service
        self._stream = stream
        self._positions = positions
        self._feed = feed

    def look(self, position: Position) -> SourceHealth:
        began = time.monotonic()
        created_ms = created_of(position)
        try:
            summary = self._service.summary_or_none(self._stream)
        except SqlError as unanswered:
            return SourceHealth("stalled", words_of_error(unanswered))
        if summary is None:
            return _failed(stream_gone(self._service.store, self._stream))
        if summary.created_ms != created_ms:
            return _failed(stream_recreated(self._service.store, self._stream))
        feed = self._feed()
        if feed is None:
            return SourceHealth("ok")
        feed.note(summary)
        if isinstance(feed.failure, RecordsExpired) and self._service.options.skips_expired:
            return SourceHealth("ok")  # the next batch goes on behind them
        if feed.failure is not None:
            return _failed(feed.failure)
        found = feed.tips(began, _TIPS_TIMEOUT_S)
        if found is not None:
            self._positions.remember(found.base, found.end, found.waiting)
            return SourceHealth("ok", latest=found.end)
        problem = feed.problem
        return SourceHealth("ok") if problem is None else SourceHealth("stalled", problem)

    def explain_failure(self, error: BaseException, position: Position) -> Exception:
        if isinstance(error, (ClientError, BotoCoreError)):
            return reported(self._service.store, self._stream, error)
        return error if isinstance(error, Exception) else SqlError(sqlstates.INTERNAL_ERROR, words_of(error))

    def check_history(self, start: Position) -> None:
        summary, shards = identified(self._service, self._stream, created_of(start))
        check_none_expired_between(self._service, summary, marks_of(start), shards)
        for shard, mark in marks_of(start).items():
            if not mark.ended and not self._has_all(summary, shards.get(shard), mark):
                if not mark.moment_ms:
                    raise history_unknown(self._service.store, self._stream, summary.retention_hours)
                raise records_expired(self._service.store, self._stream, shard, mark, summary.retention_hours)

    def remaining(self, start: Position) -> tuple[Position, str | None]:
        """A stream made anew is read from its beginning."""
        summary = self._service.summary(self._stream)
        shards = {shard.id: shard for shard in self._service.shards(self._stream)}
        if summary.created_ms != created_of(start):
            position = make_position(summary.created_ms, dict.fromkeys(shards, TRIM))
            return position, f'rebuilt from stream "{self._stream}" as it was created again'
        first = marks_of(start)
        marks = {shard: first.get(shard, TRIM) for shard in shards if shard in first or _is_new(shard, start)}
        lost = list(expired_between(first, shards))
        for shard, mark in first.items():
            if not mark.ended and not self._has_all(summary, shards.get(shard), mark):
                lost.append(shard)
                if shard in marks:
                    marks[shard] = TRIM
        note = f"rebuilt without records that may have expired in {', '.join(sorted(lost))}" if lost else None
        return make_position(summary.created_ms, marks), note

    def _has_all(self, summary: Summary, shard: Shard | None, mark: Mark) -> bool:
        """Whether the service surely has all that is behind the mark."""
        if shard is None:
            return False
        if not mark.moment_ms:  # from the beginning: nothing has expired of a stream that is younger than it keeps
            return not expired(Mark(None, summary.created_ms), summary, self._service.now_ms())
        if not expired(mark, summary, self._service.now_ms()):
            return True
        if not mark.sequence:
            return False
        try:
            return still_there(self._service, self._stream, shard.id, mark.sequence)
        except (ClientError, BotoCoreError) as error:
            raise reported(self._service.store, self._stream, error) from error


def _is_new(shard: str, start: Position) -> bool:
    return shard_number(shard) > last_number(marks_of(start))


def _failed(error: SqlError) -> SourceHealth:
    if not lasting(error):
        return SourceHealth("stalled", words_of_error(error))
    return SourceHealth("failed", words_of_error(error))
