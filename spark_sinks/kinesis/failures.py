"""The named errors of a stream that does not have what a reader wants next."""

from __future__ import annotations

import datetime as dt

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.kinesis.marks import Mark


class RecordsExpired(SqlError):  # noqa: N818 - 55000, which a reader may go on behind
    """Records that a position promises are not there any more."""


def stream_gone(store: str, stream: str) -> SqlError:
    return SqlError(
        sqlstates.UNDEFINED_OBJECT,
        f'stream "{stream}" does not exist in store "{store}"',
        detail="It was there when the query was created.",
    )


def stream_recreated(store: str, stream: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'stream "{stream}" in store "{store}" was deleted and created again',
        detail="The query reads the stream that was there before.",
        hint="What was read before stays; a new definition reads the new stream.",
    )


def records_expired(store: str, stream: str, shard: str, mark: Mark, retention_hours: int) -> RecordsExpired:
    """``mark`` is the query's place, or that of the shard's parents."""
    moment = dt.datetime.fromtimestamp(mark.moment_ms / 1000, dt.UTC)
    return RecordsExpired(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'records may have expired unread from shard {shard} of stream "{stream}" in store "{store}"',
        detail=f"The query has all that arrived before {moment:%Y-%m-%d %H:%M:%S} UTC; the stream keeps "
        f"{retention_hours} hours.",
        hint="REFRESH MATERIALIZED VIEW rebuilds a view from what is left. With the property "
        "'kinesis.expired.records' = SKIP of the store, queries go on behind such records.",
    )


def history_unknown(store: str, stream: str, retention_hours: int) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'stream "{stream}" in store "{store}" is older than what it keeps',
        detail=f"It keeps {retention_hours} hours, and a view of its whole history would be partial.",
        hint="REFRESH MATERIALIZED VIEW rebuilds a view from what is left.",
    )


def place_refused(store: str, stream: str, shard: str, words: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'the query\'s place in shard {shard} of stream "{stream}" in store "{store}" is not one of that shard',
        detail=words if words.endswith(".") else words + ".",
        hint="REFRESH MATERIALIZED VIEW rebuilds a view from what is left.",
    )
