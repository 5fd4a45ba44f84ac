"""The rows of a SUBSCRIBE: a view's snapshot and its changes, each with its kind and the token to resume behind it."""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Self

import pyarrow as pa

from catalog.model import Relation
from mvserver import sqlstates
from mvserver.compiler.lower_duckdb import duckdb_type
from mvserver.errors import SqlError
from mvserver.front import SnapshotPlace
from mvserver.routing.ports import Services
from mvserver.serving.api import RowShaper
from mvserver.session.context import SessionContext
from mvserver.session.reads.filling import until_filled
from mvserver.session.settings.setting_values import milliseconds
from mvserver.sql.types import parse_type
from mvserver.streaming.api import EpochChanges, HistoryReader, QueryState
from spark_sinks.duckdb.history.log import CHANGE_COLUMNS, refuse_taken

_NAMES = tuple(name for name, _ in CHANGE_COLUMNS)
_NEW = "+I"  # a row of a snapshot
_FORM = "subscribe"


def columns(view: Relation) -> Sequence[tuple[str, str]]:
    """Names and DuckDB types; 42701 where the view has a column of a name that is needed before its own."""
    refuse_taken(column.name for column in view.columns)
    return [*CHANGE_COLUMNS, *((column.name, duckdb_type(parse_type(column.type))) for column in view.columns)]


def wait_filled(view: Relation, context: SessionContext, services: Services) -> None:
    """As before a SELECT: 55000 where the view is not filled in time, or will not be."""

    def wait(seconds: float) -> None:
        if context.cancelled():
            raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
        services.engine.wait_while_filling([view.id], seconds)

    services.engine.refuse_empty([view.id])
    amount = milliseconds(context.settings.get("mv.filling_timeout", "0"))
    until_filled(
        wait,
        amount / 1000 if amount else None,
        lambda: not _has_failed(view, services),
        "mv.filling_timeout is how long to wait.",
    )


def _has_failed(view: Relation, services: Services) -> bool:
    queries = services.catalog.queries.of_sink(view.id)
    return any(services.engine.status(query.id).state is QueryState.FAILED for query in queries)


class SubscribedRows:
    """The rows as the session reads them, shaped for the wire. Closing it closes the watch."""

    def __init__(self, watch: HistoryReader, shaper: RowShaper) -> None:
        self._watch = watch
        self._shaper = shaper
        self._first = self._snapshot()
        self._epochs: deque[EpochChanges] = deque()
        self._at_beginning = watch.place is not None
        self._peeked: pa.RecordBatch | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._in_snapshot() and self._peeked is not None:
            batch, self._peeked = self._peeked, None
            return self._shaper.shape(batch)
        while not self._epochs:
            self._epochs.extend(self._watch.take())
        return self._shaper.shape(self._epochs.popleft().once(_FORM, changed_rows))

    def _in_snapshot(self) -> bool:
        """Whether rows of the beginning are left; the next of them are read then."""
        if self._peeked is None and self._at_beginning:
            self._peeked = next(self._first, None)
            self._at_beginning = self._peeked is not None
        return self._at_beginning

    def _snapshot(self) -> Iterator[pa.RecordBatch]:
        """The last row alone has a token: who breaks off before it has nothing to go on from."""
        place = self._watch.place
        if place is None:
            return
        held: pa.RecordBatch | None = None
        for batch in self._watch.snapshot():
            if held is not None:
                yield _of_snapshot(held, place, None)
            held = batch if batch.num_rows else held
        if held is not None:
            yield _of_snapshot(held, place, self._watch.token)

    def ready(self) -> bool:
        return self.wait(0.0)

    def wait(self, seconds: float | None) -> bool:
        """Whether there is something to read, rows or the end: now, or within this time."""
        return self._in_snapshot() or bool(self._epochs) or self._watch.wait(seconds)

    def interrupt(self) -> None:
        self._watch.interrupt()

    def close(self) -> None:
        self._watch.close()
        self._shaper.close()


def changed_rows(epoch: EpochChanges) -> pa.RecordBatch:
    """The rows of an epoch with the columns that come before the view's own."""
    batch = _one_batch(epoch.rows)
    tokens = [epoch.token(index) for index in range(batch.num_rows)]
    return _with_places(batch.select(batch.schema.names[1:]), tokens, batch.column(0), epoch.epoch, epoch.at)


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)


def _of_snapshot(batch: pa.RecordBatch, place: SnapshotPlace, token: str | None) -> pa.RecordBatch:
    tokens = [*[None] * (batch.num_rows - 1), token]
    kinds = pa.array([_NEW] * batch.num_rows, pa.string())
    return _with_places(batch, tokens, kinds, place.shown_epoch, place.shown_at)


def _with_places(
    batch: pa.RecordBatch, tokens: Sequence[str | None], kinds: pa.Array, epoch: int, at: dt.datetime
) -> pa.RecordBatch:
    count = len(tokens)
    own = [
        pa.array(tokens, pa.string()),
        pa.array([epoch] * count, pa.int64()),
        pa.array([at] * count, pa.timestamp("us", "UTC")),
        kinds,
    ]
    return pa.RecordBatch.from_arrays([*own, *batch.columns], names=[*_NAMES, *batch.schema.names])
